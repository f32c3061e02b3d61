import { join } from "node:path";
import { expect } from "chai";
import { fillDataDir } from "../support/embedded.ts";
import { prepareKillScene, type KillScene } from "../support/kill-scene.ts";
import { expectClean, isQuiet, ledgerLine, readLedger } from "../support/ledger.ts";
import { notesYaml } from "../support/notes.ts";
import { createProgram, type Configuration, type Program, writeConfiguration } from "../support/program.ts";
import { until } from "../support/wait.ts";
import { startWriters } from "../support/writers.ts";

const service = `
webhooks:
  timeout: 2
  maxAttempts: 5
  backoff: [0.1, 0.3]
  jitter: 0
  sweepInterval: 0.2
`;

describe("contract, section 7, on the embedded database and broker", function () {
  this.timeout(90_000);
  let configuration: Configuration;
  let all: Program;
  let scene: KillScene;

  before(async () => {
    configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
    const { env } = configuration;
    await fillDataDir(String(env["SVC_DATA_DIR"]));
    all = await createProgram({ name: "all", env });
    await all.start();
    const socketDir = join(String(env["SVC_DATA_DIR"]), "socket");
    const databaseUrl = `postgresql://postgres@localhost:5432/postgres?host=${encodeURIComponent(socketDir)}`;
    scene = await prepareKillScene({ env, baseUrl: `${all.origin}/svc-api`, databaseUrl });
  });

  after(async () => {
    await scene?.close();
    await all?.dispose();
    configuration?.dispose();
  });

  it("loses nothing when the process is killed twice under load", async () => {
    const { pool, audiences, arrivals, token, ownerIds, databaseUrl } = scene;
    const baseUrl = `${all.origin}/svc-api`;
    const writers = startWriters({ baseUrl, token, databaseUrl, ownerIds, label: "all-killed" });
    for (let time = 0; time < 2; time += 1) {
      const goal = writers.acknowledged() + 100;
      await until(() => writers.acknowledged() >= goal, { what: "100 changes", timeoutMs: 30_000 });
      await all.end("SIGKILL");
      await all.start();
    }
    const goal = writers.acknowledged() + 50;
    await until(() => writers.acknowledged() >= goal, { what: "50 changes", timeoutMs: 30_000 });
    await writers.stop();
    await until(() => isQuiet(pool), { what: "every delivery to settle", timeoutMs: 60_000 });

    const { tried, faults } = writers;
    const ledger = await readLedger({ pool, label: "all-killed", audiences, arrivals: arrivals.all, tried });
    console.log(`      ${ledgerLine(ledger)}`);
    expectClean(ledger);
    expect(faults).to.deep.equal([]);
    const ending = await all.end("SIGTERM", 10_000);
    expect(ending.code).to.equal(0);
  });
});
