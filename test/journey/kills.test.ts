import { expect } from "chai";
import { Client } from "pg";
import { call } from "../support/http.ts";
import { prepareKillScene, type KillScene } from "../support/kill-scene.ts";
import { expectClean, isQuiet, ledgerLine, readLedger, type Arrival } from "../support/ledger.ts";
import { startPrivateServers, type PrivateServers } from "../support/private-servers.ts";
import { admin, createProgram, type Program } from "../support/program.ts";
import { purgeQueues } from "../support/queues.ts";
import { until } from "../support/wait.ts";
import { startWriters, type Writers } from "../support/writers.ts";

const service = `
database:
  poolSize: 6
relay:
  pollInterval: 0.1
webhooks:
  timeout: 5
  maxAttempts: 5
  backoff: [0.1, 0.3]
  jitter: 0
  sweepInterval: 0.2
  requeueAfter: 2
  allowedNetworks: [127.0.0.0/8]
`;

/**
 * Programs end by themselves within this, at any work: the longest is an attempt of
 * \`webhooks.timeout\`.
 */
const stopLimitMs = 10_000;
const stopping = "stopping; a second signal ends at once";

/**
 * One sequence under one load: each test does its harm and checks the immediate effects. The last
 * tests check the totals, since the leases of killed processes take up to 20 s to end.
 */
