import { expect } from "chai";
import { connect } from "node:net";
import { securityHeaders } from "../../src/http/security-headers.ts";
import { fillDataDir } from "../support/embedded.ts";
import { call, type Answer } from "../support/http.ts";
import {
  admin,
  createProgram,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { exchange, openRaw } from "../support/raw.ts";
import { until } from "../support/wait.ts";

const page = "https://app.example.com";

const service = (http: string): string => `
http:
  publicUrl: https://api.example.com
  bodyLimit: 1kb
  maxConnections: 40
  ${http}
`;

const notesYaml = `
name: notes
model: Note
fields:
  id: { type: Int, id: true }
  text: { type: String, length: 2000 }
triggers: []
`;

/** Header names in lower case. */
const lowered = (headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** One sequence on one process, which is as healthy at its end as at its start. */
describe("a hardened svc", function () {
  this.timeout(60_000);
  let configuration: Configuration;
  let program: Program;
  let port: number;
  let healthPort: number;
  const tokens: string[] = [];

  before(async () => {
    configuration = writeConfiguration({
      service: service("rateLimit: 5/3600"),
      resources: { "notes.yaml": notesYaml },
    });
    await fillDataDir(String(configuration.env["SVC_DATA_DIR"]));
    program = await createProgram({ name: "all", env: configuration.env });
    await program.start();
    port = Number(new URL(program.origin).port);
    healthPort = Number(new URL(program.healthOrigin).port);
    for (const name of ["Ada", "Bob"]) {
      const args = ["create-user", "--name", name, "--email", `${name}@example.com`, "--admin"];
      tokens.push(String((await admin(args, configuration.env))["token"]));
    }
  });

  after(async () => {
    // An orderly end after all tests.
    const ending = await program?.end("SIGTERM");
    await program?.dispose();
    configuration?.dispose();
    expect(ending?.code).to.equal(0);
  });

  afterEach("the service still serves", async () => {
    expect((await fetch(`${program.healthOrigin}/readyz`)).status).to.equal(200);
  });

  const ask = (user: number, method = "GET", body?: string, headers = {}): Promise<Answer> =>
    call(port, "/svc-api/resources/notes", {
      method,
      headers: {
        Authorization: `Bearer ${tokens[user]}`,
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body }),
    });

  async function reload(http: string): Promise<void> {
    configuration.write("service.yaml", service(http));
    const reloaded = program.untilLogged("the configuration was reloaded");
    program.signal("SIGHUP");
    await reloaded;
  }

  it("sends the security headers on both ports, and requires TLS when its public URL has it", async () => {
    const api = await call(port, "/svc-api/whoami");
    const health = await call(healthPort, "/livez");

    expect(api.headers).to.include(lowered(securityHeaders("https://api.example.com")));
    expect(health.headers).to.include(lowered(securityHeaders()));
  });

  it("answers the sixth request of a user with 429, and other users normally", async () => {
    const statuses: number[] = [];
    for (let i = 0; i < 6; i += 1) statuses.push((await ask(0)).status);
    const refused = await ask(0);

    expect(statuses).to.deep.equal([200, 200, 200, 200, 200, 429]);
    expect(Number(refused.headers["retry-after"])).to.be.within(3500, 3600);
    expect(refused.headers["ratelimit-policy"]).to.equal('"user";q=5;w=3600');
    expect((await ask(1)).status).to.equal(200);
  });

  it("lifts the rate limit and allows an origin, on a reload", async () => {
    const before = await ask(1, "GET", undefined, { Origin: page });
    await reload(`corsOrigins: [${page}]`);

    const after = await ask(0, "GET", undefined, { Origin: page });
    const preflight = await call(port, "/svc-api/resources/notes", {
      method: "OPTIONS",
      headers: { Origin: page, "Access-Control-Request-Method": "POST" },
    });

    expect(before.headers).not.to.have.property("access-control-allow-origin");
    expect(after.status).to.equal(200);
    expect(after.headers).to.include({ "access-control-allow-origin": page, vary: "Origin" });
    expect(after.headers).not.to.have.property("ratelimit");
    expect(preflight.status).to.equal(204);
  });

  it("answers invalid, oversized and overlong HTTP with JSON, on both ports", async () => {
    for (const to of [port, healthPort]) {
      for (const [bytes, status] of [
        ["rubbish\r\n\r\n", 400],
        [`GET /${"x".repeat(20_000)} HTTP/1.1\r\nHost: x\r\n\r\n`, 414],
        [`GET / HTTP/1.1\r\nHost: x\r\nA: ${"x".repeat(20_000)}\r\n\r\n`, 431],
      ] as const) {
        const [answer] = await exchange(to, bytes);

        expect(answer?.status).to.equal(status);
        expect(answer?.json).to.have.all.keys("message", "code");
      }
    }
    const large = await ask(0, "POST", JSON.stringify({ text: "x".repeat(2000) }));
    expect(large.status).to.equal(413);
  });

  it("answers 503 at once to most requests beyond http.concurrency, and 200 to the others", async () => {
    await reload("concurrency: 2");

    const answers = await Promise.all(Array.from({ length: 30 }, () => ask(0)));

    const statuses = answers.map(({ status }) => status);
    expect(new Set(statuses)).to.deep.equal(new Set([200, 503]));
    for (const { headers } of answers.filter(({ status }) => status === 503))
      expect(headers["retry-after"]).to.equal("1");
    await reload("concurrency: 1000");
  });

  it("closes connections beyond http.maxConnections, and serves the others", async () => {
    const kept = await openRaw(port);
    kept.send("GET /svc-api/whoami HTTP/1.1\r\nHost: x\r\n\r\n");
    await kept.untilAnswers(1);
    const crowd = Array.from({ length: 60 }, () => connect(port, "127.0.0.1").on("error", () => undefined));
    const isClosed = crowd.map(() => false);
    for (const [index, socket] of crowd.entries()) socket.once("close", () => (isClosed[index] = true));

    await until(() => isClosed.filter(Boolean).length >= 20, { what: "the ones beyond it to be closed" });

    kept.send("GET /svc-api/whoami HTTP/1.1\r\nHost: x\r\n\r\n");
    expect(await kept.untilAnswers(2)).to.have.nested.property("[1].status", 401);
    for (const socket of [...crowd, kept.socket]) socket.destroy();
    await until(async () => (await ask(0)).status === 200, { what: "new connections to be taken" });
  });

  it("cuts a silent client within 20 s", async () => {
    const silent = await openRaw(port);
    const startedAt = performance.now();
    await until(() => silent.isClosed(), { what: "the end of the connection", timeoutMs: 30_000 });

    expect(silent.received()).to.match(/^HTTP\/1\.1 408 /);
    expect(performance.now() - startedAt).to.be.within(9000, 20_000);
  });
});
