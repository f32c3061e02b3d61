import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { createConsole, type ConsoleFacts } from "../../src/http/console.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { asAda, call, createMemoryLog } from "../support/http.ts";
import { makeFolder, removeFolder } from "../support/private-process.ts";

const page = `<!doctype html><html><head><base href="/console/"><meta name="svc-console" content="{}" />
<script type="module" src="./assets/main-1a2b.js"></script></head><body></body></html>`;

const facts: ConsoleFacts = {
  basePath: "/desk",
  apiPath: "/svc-api",
  docsPath: undefined,
  jwt: { issuer: "https://login.example.com/realms/shop", clientId: `"><script>`, audience: "api" },
  version: "1.2.3",
};

function serve(from: string): Promise<HttpServer> {
  const router = createRouter("/svc-api");
  const app = createApp({
    log: createMemoryLog().log,
    routePrefix: "/svc-api",
    authenticate: asAda,
    router,
    consolePages: createConsole(facts, from),
    isUnavailable: () => false,
  });
  return startServer(app.callback(), { host: "127.0.0.1", port: 0 });
}

describe("the pages of the console", () => {
  let folder: string;
  let server: HttpServer;
  before(async () => {
    folder = `${makeFolder("console")}/`;
    server = await serve(folder);
  });
  after(async () => {
    await server?.close({ limitMs: 0 });
    removeFolder(folder.slice(0, -1));
  });

  const get = (path: string, headers = {}, method = "GET"): ReturnType<typeof call> =>
    call(server.port, path, { headers, method });

  it("explain how to build them when they are missing, and appear as soon as they are built", async () => {
    const { status, json } = await get("/desk");
    mkdirSync(join(folder, "assets"), { recursive: true });
    writeFileSync(join(folder, "index.html"), page);
    writeFileSync(join(folder, "assets/main-1a2b.js"), "export const answer = 42;\n".repeat(100));
    writeFileSync(join(folder, "assets/sign.png"), "PNG");

    expect({ status, json }).to.deep.equal({
      status: 404,
      json: {
        message: "The console is not built. Build it with `npm run build`, or set console.enabled to false.",
        code: "route.not_found",
      },
    });
    expect((await get("/desk")).status).to.equal(200);
  });

  it("are one page for every path that is not a file, and know their base path", async () => {
    for (const path of ["/desk", "/desk/", "/desk/admin/users", "/desk/index.html", "/desk/resources/a.b"]) {
      const { status, headers, text } = await get(path);

      expect({ status, type: headers["content-type"] }, path).to.deep.equal({
        status: 200,
        type: "text/html; charset=utf-8",
      });
      expect(text).to.include('<base href="/desk/">');
      const [, content = ""] = /<meta name="svc-console" content="([^"]*)">/.exec(text) ?? [];
      expect(content).not.to.match(/[<>]/);
      expect(
        JSON.parse(content.replaceAll("&quot;", '"').replaceAll("&lt;", "<").replaceAll("&gt;", ">")),
      ).to.deep.equal({
        ...facts,
        docsPath: null,
      });
    }
  });

  it("may load their own files, and call their own origin and the issuer", async () => {
    const { headers } = await get("/desk");

    expect(headers["content-security-policy"]).to.equal(
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self' https://login.example.com; base-uri 'self'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(headers).to.include({ "x-frame-options": "DENY", "x-content-type-options": "nosniff" });
  });

  it("are revalidated each time, and cached forever where the name has the hash", async () => {
    const [index, asset] = [await get("/desk"), await get("/desk/assets/main-1a2b.js")];
    const again = await get("/desk", { "If-None-Match": index.headers["etag"] as string });

    expect(index.headers["cache-control"]).to.equal("no-cache");
    expect(asset.headers["cache-control"]).to.equal("public, max-age=31536000, immutable");
    expect(again).to.include({ status: 304, text: "" });
  });

  it("are compressed for clients that accept it", async () => {
    const path = "/desk/assets/main-1a2b.js";
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`);
    const [plain, zipped] = [await get(path), await get(path, { "Accept-Encoding": "gzip" })];
    const picture = await get("/desk/assets/sign.png", { "Accept-Encoding": "gzip" });

    expect(await response.text()).to.equal(plain.text);
    expect(zipped.headers).to.include({ "content-encoding": "gzip", vary: "Accept-Encoding" });
    expect(Number(zipped.headers["content-length"])).to.be.lessThan(
      Number(plain.headers["content-length"]) / 5,
    );
    expect(plain.headers["content-encoding"]).to.equal(undefined);
    expect(picture.headers["content-encoding"]).to.equal(undefined);
    expect(picture.headers["content-type"]).to.equal("image/png");
  });

  it("lead to no other file, and to no other path", async () => {
    const to = async (path: string): Promise<number> => (await get(path)).status;

    for (const path of [
      "/desk/assets/",
      "/desk/assets/main.js",
      "/desk/assets/..%2f..%2fsvc.js",
      "/desks",
      "/",
    ])
      expect(await to(path), path).to.equal(404);
    const { status, text } = await get("/desk/..%2f..%2fpackage.json");
    expect(status).to.equal(200);
    expect(text).to.include("<base");
  });

  it("take GET and HEAD", async () => {
    const [head, post] = [await get("/desk", {}, "HEAD"), await get("/desk", {}, "POST")];

    expect(head).to.include({ status: 200, text: "" });
    expect(post.status).to.equal(405);
    expect(post.headers["allow"]).to.equal("GET, HEAD");
  });
});