describe("contract, section 7, on PostgreSQL and RabbitMQ that are killed", function () {
  this.timeout(90_000);
  let servers: PrivateServers;
  let api: Program;
  let dispatcher: Program;
  let scene: KillScene;
  let writers: Writers;
  const labels: string[] = [];

  before(async () => {
    servers = await startPrivateServers({ service, fsync: true });
    const { env } = servers;
    await admin(["migrate"], env);
    api = await createProgram({ name: "api", env });
    dispatcher = await createProgram({ name: "dispatcher", env });
    await Promise.all([dispatcher.start(), api.start()]);
    const baseUrl = `${api.origin}/svc-api`;
    scene = await prepareKillScene({ env, baseUrl, databaseUrl: servers.postgres.url });
    const { token, ownerIds } = scene;
    writers = startWriters({ baseUrl, token, databaseUrl: servers.postgres.url, ownerIds, label: "prelude" });
  });

  after(async () => {
    await writers?.stop();
    await scene?.close();
    await Promise.all([api?.dispose(), dispatcher?.dispose()]);
    await servers?.dispose();
  });

  afterEach(() => scene.arrivals.release());

  /** Counts later writes under `label`. */
  function begin(label: string): void {
    writers.label = label;
    labels.push(label);
  }

  /** Waits until `count` further changes are acknowledged. */
  async function untilWritten(count: number): Promise<void> {
    const goal = writers.acknowledged() + count;
    await until(() => writers.acknowledged() >= goal, { what: `${count} changes`, timeoutMs: 30_000 });
  }

  /** Waits until a new change arrives. */
  async function untilFlowing(): Promise<void> {
    const last = writers.lastNumber();
    const { all } = scene.arrivals;
    let seen = all.length;
    const hasArrived = (): boolean => {
      const isNew = all.slice(seen).some(({ change }) => Number(change.split(" ")[2]) > last);
      seen = all.length;
      return isNew;
    };
    await until(hasArrived, { what: "a new change to arrive", timeoutMs: 40_000 });
  }

  let interrupted: Arrival;
  /** POSTs whose outcome the dispatcher has when the harm comes, and which must not be repeated. */
  const answered: Arrival[] = [];

  /**
   * Holds a first attempt at `/grace`. A crash of PostgreSQL may lose the take of a retry, which is
   * then sent twice.
   */
  function holdFirst(): Promise<Arrival> {
    const { all } = scene.arrivals;
    return scene.arrivals.hold(
      ({ path, delivery: wanted }) =>
        path === "/grace" && all.filter(({ delivery }) => delivery === wanted).length === 1,
    );
  }

  it("publishes what a killed API had read and not published", async () => {
    begin("api-killed");
    await untilWritten(30);
    const late = new Client({ connectionString: servers.postgres.url });
    await late.connect();
    await late.query("BEGIN");
    await late.query("INSERT INTO notes (text, user_id) VALUES ('api-killed late', $1)", [scene.ownerIds[0]]);

    servers.rabbitMq.pause();
    await untilWritten(30);
    const waiting = "SELECT FROM svc.outbox";
    const { code } = await api.end("SIGKILL");
    const { rows } = await scene.pool.query(waiting);
    servers.rabbitMq.resume();

    expect(code).to.equal(null);
    expect(rows, "not published").to.not.have.length(0);
    await api.start();
    await late.query("COMMIT");
    await late.end();
    await untilWritten(30);
  });

  it("repeats a POST during which its dispatcher was killed", async () => {
    begin("dispatcher-killed");
    await untilWritten(30);
    interrupted = await scene.arrivals.hold(({ path }) => path === "/ada");
    await dispatcher.end("SIGKILL");
    scene.arrivals.release();
    await untilWritten(30);

    await dispatcher.start();
    await untilFlowing();
  });

  for (const harm of ["stop", "kill"] as const) {
    it(`answers 503 while PostgreSQL is away after a ${harm}, and recovers`, async () => {
      begin(`postgresql-${harm}`);
      await untilWritten(30);
      // Its answer arrives when the database is gone, and is kept until it is back.
      if (harm === "kill") answered.push(await holdFirst());
      await servers.postgres[harm]();
      scene.arrivals.release();

      const path = "/svc-api/resources/notes";
      const headers = { Authorization: `Bearer ${scene.token}` };
      const answer = await call(Number(new URL(api.origin).port), path, { headers });
      expect(answer.status).to.equal(503);
      expect(answer.json).to.deep.equal({ message: "Server Error" });
      for (const { healthOrigin } of [api, dispatcher]) {
        expect((await fetch(`${healthOrigin}/readyz`)).status).to.equal(503);
        expect((await fetch(`${healthOrigin}/livez`)).status).to.equal(200);
      }

      await servers.postgres.start();
      await untilWritten(30);
      await untilFlowing();
      expect(api.isRunning()).to.equal(true);
      expect(dispatcher.isRunning()).to.equal(true);
    });
  }

  it("finishes running work at SIGTERM, and exits with 0", async () => {
    begin("terminated");
    await untilWritten(30);
    // Requests that are certainly in flight: they wait for a row that the test locks.
    const lock = new Client({ connectionString: servers.postgres.url });
    await lock.connect();
    const insert = "INSERT INTO notes (text, user_id) VALUES ('terminated locked', $1) RETURNING id";
    const { id } = (await lock.query<{ id: number }>(insert, [scene.ownerIds[0]])).rows[0] as { id: number };
    await lock.query("BEGIN");
    await lock.query("SELECT FROM notes WHERE id = $1 FOR UPDATE", [id]);
    const { port } = new URL(api.origin);
    const update = (n: number): ReturnType<typeof call> =>
      call(Number(port), `/svc-api/resources/notes/${id}`, {
        method: "PUT",
        headers: { Authorization: `Bearer ${scene.token}`, "Content-Type": "application/json" },
        body: JSON.stringify({ text: `terminated in-hand-${n}` }),
      });
    const answers = Promise.all([1, 2, 3].map(update));
    const blocked =
      "SELECT FROM pg_stat_activity WHERE application_name LIKE 'svc api %' AND wait_event_type = 'Lock'";
    // One user may have half of the four connections that are not for lists: the third request
    // waits.
    await until(async () => (await scene.pool.query(blocked)).rows.length >= 2, {
      what: "two in hand",
      timeoutMs: 40_000,
    });

    const stops = api.untilLogged(stopping);
    const ended = api.end("SIGTERM", stopLimitMs);
    await stops;
    await lock.query("COMMIT");
    await lock.end();
    expect((await answers).map(({ status }) => status)).to.deep.equal([200, 200, 200]);
    expect((await ended).code).to.equal(0);
    await api.start();

    answered.push(await holdFirst());
    const dispatcherStops = dispatcher.untilLogged(stopping);
    const dispatcherEnded = dispatcher.end("SIGTERM", stopLimitMs);
    await dispatcherStops;
    scene.arrivals.release();
    expect((await dispatcherEnded).code).to.equal(0);
    await dispatcher.start();
    await untilWritten(30);
  });

  it("recovers when RabbitMQ is stopped, and waits for one that is not there yet", async () => {
    begin("rabbitmq-stopped");
    await untilWritten(30);
    await servers.rabbitMq.stop();
    expect((await fetch(`${api.healthOrigin}/readyz`)).status).to.equal(503);
    await untilWritten(30);

    expect((await dispatcher.end("SIGTERM", stopLimitMs)).code, "while RabbitMQ is away").to.equal(0);
    for (const time of ["first", "second"]) {
      const waits = dispatcher.untilLogged("waiting for RabbitMQ");
      dispatcher.launch();
      await waits;
      if (time === "second") break;
      expect((await dispatcher.end("SIGTERM", stopLimitMs)).code, "while it waits for RabbitMQ").to.equal(0);
    }

    await servers.rabbitMq.start();
    await dispatcher.untilReady();
    await untilFlowing();
    expect(api.isRunning()).to.equal(true);
  });

  it("recovers when RabbitMQ is killed", async () => {
    begin("rabbitmq-killed");
    await untilWritten(30);
    await servers.rabbitMq.kill();
    await untilWritten(30);
    await servers.rabbitMq.start();
    await untilFlowing();
    expect(api.isRunning()).to.equal(true);
    expect(dispatcher.isRunning()).to.equal(true);
  });

  it("restores what RabbitMQ lost", async () => {
    begin("rabbitmq-purged");
    for (let time = 0; time < 5; time += 1) {
      await untilWritten(20);
      await purgeQueues(servers.rabbitMq.url);
    }
  });

  describe("afterwards", () => {
    before(async () => {
      begin("end");
      await writers.stop();
      await until(() => isQuiet(scene.pool), { what: "every delivery to settle", timeoutMs: 60_000 });
    });

    it("has neither lost nor invented events", async () => {
      const { pool, audiences, arrivals } = scene;
      for (const label of labels) {
        const { tried } = writers;
        const ledger = await readLedger({ pool, label, audiences, arrivals: arrivals.all, tried });
        console.log(`      ${ledgerLine(ledger)}`);
        expectClean(ledger);
      }
      expect(writers.faults).to.deep.equal([]);
    });

    it("has repeated the interrupted POST, with the same delivery id and bytes", () => {
      const { delivery, body } = interrupted;
      const { all } = scene.arrivals;
      // The held one may itself be the repetition of a POST that was answered with 503.
      const others = all
        .slice(all.indexOf(interrupted) + 1)
        .filter((arrival) => arrival.delivery === delivery);
      expect(others).to.not.have.length(0);
      for (const other of others) expect(other.body.equals(body)).to.equal(true);
    });

    it("has repeated no POST whose answer came while PostgreSQL was away or its dispatcher was stopping", () => {
      const { all } = scene.arrivals;
      for (const held of answered) {
        // The held one may itself be the repetition of a POST that an earlier test cut.
        const same = all.slice(all.indexOf(held)).filter(({ delivery }) => delivery === held.delivery);
        expect(same.map(({ isAccepted }) => isAccepted)).to.deep.equal([true]);
      }
    });
  });
});
