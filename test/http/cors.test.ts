import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { asAda, call, createMemoryLog, type Answer } from "../support/http.ts";
import { missingToken, thingsRouter } from "./things.ts";

const page = "https://app.example.com";

const corsOf = ({ headers }: Answer): readonly string[] =>
  Object.keys(headers).filter((name) => name.startsWith("access-control-"));

describe("createApp, with CORS", () => {
  const servers: HttpServer[] = [];
  afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

  /** Starts a server for pages of `origins`. Returns a function that sends a request. */
  async function serve(
    corsOrigins?: readonly string[],
  ): Promise<(method: string, path: string, headers?: Record<string, string>) => Promise<Answer>> {
    const app = createApp({
      log: createMemoryLog().log,
      routePrefix: "/api",
      authenticate: async (ctx, next) => {
        if (ctx.get("Authorization") === "") throw missingToken();
        ctx.state.tokenId = 1;
        await asAda(ctx, next);
      },
      router: thingsRouter(),
      isUnavailable: () => false,
      rateLimit: { count: 4, windowMs: 60_000 },
      ...(corsOrigins === undefined ? {} : { corsOrigins }),
    });
    const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    servers.push(server);
    return (method, path, headers = {}) => call(server.port, path, { method, headers });
  }

  const authorized = { Authorization: "x", Origin: page };
  const preflight = {
    Origin: page,
    "Access-Control-Request-Method": "PUT",
    "Access-Control-Request-Headers": "authorization, x-evil",
  };

  it("answers a preflight without a token, for known and unknown paths", async () => {
    const send = await serve([page]);

    for (const path of ["/api/things", "/api/none"]) {
      const answer = await send("OPTIONS", path, preflight);

      expect([answer.status, answer.text]).to.deep.equal([204, ""]);
      expect(answer.headers).to.include({
        "access-control-allow-origin": page,
        "access-control-allow-methods": "GET,HEAD,POST,PUT,PATCH,DELETE",
        "access-control-allow-headers":
          "Authorization,Content-Type,Idempotency-Key,If-Match,If-None-Match,Last-Event-ID,X-Request-Id,traceparent,tracestate",
        "access-control-max-age": "600",
        vary: "Origin",
      });
      expect(answer.headers).not.to.have.property("access-control-allow-credentials");
    }
  });

  it("lets pages of an allowed origin read answers, errors included, and the headers that matter", async () => {
    const send = await serve([page]);

    const answers = [
      await send("GET", "/api/things", authorized),
      await send("GET", "/api/none", authorized),
      await send("POST", "/api/things", authorized),
      await send("GET", "/api/broken", authorized),
      await send("GET", "/api/things", authorized),
      await send("GET", "/api/things", { Origin: page }),
      await send("GET", "/elsewhere", { Origin: page }),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([200, 404, 422, 500, 429, 401, 404]);
    for (const { headers } of answers) {
      expect(headers).to.include({ "access-control-allow-origin": page, vary: "Origin" });
      expect(headers["access-control-expose-headers"]?.split(",")).to.include.members([
        "X-Request-Id",
        "RateLimit",
        "RateLimit-Policy",
        "Retry-After",
        "Allow",
        "WWW-Authenticate",
      ]);
      expect(headers).not.to.have.property("access-control-allow-credentials");
    }
  });

  for (const origin of ["https://evil.example", "null", `${page}.evil.example`, `${page}:8443`, ""]) {
    it(`gives pages of ${origin || "no origin"} no CORS headers`, async () => {
      const send = await serve([page]);

      const answer = await send("GET", "/api/things", { ...authorized, Origin: origin });
      const before = await send("OPTIONS", "/api/things", { ...preflight, Origin: origin });

      expect(answer.status).to.equal(200);
      expect(answer.headers["vary"]).to.equal("Origin");
      expect(corsOf(answer)).to.deep.equal([]);
      expect(before.status).to.equal(401);
      expect(corsOf(before)).to.deep.equal([]);
    });
  }

  it("allows several origins, and all of them with *", async () => {
    const ofTwo = await serve(["https://one.example", page]);
    const ofAll = await serve(["*"]);

    const two = await ofTwo("GET", "/api/things", authorized);
    const all = await ofAll("GET", "/api/things", { ...authorized, Origin: "https://anyone.example" });

    expect(two.headers["access-control-allow-origin"]).to.equal(page);
    expect(all.headers["access-control-allow-origin"]).to.equal("*");
    expect(all.headers).not.to.have.property("access-control-allow-credentials");
  });

  it("requires a token for an OPTIONS that is not a preflight", async () => {
    const send = await serve([page]);

    expect((await send("OPTIONS", "/api/things", { Origin: page })).status).to.equal(401);
  });

  it("is off by default", async () => {
    const send = await serve();

    const answers = [
      await send("GET", "/api/things", authorized),
      await send("OPTIONS", "/api/things", preflight),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([200, 401]);
    for (const answer of answers) {
      expect(corsOf(answer)).to.deep.equal([]);
      expect(answer.headers).not.to.have.property("vary");
    }
  });
});
