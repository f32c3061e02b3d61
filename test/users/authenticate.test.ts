import { request } from "node:http";
import { expect } from "chai";
import { createApp } from "../../src/http/app.ts";
import { createConcurrency } from "../../src/http/concurrency.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { createFailureLimit } from "../../src/http/failure-limit.ts";
import { createAuthenticate, type Identifier } from "../../src/users/authenticate.ts";
import { createTokenProvider, type TokenProvider } from "../../src/users/provider.ts";
import { addWhoamiRoute } from "../../src/users/routes.ts";
import { mintToken } from "../../src/users/token.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { call, createMemoryLog, type Answer } from "../support/http.ts";

const missing = "Bearer";
const invalid = 'Bearer error="invalid_token"';

function expectUnauthenticated(
  answer: Answer,
  challenge: string,
  code = challenge === missing ? "token.missing" : "token.invalid",
): void {
  expect(answer.status).to.equal(401);
  expect(answer.headers["www-authenticate"]).to.equal(challenge);
  expect(answer.json).to.deep.equal({
    message: "Unauthenticated.",
    code,
  });
}

describe("GET /whoami", () => {
  let core: CoreDatabase;
  let tokens: TokenProvider;
  let server: HttpServer;
  let userId: number;
  let token: string;
  const { log, lines } = createMemoryLog();

  before(async () => {
    core = await openCoreDatabase();
    tokens = createTokenProvider({ ...core, log });
    const router = createRouter("/svc-api");
    addWhoamiRoute(router);
    const authenticate = createAuthenticate({
      tokens,
      failures: createFailureLimit({ count: 100, windowMs: 60_000 }),
    });
    const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
    server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const user = await core.prisma.user.create({
      data: { name: "Ada Lovelace", email: "ada@example.com" },
    });
    userId = user.id;
    ({ token } = await tokens.issue({ userId, name: "test" }));
  });

  after(async () => {
    await server.close();
    await tokens.close();
    await core.close();
  });

  const whoami = (authorization?: string): Promise<Answer> =>
    call(server.port, "/svc-api/whoami", {
      headers: authorization === undefined ? {} : { Authorization: authorization },
    });

  it("answers only id, name and email of the token's user", async () => {
    const answer = await whoami(`Bearer ${token}`);

    expect(answer.status).to.equal(200);
    expect(answer.json).to.deep.equal({ id: userId, name: "Ada Lovelace", email: "ada@example.com" });
  });

  it("takes the scheme in any case", async () => {
    expect((await whoami(`bEaReR ${token}`)).status).to.equal(200);
  });

  for (const [what, authorization] of [
    ["no header", undefined],
    ["another scheme", "Basic dXNlcjpwYXNz"],
    ["no token after the scheme", "Bearer"],
  ] as const) {
    it(`answers 401 with a bare challenge for ${what}`, async () => {
      expectUnauthenticated(await whoami(authorization), missing);
    });
  }

  for (const [what, bad] of [
    ["a malformed token", "nonsense"],
    ["an unknown token", mintToken()],
    ["a token with a character changed", undefined],
  ] as const) {
    it(`answers 401 with invalid_token for ${what}`, async () => {
      const changed = token.slice(0, -1) + (token.endsWith("a") ? "b" : "a");

      expectUnauthenticated(await whoami(`Bearer ${bad ?? changed}`), invalid);
    });
  }

  it("answers 401 with invalid_token for a revoked token", async () => {
    const revoked = await tokens.issue({ userId, name: "revoked" });
    await tokens.revoke(revoked.id);

    expectUnauthenticated(
      await whoami(`Bearer ${revoked.token}`),
      `${invalid}, error_description="The token is revoked"`,
      "token.revoked",
    );
  });

  it("answers 401 with invalid_token for an expired token", async () => {
    const expired = await tokens.issue({ userId, name: "expired", expiresAt: new Date(Date.now() - 1) });

    expectUnauthenticated(
      await whoami(`Bearer ${expired.token}`),
      `${invalid}, error_description="The token has expired"`,
      "token.expired",
    );
  });

  it("answers 401 with invalid_token for the token of a disabled user", async () => {
    const disabled = await core.prisma.user.create({
      data: { name: "Gone", email: "gone@example.com", disabledAt: new Date() },
    });
    const issued = await tokens.issue({ userId: disabled.id, name: "x" });

    expectUnauthenticated(
      await whoami(`Bearer ${issued.token}`),
      `${invalid}, error_description="The user is disabled"`,
      "user.disabled",
    );
  });

  it("answers 401 to two Authorization headers, also if one is valid", async () => {
    const answer = await new Promise<Pick<Answer, "status" | "headers">>((resolve, reject) => {
      const sent = request(
        { host: "127.0.0.1", port: server.port, path: "/svc-api/whoami", agent: false },
        (response) => {
          response.resume();
          resolve({ status: response.statusCode ?? 0, headers: response.headers });
        },
      );
      sent.setHeader("Authorization", [`Bearer ${token}`, `Bearer ${mintToken()}`]);
      sent.on("error", reject);
      sent.end();
    });

    expect(answer.status).to.equal(401);
    expect(answer.headers["www-authenticate"]).to.equal(invalid);
  });

  it("writes no token into the log", async () => {
    await whoami(`Bearer ${token}`);

    expect(lines).not.to.deep.equal([]);
    expect(JSON.stringify(lines)).not.to.contain(token.slice(4));
  });

  it("also answers 429 to JWTs, but not to one that was valid before", async () => {
    const head = Buffer.from('{"alg":"ES256"}').toString("base64url");
    const [good, bad] = [`${head}.e30.Z29vZA`, `${head}.e30.YmFk`];
    let identified = 0;
    const jwts: Identifier = {
      async identify(given) {
        identified += 1;
        return given === good ? tokens.identify(token) : { kind: "refused", code: "token.invalid" };
      },
      wasFound: (given) => given === good,
    };
    const failures = createFailureLimit({ count: 2, windowMs: 60_000 });
    const router = createRouter("/svc-api");
    addWhoamiRoute(router);
    const authenticate = createAuthenticate({ tokens, jwts, failures });
    const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
    const strict = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const statuses: number[] = [];
    for (const given of [good, bad, bad, bad, good]) {
      const headers = { Authorization: `Bearer ${given}` };
      statuses.push((await call(strict.port, "/svc-api/whoami", { headers })).status);
    }

    expect(statuses).to.deep.equal([200, 401, 401, 429, 200]);
    expect(identified).to.equal(4);
    expect(JSON.stringify(lines)).not.to.contain(head);
    await strict.close();
  });

  it("answers 429 to an address that failed too often, but not to a token that was valid before", async () => {
    const { token: other } = await tokens.issue({ userId, name: "other" });
    const authenticate = createAuthenticate({
      tokens,
      failures: createFailureLimit({ count: 2, windowMs: 60_000 }),
    });
    const router = createRouter("/svc-api");
    addWhoamiRoute(router);
    const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
    const strict = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const ask = async (given: string): Promise<Answer> =>
      call(strict.port, "/svc-api/whoami", { headers: { Authorization: `Bearer ${given}` } });

    const answers = [await ask(token), await ask("wrong"), await ask(`svc_${"a".repeat(43)}`)];
    const askedAt = performance.now();
    const blocked = await ask("wrong");
    // Otherwise a few connections could cause thousands of refusals a second.
    expect(performance.now() - askedAt).to.be.above(990);
    answers.push(blocked, await ask(other), await ask(token));

    expect(answers.map(({ status }) => status)).to.deep.equal([200, 401, 401, 429, 429, 200]);
    expect(Number(blocked.headers["retry-after"])).to.be.within(1, 60);
    await strict.close();
  });

  it("counts no failure where a token ends while its requests wait", async () => {
    const { token: other } = await tokens.issue({ userId, name: "other" });
    const failures = createFailureLimit({ count: 1, windowMs: 60_000 });
    let isEnded = false;
    const ending: Identifier = {
      identify: async (given) =>
        isEnded ? { kind: "refused", code: "token.invalid" } : tokens.identify(given),
      wasFound: () => false,
    };
    const authenticate = createAuthenticate({ tokens: ending, failures });
    const router = createRouter("/svc-api");
    router.get("/waits", async (ctx) => {
      isEnded = true;
      await ctx.state.identifyAgain().finally(() => (isEnded = false));
    });
    addWhoamiRoute(router);
    const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
    const strict = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const statuses: number[] = [];
    for (const path of ["waits", "waits", "whoami"]) {
      const headers = { Authorization: `Bearer ${other}` };
      statuses.push((await call(strict.port, `/svc-api/${path}`, { headers })).status);
    }

    expect(statuses).to.deep.equal([401, 401, 200]);
    await strict.close();
  });

  it("takes no slot of other requests while it delays that 429", async () => {
    const authenticate = createAuthenticate({
      tokens,
      failures: createFailureLimit({ count: 1, windowMs: 60_000 }),
    });
    const router = createRouter("/svc-api");
    addWhoamiRoute(router);
    const options = { log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false };
    const app = createApp({ ...options, concurrency: createConcurrency()(1) });
    const strict = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
    const ask = async (given: string): Promise<Answer> =>
      call(strict.port, "/svc-api/whoami", { headers: { Authorization: `Bearer ${given}` } });

    const first = [await ask(token), await ask("wrong")];
    const delayed = Promise.all([ask("wrong"), ask("wrong"), ask("wrong")]);
    const second = [await ask(token), await ask(token)];
    const all = [...first, ...second, ...(await delayed)];

    expect(all.map(({ status }) => status)).to.deep.equal([200, 401, 200, 200, 429, 429, 429]);
    await strict.close();
  });
});
