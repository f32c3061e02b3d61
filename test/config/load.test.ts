import { expect } from "chai";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { configDirOf, loadConfig, type Config } from "../../src/config/load.ts";
import type { ProgramName } from "../../src/config/programs.ts";

const secretKey = Buffer.alloc(32, 7).toString("base64");
const previousKey = Buffer.alloc(32, 8).toString("base64");
const external = { DATABASE_URL: "postgres://svc:hunter2@db/svc", SVC_SECRET_KEY: secretKey };

describe("loadConfig", () => {
  let cwd: string;

  beforeEach(() => {
    cwd = mkdtempSync(join(tmpdir(), "svc-config-"));
    mkdirSync(join(cwd, "config"));
  });
  afterEach(() => rmSync(cwd, { recursive: true }));

  function load(yaml?: string, env: NodeJS.ProcessEnv = {}, program: ProgramName = "all"): Config {
    if (yaml !== undefined) writeFileSync(join(cwd, "config/service.yaml"), yaml);
    return loadConfig({ env, cwd, program });
  }

  it("has the contract's defaults without a file", () => {
    expect(load()).to.deep.equal({
      configDir: join(cwd, "config"),
      dataDir: join(cwd, "data"),
      database: { url: undefined, autoMigrate: true, poolSize: 12 },
      broker: { url: undefined },
      http: {
        host: "127.0.0.1",
        port: 8080,
        routePrefix: "/svc-api",
        publicUrl: undefined,
        hosts: [],
        trustedProxies: [],
        bodyLimitBytes: 1_048_576,
        memoryBudgetBytes: undefined,
        maxPerPage: 100,
        listTimeoutMs: 5000,
        concurrency: 1000,
        concurrencyPerUser: 200,
        maxConnections: 5000,
        maxConnectionsPerAddress: 1000,
        drainDelayMs: 0,
        rateLimit: undefined,
        authFailureLimit: { count: 600, windowMs: 60_000 },
        corsOrigins: [],
        openApi: "token",
      },
      console: { enabled: true, path: "/console" },
      auth: { maxTokensPerUser: 100, jwt: undefined },
      secretKey: undefined,
      previousSecretKeys: [],
      log: { level: "info" },
      metrics: { host: "127.0.0.1", port: 9090 },
      tracing: undefined,
      relay: { pollIntervalMs: 100, batchSize: 70 },
      webhooks: {
        timeoutMs: 30_000,
        maxAttempts: 10,
        backoffMs: [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400].map((s) => s * 1000),
        jitter: 0.2,
        manualRetryLimit: 5,
        maxPerUser: 50,
        allowedNetworks: ["127.0.0.0/8", "::1/128"],
        adminNetworks: [],
        concurrency: 64,
        receiverConcurrency: undefined,
        breaker: true,
        disableAfterMs: 432_000_000,
        holdForMs: 604_800_000,
        sweepIntervalMs: 1000,
        requeueAfterMs: 60_000,
      },
      retention: { days: 30 },
    } satisfies Config);
  });

  for (const host of ["127.0.0.1", "127.8.8.8", "::1", "::ffff:127.0.0.1", "localhost"])
    it(`lets every user's webhooks go to this machine while the API listens on ${host}, on the embedded database`, () => {
      expect(load(undefined, { SVC_HOST: host }).webhooks).to.deep.include({
        allowedNetworks: ["127.0.0.0/8", "::1/128"],
        adminNetworks: [],
      });
    });

  for (const host of ["0.0.0.0", "::", "192.168.1.5", "svc.example.com", "localhost.example.com"])
    it(`lets only admins' webhooks go to this machine when the API listens on ${host}`, () => {
      expect(load(undefined, { SVC_HOST: host }).webhooks).to.deep.include({
        allowedNetworks: [],
        adminNetworks: ["127.0.0.0/8", "::1/128"],
      });
    });

  it("lets every user's webhooks go into the configured networks, on any listen address", () => {
    for (const networks of ["10.0.0.0/8", "127.0.0.0/8"])
      expect(load(undefined, { SVC_HOST: "::", SVC_ALLOWED_NETWORKS: networks }).webhooks).to.deep.include({
        allowedNetworks: [networks],
        adminNetworks: [],
      });
  });

  it("has defaults of their own with an external database", () => {
    const config = load(undefined, external);

    expect(config.database.autoMigrate).to.equal(false);
    expect(config.webhooks).to.deep.include({ allowedNetworks: [], adminNetworks: [] });
    expect(config.secretKey).to.deep.equal(Buffer.alloc(32, 7));
  });

  it("reads every setting of the file", () => {
    const config = load(`
dataDir: /var/lib/svc
secretKey: ${secretKey}
previousSecretKeys: [${previousKey}]
database: { url: "postgresql://db/svc", autoMigrate: true, poolSize: 4 }
broker: { url: "amqps://mq" }
http: { host: "::1", port: 1, routePrefix: /api/v1/, publicUrl: "https://api.example.com/", bodyLimit: 512kb, maxPerPage: 7,
  hosts: [API.example.com], trustedProxies: [10.0.0.0/8], memoryBudget: 2gb, listTimeout: 1.5, concurrencyPerUser: 4, maxConnectionsPerAddress: 5,
  authFailureLimit: 3/2, concurrency: 8, maxConnections: 9, drainDelay: 2.5, rateLimit: 600/60, corsOrigins: ["https://app.example.com/", "http://localhost:3000"], openApi: public }
console: { enabled: false, path: /desk/ }
auth: { maxTokensPerUser: 9 }
log: { level: debug }
metrics: { host: localhost, port: 0 }
relay: { pollInterval: 2, batchSize: 3 }
webhooks:
  timeout: 0.5
  maxAttempts: 1
  backoff: [0, 1.5]
  jitter: 0
  manualRetryLimit: 0
  maxPerUser: 6
  allowedNetworks: [10.0.0.0/8, "fd00::/8"]
  concurrency: 3
  receiverConcurrency: 2
  breaker: false
  disableAfter: 3600
  sweepInterval: 3
  requeueAfter: 4
`);

    expect(config).to.deep.equal({
      configDir: join(cwd, "config"),
      dataDir: "/var/lib/svc",
      database: { url: "postgresql://db/svc", autoMigrate: true, poolSize: 4 },
      broker: { url: "amqps://mq" },
      http: {
        host: "::1",
        port: 1,
        routePrefix: "/api/v1",
        publicUrl: "https://api.example.com",
        hosts: ["api.example.com"],
        trustedProxies: ["10.0.0.0/8"],
        bodyLimitBytes: 524_288,
        memoryBudgetBytes: 2 * 1024 ** 3,
        maxPerPage: 7,
        listTimeoutMs: 1500,
        concurrency: 8,
        concurrencyPerUser: 4,
        maxConnections: 9,
        maxConnectionsPerAddress: 5,
        drainDelayMs: 2500,
        rateLimit: { count: 600, windowMs: 60_000 },
        authFailureLimit: { count: 3, windowMs: 2000 },
        corsOrigins: ["https://app.example.com", "http://localhost:3000"],
        openApi: "public",
      },
      console: { enabled: false, path: "/desk" },
      auth: { maxTokensPerUser: 9, jwt: undefined },
      secretKey: Buffer.alloc(32, 7),
      previousSecretKeys: [Buffer.alloc(32, 8)],
      log: { level: "debug" },
      metrics: { host: "localhost", port: 0 },
      tracing: undefined,
      relay: { pollIntervalMs: 2000, batchSize: 3 },
      webhooks: {
        timeoutMs: 500,
        maxAttempts: 1,
        backoffMs: [0, 1500],
        jitter: 0,
        manualRetryLimit: 0,
        maxPerUser: 6,
        allowedNetworks: ["10.0.0.0/8", "fd00::/8"],
        adminNetworks: [],
        concurrency: 3,
        receiverConcurrency: 2,
        breaker: false,
        disableAfterMs: 3_600_000,
        holdForMs: 604_800_000,
        sweepIntervalMs: 3000,
        requeueAfterMs: 4000,
      },
      retention: { days: 30 },
    } satisfies Config);
  });

  it("lets every variable take precedence over the file", () => {
    const config = load("http: { host: a, port: 1, routePrefix: /a }\nlog: { level: warn }\ndataDir: a\n", {
      ...external,
      AMQP_URL: "amqp://mq",
      SVC_DATA_DIR: "b",
      SVC_HOST: "b",
      SVC_PORT: "2",
      SVC_ROUTE_PREFIX: "/",
      SVC_PUBLIC_URL: "http://b",
      SVC_LOG_LEVEL: "error",
      SVC_AUTO_MIGRATE: "true",
      SVC_METRICS_HOST: "c",
      SVC_METRICS_PORT: "3",
    });

    expect(config).to.deep.include({
      dataDir: join(cwd, "b"),
      database: { url: external.DATABASE_URL, autoMigrate: true, poolSize: 12 },
      broker: { url: "amqp://mq" },
      log: { level: "error" },
      metrics: { host: "c", port: 3 },
    });
    expect(config.http).to.include({ host: "b", port: 2, routePrefix: "", publicUrl: "http://b" });
  });

  it("accepts the URL of a database behind a socket, like libpq", () => {
    const url = "postgresql://svc:pw@/svc?host=/run/postgresql&port=6432";

    expect(load(undefined, { ...external, DATABASE_URL: url }).database.url).to.equal(url);
    expect(() => load(undefined, { ...external, DATABASE_URL: "postgresql://svc:pw@/svc" })).to.throw(
      "DATABASE_URL",
    );
  });

  it("accepts a % in a password that begins no escape, like pg", () => {
    const url = "postgresql://svc:50%off@db/svc";

    expect(load(undefined, { ...external, DATABASE_URL: url }).database.url).to.equal(url);
  });

  const urlOf = (query: string): string | undefined =>
    load(undefined, { ...external, DATABASE_URL: `${external.DATABASE_URL}?${query}` }).database.url;

  it("writes verify-full for the modes of TLS that pg treats as such with a warning", () => {
    for (const mode of ["allow", "prefer", "require", "verify-ca", "verify-full"])
      expect(urlOf(`sslmode=${mode}&a=b`)).to.equal(`${external.DATABASE_URL}?sslmode=verify-full&a=b`);
    for (const query of ["sslmode=disable", "sslmode=no-verify", "uselibpqcompat=true&sslmode=require"])
      expect(urlOf(query)).to.equal(`${external.DATABASE_URL}?${query}`);
  });

  it("takes an IPv6 address to listen on with and without brackets", () => {
    for (const host of ["::1", "[::1]"])
      expect(load("", { SVC_HOST: host, SVC_METRICS_HOST: host })).to.deep.include({
        http: { ...load("").http, host: "::1" },
        metrics: { ...load("").metrics, host: "::1" },
      });
  });

  it("treats an empty variable as not set", () => {
    const config = load("http: { port: 1 }", { SVC_PORT: "", DATABASE_URL: "", DATABASE_URL_FILE: "" });

    expect(config.http.port).to.equal(1);
    expect(config.database.url).to.equal(undefined);
  });

  it("replaces variables in the file, also in lists and in the middle of a text", () => {
    const config = load(
      `http: { host: "\${HOST}", port: "\${PORT:-81}", publicUrl: "https://\${NAME}.example.com" }
database: { url: "\${NONE:-}" }
dataDir: $\${HOME}/\${EMPTY:-x}
webhooks: { backoff: "\${WAITS}", allowedNetworks: ["\${NET}", "\${NONE:-}"] }`,
      { HOST: "h", NAME: "api", EMPTY: "", WAITS: "1, 2.5", NET: "10.0.0.0/8" },
    );

    expect(config.http).to.include({ host: "h", port: 81, publicUrl: "https://api.example.com" });
    expect(config.database.url).to.equal(undefined);
    expect(config.dataDir).to.equal(join(cwd, "${HOME}/x"));
    expect(config.webhooks).to.deep.include({ backoffMs: [1000, 2500], allowedNetworks: ["10.0.0.0/8"] });
  });

  it("reads the secrets from files", () => {
    for (const [name, text] of Object.entries({ ...external, AMQP_URL: "amqp://mq" })) {
      writeFileSync(join(cwd, name), `${text}\n`);
    }
    const config = load(
      undefined,
      Object.fromEntries(
        ["DATABASE_URL", "SVC_SECRET_KEY", "AMQP_URL"].map((name) => [`${name}_FILE`, join(cwd, name)]),
      ),
      "api",
    );

    expect(config.database.url).to.equal(external.DATABASE_URL);
    expect(config.broker.url).to.equal("amqp://mq");
    expect(config.secretKey).to.deep.equal(Buffer.alloc(32, 7));
  });

  it("reads previous keys from a variable with commas, and from a file with a line for each", () => {
    const keys = [previousKey, secretKey];
    writeFileSync(join(cwd, "keys"), `${keys.join("\n")}\n`);
    const expected = [Buffer.alloc(32, 8), Buffer.alloc(32, 7)];

    const fromVariable = load(undefined, { SVC_PREVIOUS_SECRET_KEYS: keys.join(",") });
    expect(fromVariable.previousSecretKeys).to.deep.equal(expected);
    const fromFile = load(undefined, { SVC_PREVIOUS_SECRET_KEYS_FILE: join(cwd, "keys") });
    expect(fromFile.previousSecretKeys).to.deep.equal(expected);
  });

  it("uses the folder of SVC_CONFIG_DIR", () => {
    mkdirSync(join(cwd, "elsewhere"));
    writeFileSync(join(cwd, "elsewhere/service.yaml"), "http: { port: 5 }");

    expect(load("http: { port: 4 }", { SVC_CONFIG_DIR: "elsewhere" }).http.port).to.equal(5);
    expect(configDirOf({ env: { SVC_CONFIG_DIR: "/etc/svc" }, cwd })).to.equal("/etc/svc");
    expect(() => load(undefined, { SVC_CONFIG_DIR: "elsewhere/service.yaml/x" })).to.throw(
      "SVC_CONFIG_DIR: expected the path of a folder",
    );
  });

  it("refuses a file with another ending, or a broken link, instead of using the defaults", () => {
    writeFileSync(join(cwd, "config/service.yml"), "http: { rateLimit: 600/60 }\n");
    expect(() => load()).to.throw("config/service.yml:1:1: expected the name service.yaml");

    symlinkSync("nowhere", join(cwd, "config/service.yaml"));
    expect(() => load()).to.throw("config/service.yaml:1:1: cannot be read (ENOENT)");
  });

  it("asks no broker of svc-admin", () => {
    expect(load(undefined, external, "admin").broker.url).to.equal(undefined);
  });
});
