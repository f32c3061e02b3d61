import { join } from "node:path";
import { expect } from "chai";
import { prepareKillScene, type KillScene } from "../support/kill-scene.ts";
import { expectClean, isQuiet, ledgerLine, readLedger } from "../support/ledger.ts";
import { notesYaml } from "../support/notes.ts";
import { createOwnDatabase, type OwnDatabase } from "../support/private-servers.ts";
import {
  admin,
  createProgram,
  tryAdmin,
  type Configuration,
  type Program,
  writeConfiguration,
} from "../support/program.ts";
import { request } from "../support/service.ts";
import { until } from "../support/wait.ts";
import { startWriters } from "../support/writers.ts";

const service = `
webhooks:
  timeout: 5
  maxAttempts: 5
  backoff: [0.1, 0.3]
  jitter: 0
  sweepInterval: 0.2
  allowedNetworks: [127.0.0.0/8]
`;

type Row = Readonly<Record<string, unknown>>;

describe("reload of API and dispatcher as two processes, on PostgreSQL and RabbitMQ", function () {
  this.timeout(90_000);
  let own: OwnDatabase;
  let api: Program;
  let dispatcher: Program;
  let scene: KillScene;

  before(async () => {
    own = await createOwnDatabase({ service });
    const { env } = own;
    await admin(["migrate"], env);
    api = await createProgram({ name: "api", env });
    dispatcher = await createProgram({ name: "dispatcher", env });
    await Promise.all([api.start(), dispatcher.start()]);
    scene = await prepareKillScene({
      env,
      baseUrl: `${api.origin}/svc-api`,
      databaseUrl: own.url,
    });
  });

  after(async () => {
    await scene?.close();
    await Promise.all([api?.dispose(), dispatcher?.dispose()]);
    await own?.dispose();
  });

  async function reload(
    ...options: readonly string[]
  ): Promise<{ code: number; rows: readonly Row[]; stderr: string }> {
    const { code, stdout, stderr } = await tryAdmin(["reload", ...options], own.env);
    return { code, rows: stdout === "" ? [] : (JSON.parse(stdout) as Row[]), stderr };
  }

  it("reaches both with svc-admin reload, and both come to the same configuration", async () => {
    own.configuration.write("service.yaml", service.replace("maxAttempts: 5", "maxAttempts: 4"));

    const { code, rows } = await reload();

    expect(code).to.equal(0);
    expect(rows.map(({ program, outcome }) => [program, outcome])).to.deep.equal([
      ["api", "reloaded"],
      ["dispatcher", "reloaded"],
    ]);
    expect(rows[0]?.["configuration"]).to.equal(rows[1]?.["configuration"]);
  });

  it("refuses a change that needs a migration, and applies it after the migration", async () => {
    own.configuration.write(
      "resources/notes.yaml",
      notesYaml.replace("user_id:", "colour: { type: String, optional: true }\n  user_id:"),
    );

    const { code, rows, stderr } = await reload();

    expect(code).to.equal(1);
    for (const { outcome, faults } of rows) {
      expect(outcome).to.equal("refused");
      expect(faults).to.have.length(2);
      expect(String(faults)).to.match(
        /not up to date: notes: the mapping file changed,.*`svc-admin migrate`/,
      );
    }
    expect(stderr).to.match(/^svc-admin: 2 of 2 processes did not reload:/);

    await admin(["migrate"], own.env);
    expect((await fetch(`${api.healthOrigin}/readyz`)).status, "on a database that is ahead").to.equal(200);
    expect((await reload()).code).to.equal(0);
    const { status, body } = await request({
      url: `${api.origin}/svc-api/resources/notes`,
      method: "POST",
      token: scene.token,
      body: { text: "on_create coloured 1", colour: "red" },
    });
    expect([status, body.colour]).to.deep.equal([201, "red"]);
  });

  it("names a process that gave no answer, and that one reloads when it recovers", async () => {
    dispatcher.signal("SIGSTOP");
    const { code, rows, stderr } = await reload("--timeout", "4");
    const reloaded = dispatcher.untilLogged("the configuration was reloaded");
    dispatcher.signal("SIGCONT");

    expect(code).to.equal(1);
    expect(rows.map(({ outcome }) => outcome)).to.deep.equal(["reloaded", "no answer"]);
    expect(stderr).to.match(/1 of 2 processes did not reload:\n {2}dispatcher on .* gave no answer in time/);
    await reloaded;
  });

  it("loses and doubles nothing and fails no request under load, one reload after the other", () =>
    reloadUnderLoad({ programs: [api, dispatcher], configuration: own.configuration, scene }));

  it("finds no process after both were stopped", async () => {
    const endings = await Promise.all([api.end("SIGTERM"), dispatcher.end("SIGTERM")]);
    expect(endings.map(({ code }) => code)).to.deep.equal([0, 0]);

    const { code, stderr } = await reload();

    expect(code).to.equal(1);
    expect(stderr).to.include("No process of svc runs on this database");
  });
});

describe("reload of svc all under load, on the embedded database and broker", function () {
  this.timeout(90_000);

  it("loses and doubles nothing and fails no request, one reload after the other", async () => {
    const configuration = writeConfiguration({ service, resources: { "notes.yaml": notesYaml } });
    const { env } = configuration;
    const program = await createProgram({ name: "all", env });
    await program.start();
    const socketDir = join(String(env["SVC_DATA_DIR"]), "socket");
    const databaseUrl = `postgresql://postgres@localhost:5432/postgres?host=${encodeURIComponent(socketDir)}`;
    const scene = await prepareKillScene({ env, baseUrl: `${program.origin}/svc-api`, databaseUrl });
    try {
      await reloadUnderLoad({ programs: [program], configuration, scene });
      expect((await program.end("SIGTERM")).code).to.equal(0);
    } finally {
      await scene.close();
      await program.dispose();
      configuration.dispose();
    }
  });
});

/**
 * Reloads six times, each time with another setting, while records are written, and checks the
 * totals.
 */
async function reloadUnderLoad({
  programs,
  configuration,
  scene: { token, ownerIds, pool, audiences, arrivals, databaseUrl },
}: {
  readonly programs: readonly Program[];
  readonly configuration: Configuration;
  readonly scene: KillScene;
}): Promise<void> {
  const label = "reloaded";
  const baseUrl = `${programs[0]?.origin}/svc-api`;
  const writers = startWriters({ baseUrl, token, databaseUrl, ownerIds, label, apiWriters: 4 });
  for (let time = 0; time < 6; time += 1) {
    const goal = writers.acknowledged() + 40;
    configuration.write(
      "service.yaml",
      service.replace("sweepInterval: 0.2", `sweepInterval: 0.${2 + time}`),
    );
    const reloaded = programs.map((program) => program.untilLogged("the configuration was reloaded"));
    for (const program of programs) program.signal("SIGHUP");
    await Promise.all(reloaded);
    await until(() => writers.acknowledged() >= goal, { what: "40 changes", timeoutMs: 30_000 });
  }
  await writers.stop();
  await until(() => isQuiet(pool), { what: "every delivery to settle", timeoutMs: 60_000 });

  const { tried, faults, statuses } = writers;
  const ledger = await readLedger({ pool, label, audiences, arrivals: arrivals.all, tried });
  console.log(`      ${ledgerLine(ledger)}`);
  expectClean(ledger);
  expect(ledger.duplicated).to.equal(0);
  expect(ledger.unanswered.all).to.equal(0);
  expect(faults).to.deep.equal([]);
  expect([...statuses.keys()].filter((status) => status >= 400)).to.deep.equal([]);
}
