import { fullGrant, makeCaller } from "../support/callers.ts";
import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { createConcurrency } from "../../src/http/concurrency.ts";
import { securityHeaders } from "../../src/http/security-headers.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import type { ApiMiddleware } from "../../src/http/state.ts";
import { createUserTurns } from "../../src/http/user-turns.ts";
import { call, createMemoryLog, type Answer, readWithin } from "../support/http.ts";
import { openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";
import { missingToken, thingsRouter } from "./things.ts";

type Options = Partial<Parameters<typeof createApp>[0]>;

const statusesOf = (answers: readonly Answer[]): readonly number[] => answers.map(({ status }) => status);

/** The token is its own id. */
const authenticate: ApiMiddleware = async (ctx, next) => {
  const id = Number(ctx.get("Authorization"));
  if (!(id > 0)) throw missingToken();
  ctx.state.caller = makeCaller({ id, name: "Ada", email: "ada@example.com", isAdmin: false });
  ctx.state.tokenId = id;
  ctx.state.grant = fullGrant;
  await next();
};

const from = (client: string) => ({ "X-Forwarded-For": client });

describe("createApp, with limits", () => {
  const { log, lines } = createMemoryLog();
  const servers: HttpServer[] = [];
  let held: (() => void)[];
  /** Requests whose body the service has begun to read. */
  let reading: number;

  beforeEach(() => {
    held = [];
    reading = 0;
  });
  afterEach(async () => {
    for (const release of held) release();
    await Promise.all(servers.splice(0).map((server) => server.close()));
  });

  /** Starts a server. Returns a function that sends a request as the token with an id. */
  async function serve(options: Options): Promise<{
    readonly port: number;
    readonly get: (
      path: string,
      token?: number,
      headers?: Record<string, string>,
      method?: string,
    ) => Promise<Answer>;
  }> {
    const router = thingsRouter();
    router.get("/held", async (ctx) => {
      await new Promise<void>((resolve) => held.push(resolve));
      ctx.body = {};
    });
    router.post("/echo", async (ctx) => {
      reading += 1;
      ctx.body = await readWithin(ctx, 1000);
    });
    const app = createApp({
      log,
      routePrefix: "/api",
      authenticate,
      router,
      isUnavailable: () => false,
      ...options,
    });
    const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    servers.push(server);
    return {
      port: server.port,
      get: (path, token = 1, headers = {}, method = "GET") =>
        call(server.port, path, {
          method,
          headers: { ...(token > 0 ? { Authorization: String(token) } : {}), ...headers },
        }),
    };
  }

  describe("security headers", () => {
    it("are on every answer with any status, and reveal nothing of the software", async () => {
      const publicUrl = "https://api.example.com";
      const { get } = await serve({ publicUrl, rateLimit: { count: 6, windowMs: 60_000 } });
      const expected = Object.fromEntries(
        Object.entries(securityHeaders(publicUrl)).map(([name, value]) => [name.toLowerCase(), value]),
      );

      const answers = [
        await get("/api/things"),
        await get("/api/things", 0),
        await get("/elsewhere"),
        await get("/api/none"),
        await get("/api/things", 1, {}, "PUT"),
        await get("/api/things", 1, {}, "POST"),
        await get("/api/broken"),
        await get("/api/things", 1, {}, "OPTIONS"),
        await get("/api/things"),
      ];

      expect(statusesOf(answers)).to.deep.equal([200, 401, 404, 404, 405, 422, 500, 204, 429]);
      for (const { headers } of answers) {
        expect(headers).to.include(expected);
        expect(headers).not.to.have.any.keys("x-powered-by", "server");
      }
    });
  });

  describe("a rate limit", () => {
    it("returns the remaining requests of a user", async () => {
      const { get } = await serve({ rateLimit: { count: 3, windowMs: 60_000 } });

      const first = await get("/api/things");
      const second = await get("/api/none");

      expect(first.headers).to.include({
        "ratelimit-policy": '"user";q=3;w=60',
        ratelimit: '"user";r=2;t=60',
        "ratelimit-limit": "3",
        "ratelimit-remaining": "2",
        "ratelimit-reset": "60",
      });
      expect(second.headers["ratelimit-remaining"]).to.equal("1");
      expect(first.headers).not.to.have.property("retry-after");
    });

    it("answers 429 beyond it with the wait, before any other check", async () => {
      const { get } = await serve({ rateLimit: { count: 1, windowMs: 30_000 } });
      await get("/api/things");

      const answers = [await get("/api/things"), await get("/api/none"), await get("/api/broken")];

      expect(statusesOf(answers)).to.deep.equal([429, 429, 429]);
      const seconds = Number(answers[0]?.headers["retry-after"]);
      expect(seconds).to.be.within(20, 30);
      expect(answers[0]?.json).to.deep.equal({
        message: `Too many requests. Try again in ${seconds} seconds.`,
        code: "rate.exceeded",
      });
      expect(answers[0]?.headers).to.include({ ratelimit: `"user";r=0;t=${seconds}` });
    });

    it("counts each user separately, and nothing without a token", async () => {
      const { get } = await serve({ rateLimit: { count: 1, windowMs: 60_000 } });

      const answers = [
        await get("/api/things", 0),
        await get("/api/things", 0),
        await get("/api/things", 1),
        await get("/api/things", 2),
        await get("/api/things", 1),
        await get("/api/things", 0),
      ];

      expect(statusesOf(answers)).to.deep.equal([401, 401, 200, 200, 429, 401]);
      expect(answers[0]?.headers).not.to.have.property("ratelimit");
    });

    it("counts the tokens of a user together, new ones and JWTs too", async () => {
      const { get } = await serve({
        rateLimit: { count: 2, windowMs: 60_000 },
        // The user's id, and the token's for one that is no JWT.
        authenticate(ctx, next) {
          const [user, token] = ctx.get("Authorization").split(" ").map(Number);
          ctx.state.caller = makeCaller({ id: user ?? 0, name: "Ada", email: "a@b.c", isAdmin: false });
          if (token !== undefined) ctx.state.tokenId = token;
          ctx.state.grant = fullGrant;
          return next();
        },
      });
      const answers: Answer[] = [];
      for (const Authorization of ["1 1", "1 2", "1 3", "1", "2 4", "2", "2"])
        answers.push(await get("/api/things", 0, { Authorization }));

      expect(statusesOf(answers)).to.deep.equal([200, 200, 429, 429, 200, 200, 429]);
    });

    it("holds for simultaneous requests", async () => {
      const { get } = await serve({ rateLimit: { count: 5, windowMs: 60_000 } });

      const answers = await Promise.all(Array.from({ length: 20 }, () => get("/api/things")));

      expect(statusesOf(answers).filter((status) => status === 200)).to.have.length(5);
    });

    it("starts over when its window is over", async () => {
      const { get } = await serve({ rateLimit: { count: 1, windowMs: 1000 } });
      await get("/api/things");
      const refused = await get("/api/things");

      await until(async () => (await get("/api/things")).status === 200, { what: "a new window" });

      expect(refused.json).to.deep.equal({
        message: "Too many requests. Try again in 1 second.",
        code: "rate.exceeded",
      });
      expect((await get("/api/things")).status).to.equal(429);
    });

    it("adds nothing to answers when there is none", async () => {
      const { get } = await serve({});

      expect(Object.keys((await get("/api/things")).headers).join(" ")).not.to.include("ratelimit");
    });
  });

  describe("a limit of requests at work", () => {
    it("answers 503 at once beyond it, and serves again when one is done", async () => {
      const { get } = await serve({ concurrency: createConcurrency()(2) });
      const atWork = [get("/api/held"), get("/api/held")];
      await until(() => held.length === 2, { what: "both to be at work" });

      const refused = await get("/api/things", 1, { "X-Request-Id": "refused" });

      expect(refused.status).to.equal(503);
      expect(refused.text).to.equal('{"message":"Server Error"}');
      expect(refused.headers["retry-after"]).to.equal("1");
      held[0]?.();
      await atWork[0];
      expect((await get("/api/things")).status).to.equal(200);
      held[1]?.();
      await atWork[1];
    });

    it("counts requests that fail, or whose client has left, only while they are at work", async () => {
      const { get, port } = await serve({ concurrency: createConcurrency()(1) });
      await get("/api/broken");
      await get("/api/things", 0);
      const connection = await openRaw(port);
      connection.send("GET /api/held HTTP/1.1\r\nHost: x\r\nAuthorization: 1\r\n\r\n");
      await until(() => held.length === 1, { what: "it to be at work" });
      connection.socket.destroy();
      held[0]?.();

      await until(async () => (await get("/api/things")).status === 200, { what: "an answer" });
    });

    it("counts none that waits for the turn of its user, so that others are served", async () => {
      const { get } = await serve({
        concurrency: createConcurrency()(2),
        userTurns: createUserTurns({ atWork: 1 })(10),
      });
      const own = Array.from({ length: 5 }, () => get("/api/held"));
      await until(() => held.length === 1, { what: "the first to be at work" });

      expect((await get("/api/things", 2)).status).to.equal(200);
      const release = setInterval(() => held.pop()?.(), 1);
      expect(statusesOf(await Promise.all(own))).to.deep.equal([200, 200, 200, 200, 200]);
      clearInterval(release);
    });

    it("counts none whose body is still arriving", async () => {
      const { get, port } = await serve({ concurrency: createConcurrency()(1) });
      const slow = await openRaw(port);
      slow.send(
        "POST /api/echo HTTP/1.1\r\nHost: x\r\nAuthorization: 2\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{",
      );
      await until(() => reading === 1, { what: "its body to be read" });

      expect((await get("/api/things")).status).to.equal(200);
      slow.send('"a":1}');
      expect((await slow.untilAnswers(1))[0]?.status).to.equal(200);
    });

    it("logs one line for a request beyond it, without a cause", async () => {
      const { get } = await serve({ concurrency: createConcurrency()(1) });
      const atWork = get("/api/held");
      await until(() => held.length === 1, { what: "it to be at work" });

      await get("/api/things", 1, { "X-Request-Id": "one-line" });

      const own = lines.filter(({ requestId }) => requestId === "one-line");
      expect(own.map(({ msg }) => msg)).to.deep.equal(["request"]);
      held[0]?.();
      await atWork;
    });
  });

  it("answers 503 to requests beyond the limit of a forwarded address, and serves other addresses", async () => {
    const { get } = await serve({ trustedProxies: ["127.0.0.0/8"], maxConnectionsPerAddress: 1 });
    const first = get("/api/held", 1, from("203.0.113.9"));
    await until(() => held.length === 1, { what: "the request at work" });

    const answers = [
      await get("/api/things", 2, from("203.0.113.9")),
      await get("/api/things", 2, from("198.51.100.1, 203.0.113.9")),
      await get("/api/things", 2, from("203.0.113.8")),
    ];

    held[0]?.();
    expect(statusesOf(answers)).to.deep.equal([503, 503, 200]);
    expect((await first).status).to.equal(200);
    expect((await get("/api/things", 2, from("203.0.113.9"))).status).to.equal(200);
  });

  it("counts the requests of a forwarded IPv6 client by its /64", async () => {
    const { get } = await serve({ trustedProxies: ["127.0.0.0/8"], maxConnectionsPerAddress: 1 });
    const first = get("/api/held", 1, from("2001:db8::1"));
    await until(() => held.length === 1, { what: "the request at work" });

    const answers = [
      await get("/api/things", 2, from("2001:db8::2")),
      await get("/api/things", 2, from("2001:db8:0:1::2")),
    ];

    held[0]?.();
    expect(statusesOf(answers)).to.deep.equal([503, 200]);
    expect((await first).status).to.equal(200);
    expect((await get("/api/things", 2, from("2001:db8::2"))).status).to.equal(200);
  });

  it("continues to count the other requests of a forwarded address when one of them is answered", async () => {
    const { get } = await serve({ trustedProxies: ["127.0.0.0/8"], maxConnectionsPerAddress: 2 });
    const ask = (path: string): Promise<Answer> => get(path, 1, from("203.0.113.9"));
    const atWork = [ask("/api/held"), ask("/api/held")];
    await until(() => held.length === 2, { what: "both at work" });
    held.shift()?.();
    await Promise.race(atWork);
    atWork.push(ask("/api/held"));
    await until(() => held.length === 2, { what: "the next at work" });

    expect((await ask("/api/things")).status).to.equal(503);
    for (const release of held.splice(0)) release();
    expect(statusesOf(await Promise.all(atWork))).to.deep.equal([200, 200, 200]);
  });
});
