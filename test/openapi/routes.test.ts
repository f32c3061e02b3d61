import { expect } from "chai";
import type { HttpServer } from "../../src/http/server.ts";
import { call } from "../support/http.ts";
import { startOpenApiServer } from "./openapi-server.ts";

const path = "/svc-api/openapi.json";
const ada = { Authorization: "Bearer ada" };

describe("GET /openapi.json", () => {
  const servers: HttpServer[] = [];
  async function serve(audience: string, makeDocument: () => unknown = () => ({})): Promise<number> {
    const server = await startOpenApiServer(audience, makeDocument);
    servers.push(server);
    return server.port;
  }
  afterEach(async () => {
    await Promise.all(servers.splice(0).map((server) => server.close({ limitMs: 0 })));
  });

  it("answers the document, built once, only with a token", async () => {
    let made = 0;
    const port = await serve("token", () => ({ openapi: "3.1.0", made: ++made }));

    const refused = await call(port, path);
    const first = await call(port, path, { headers: ada });
    const second = await call(port, path, { headers: ada });

    expect(refused.status).to.equal(401);
    expect(first.json).to.deep.equal({ openapi: "3.1.0", made: 1 });
    expect(second.text).to.equal(first.text);
    expect(first.headers["cache-control"]).to.equal("private, no-cache");
  });

  it("answers 304 to who has it", async () => {
    const port = await serve("token");
    const { headers } = await call(port, path, { headers: ada });

    const again = await call(port, path, { headers: { ...ada, "If-None-Match": headers["etag"] as string } });

    expect(again).to.include({ status: 304, text: "" });
  });

  it("is public when set, and other paths still need a token", async () => {
    const port = await serve("public");

    expect((await call(port, path)).status).to.equal(200);
    expect((await call(port, path, { method: "HEAD" })).status).to.equal(200);
    expect((await call(port, path, { method: "POST" })).status).to.equal(401);
    expect((await call(port, "/svc-api/whoami")).status).to.equal(401);
    expect((await call(port, path, { method: "POST", headers: ada })).headers["allow"]).to.equal("GET, HEAD");
  });

  it("answers nobody with off", async () => {
    const port = await serve("off");

    expect((await call(port, path)).status).to.equal(401);
    expect((await call(port, path, { headers: ada })).status).to.equal(404);
  });
});
