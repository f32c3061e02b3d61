import { expect } from "chai";
import { readFileSync } from "node:fs";
import type { PoolClient } from "pg";
import { serviceActor } from "../../src/kit/actor.ts";
import { loadConfig, type Config } from "../../src/config/load.ts";
import type { CheckedConfiguration, Configuration } from "../../src/app/configuration.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { createReloader, type Reloader } from "../../src/app/reload.ts";
import { fixedSettings, settings } from "../../src/config/settings.ts";
import { openRaw } from "../support/raw.ts";
import { serviceOfSuite } from "../support/service.ts";
import { until } from "../support/wait.ts";

describe("createReloader", () => {
  const service = serviceOfSuite({ mode: "servers" });
  /** Results of the next reads. Each read waits until the test releases it. */
  let reads: ((given: CheckedConfiguration | Error) => void)[];
  let reloader: Reloader;
  let stopping: AbortController;
  let present: Configuration;

  beforeEach(() => {
    reads = [];
    stopping = new AbortController();
    present = service.api.configuration();
    reloader = createReloader({
      program: service.api,
      infrastructure: service.infrastructure,
      read: () =>
        new Promise((resolve, reject) =>
          reads.push((given) => (given instanceof Error ? reject(given) : resolve(given))),
        ),
      actor: serviceActor("all"),
      stopping: stopping.signal,
    });
  });

  function withConfig(change: Partial<Config>, hash = "next"): CheckedConfiguration {
    const { config, definitions } = present;
    return { config: { ...config, ...change }, definitions, byHand: [], hash };
  }

  /** Stops the process while a configuration is being recorded. */
  function stopAtRecord(client: PoolClient): void {
    const query = client.query.bind(client) as (...args: readonly unknown[]) => unknown;
    client.query = ((...args: readonly unknown[]) => {
      if (JSON.stringify(args[0]).includes("pg_advisory_xact_lock")) stopping.abort();
      return query(...args);
    }) as typeof client.query;
  }

  it("replaces the whole configuration, including its log level", async () => {
    const reloaded = reloader.reload();
    reads[0]?.(withConfig({ log: { level: "fatal" } }));

    expect(await reloaded).to.deep.equal({ kind: "applied", hash: "next" });
    expect(service.api.configuration().hash).to.equal("next");
    expect(service.infrastructure.log.level).to.equal("fatal");
    expect(reloader.describe()).to.match(/^loaded \S+Z, hash next$/);
    service.infrastructure.log.level = "silent";
  });

  it("keeps the previous configuration on faults, and shows them until a reload succeeds", async () => {
    const refused = reloader.reload();
    const faults = ["a.yaml:1:1: no", "b.yaml:2:2: no"];
    reads[0]?.(new OperatorError("2 faults", { faults }));

    expect(await refused).to.deep.equal({ kind: "refused", hash: present.hash, faults });
    expect(service.api.configuration()).to.equal(present);
    expect(reloader.describe()).to.match(
      /^loaded \S+Z, hash \S+; the reload at \S+Z was refused, and this one stays in use: a\.yaml:1:1: no \(and 1 more in the log\)$/,
    );

    const applied = reloader.reload();
    reads[1]?.(withConfig({}));
    await applied;
    expect(reloader.describe()).to.match(/^loaded \S+Z, hash next$/);
  });

  it("names exactly the changed settings that take a restart", async () => {
    const { config } = present;
    const changed: Config = {
      ...config,
      dataDir: "/elsewhere",
      secretKey: Buffer.alloc(32, 1),
      previousSecretKeys: [Buffer.alloc(32, 2)],
      database: { ...config.database, url: "postgresql://elsewhere", poolSize: 3 },
      broker: { url: "amqp://elsewhere" },
      http: {
        ...config.http,
        host: "::",
        port: 1,
        memoryBudgetBytes: 1,
        listTimeoutMs: 1,
        trustedProxies: ["10.0.0.0/8"],
        maxConnections: 1,
        maxConnectionsPerAddress: 1,
        maxPerPage: 1,
      },
      metrics: { host: "::1", port: 2 },
    };
    const refused = reloader.reload();
    reads[0]?.(withConfig(changed));

    const outcome = await refused;
    const faults = outcome.kind === "refused" ? outcome.faults : [];
    expect(faults).to.deep.equal(
      fixedSettings.map(
        (key) => `${key} was changed, which takes a restart; put it back, or restart the process`,
      ),
    );
  });

  it("makes one reload at a time, and one more for all requests meanwhile", async () => {
    const first = reloader.reload();
    const others = [reloader.reload(), reloader.reload()];
    expect(reads).to.have.length(1);

    reads[0]?.(withConfig({}, "one"));
    expect(await first).to.include({ hash: "one" });
    await until(() => reads.length === 2, { what: "the next read" });
    reads[1]?.(withConfig({}, "two"));

    for (const outcome of await Promise.all(others)) expect(outcome).to.include({ hash: "two" });
    expect(reads).to.have.length(2);
  });

  it("gives a stop the time limit of the previous configuration while work runs on it", async () => {
    const { webhooks } = present.config;
    const finishLimitMs = (): number => service.api.finishLimitMs();
    const reloadTo = async (timeoutMs: number): Promise<void> => {
      const reloaded = reloader.reload();
      reads.pop()?.(withConfig({ webhooks: { ...webhooks, timeoutMs } }, String(timeoutMs)));
      await reloaded;
    };
    const { token } = await service.createUser();
    await reloadTo(60_000);
    const slow = await openRaw(service.api.port);
    slow.send(
      `POST /svc-api/tokens HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n",
    );
    await until(() => slow.received().startsWith("HTTP/1.1 100"), { what: "a request at work" });

    await reloadTo(webhooks.timeoutMs);

    expect(finishLimitMs()).to.equal(65_000);
    slow.socket.destroy();
    await until(() => finishLimitMs() === 15_000, { what: "the end of the configuration before" });
  });

  it("cancels a running reload when the process stops", async () => {
    const reloaded = reloader.reload();
    stopping.abort();
    reads[0]?.(withConfig({}));

    expect(await reloaded).to.deep.include({ kind: "refused", faults: ["the process is stopping"] });
    expect(service.api.configuration()).to.equal(present);
  });

  it("cancels it even when the stop comes while it is being recorded", async () => {
    const { pool } = service.infrastructure.database;
    pool.on("acquire", stopAtRecord);
    try {
      const reloaded = reloader.reload();
      reads[0]?.(withConfig({}, "late"));

      expect(await reloaded).to.deep.include({ kind: "refused", faults: ["the process is stopping"] });
      expect(service.api.configuration()).to.equal(present);
    } finally {
      pool.off("acquire", stopAtRecord);
    }
  });
});

describe("fixedSettings", () => {
  it("are settings", () => {
    expect(Object.keys(settings)).to.include.members([...fixedSettings]);
  });

  it("are listed in the guide", () => {
    const readme = readFileSync("docs/operations.md", "utf8");
    const [, listed = ""] =
      /\*\*Takes a restart\*\*, and is refused until then: ([^.]*(?:\.[a-zA-Z]+[^.]*)*)\. Environment/s.exec(
        readme,
      ) ?? [];

    expect([...listed.matchAll(/`([^`]+)`/g)].map(([, key]) => key)).to.have.members([...fixedSettings]);
  });

  it("are read to the same values twice, so that an unchanged file is no change", () => {
    const env = { SVC_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
    const read = (): Config => loadConfig({ env, cwd: "/", program: "all" });
    expect(read()).to.deep.equal(read());
  });
});
