import { expect } from "chai";
import { createSeal } from "../../src/broker/seal.ts";
import { queues } from "../../src/broker/topology.ts";
import { createOutbox, type Outbox } from "../../src/events/outbox.ts";
import { createRelayShares } from "../../src/events/relay-shares.ts";
import { createRelay, type Presented, type Relay, type RelayOptions } from "../../src/events/relay.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWork, type Work } from "../support/work.ts";

/** Longer than any test: only a wake ends such a wait. */
const never = 600_000;
const requeueAfterMs = 60_000;
const seal = createSeal(Buffer.alloc(32, 1));

const presented = (data: unknown): Presented => ({ kind: "presented", data });
const present: RelayOptions["present"] = async (_, events) => ({
  kind: "each",
  answers: events.map(({ snapshot }) => presented(snapshot)),
});
const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index + 1));

// What is published again, and what is left to others; relay.test.ts has the rest.
describe("createRelay", () => {
  let core: CoreDatabase;
  let work: Work;
  let outbox: Outbox;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  /** How far the clock of the relay has been put forward. */
  let skewMs: number;
  /** What the real clock is stopped at. */
  let stoppedAtMs: number | undefined;
  const realNow = performance.now.bind(performance);

  before(async () => {
    performance.now = () => (stoppedAtMs ?? realNow()) + skewMs;
    skewMs = 0;
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    outbox = createOutbox({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    broker = createWatchedBroker();
    running = undefined;
  });

  afterEach(async () => {
    stoppedAtMs = undefined;
    await running?.stop();
    await broker.close();
  });

  after(async () => {
    performance.now = realNow;
    await core.close();
  });

  function start(overrides: Partial<RelayOptions> = {}): Relay {
    const memory = createMemoryLog();
    lines = memory.lines;
    const relay = createRelay({
      outbox,
      shares: createRelayShares({ sql: core.sql, name: "svc" }),
      resources: ["notes", "papers"],
      present,
      broker,
      seal,
      log: memory.log,
      metrics: createMetrics().events,
      pollIntervalMs: 5,
      batchSize: 5,
      requeueAfterMs,
      ...overrides,
    });
    running = runWorkers({ workers: [relay], log: memory.log });
    return relay;
  }

  const addEvents = (count: number, resource = "notes"): Promise<unknown> =>
    core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT $2, 'on_create', n, jsonb_build_object('n', n) FROM generate_series(1, $1::int) AS n ORDER BY n`,
      [count, resource],
    );
  /** Takes events out of the outbox as soon as they are published, as the fan-out does. */
  const fanOut = (): Promise<unknown> =>
    broker.consume({
      queue: queues.fanout,
      prefetch: 1_000,
      onMessage: (message) =>
        void core
          .sql("DELETE FROM svc.outbox WHERE event_id = $1", [message.headers["x-svc-id"]])
          .then(() => message.ack()),
    });
  /** The record ids that were given to the broker, in order. */
  const published = (): readonly string[] =>
    broker.published.map(({ body }) => (JSON.parse(body.toString()) as { record_id: string }).record_id);
  const untilPublished = (count: number): Promise<unknown> =>
    until(() => broker.published.length >= count, { what: `${count} messages` });
  const untilLine = (name: string): Promise<Record<string, unknown>> =>
    until(() => lines.find(({ event }) => event === name), { what: `a line ${name}` });
  const untilTurns = (count: number): Promise<unknown> => {
    const goal = reads + count;
    return until(() => reads >= goal, { what: `${count} turns` });
  };
  const untilChecks = (count: number): Promise<unknown> => {
    const goal = checks + count;
    return until(
      () => {
        skewMs += 100;
        return checks >= goal;
      },
      { what: `${count} checks`, timeoutMs: never },
    );
  };
  let reads = 0;
  /** Looks for what is still in the outbox of what is in flight. */
  let checks = 0;
  const counted = (): Outbox => ({
    ...outbox,
    waiting(ids) {
      checks += 1;
      return outbox.waiting(ids);
    },
    read(options) {
      reads += 1;
      return outbox.read(options);
    },
  });

  const addOther = (): Promise<unknown> => createRelayShares({ sql: core.sql, name: "other" }).beat();
  const addOf = (writer: string, count: number): Promise<unknown> =>
    core.sql(
      `WITH writer AS (SELECT set_config('application_name', $1, false) AS name)
       INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'notes', 'on_create', $1 || n, '{}' FROM writer CROSS JOIN generate_series(1, $2::int) AS n`,
      [writer, count],
    );

  describe("a resource of which nothing can be shown", () => {
    for (const [what, answer] of [
      ["for a fault of its own", { kind: "none", reason: "no scope", isPassing: false }],
      ["since the database is away", { kind: "none", reason: "cut", isPassing: true }],
    ] as const) {
      it(`rests, ${what}, holds back no other, and loses none of a bulk`, async () => {
        await addEvents(60);
        await addEvents(3, "papers");
        let isBroken = true;
        let tries = 0;
        start({
          batchSize: 50,
          outbox: counted(),
          async present(resource, events) {
            if (resource !== "notes" || !isBroken) return present(resource, events);
            tries += 1;
            return answer;
          },
        });
        await untilPublished(3);
        expect(await untilLine("relay.resting")).to.deep.include({
          resource: "notes",
          reason: answer.reason,
          retryInMs: 1_000,
        });
        await untilTurns(10);
        expect(tries).to.equal(1);

        skewMs += 1_000;
        await until(() => tries === 2, { what: "a probe" });
        isBroken = false;
        skewMs += 2_000;

        await untilPublished(63);
        expect(published().slice(3).toSorted()).to.deep.equal(numbers(60).toSorted());
        expect(lines.some(({ event }) => event === "relay.recovered")).to.equal(true);
      });
    }
  });

  it("goes on after the database failed, and after a present that rejects", async () => {
    await core.sql("ALTER TABLE svc.outbox RENAME TO outbox_away");
    let isBroken = true;
    const relay = start({
      pollIntervalMs: never,
      present: (resource, events) =>
        isBroken ? Promise.reject(new Error("a bug")) : present(resource, events),
    });
    try {
      await until(() => lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await core.sql("ALTER TABLE svc.outbox_away RENAME TO outbox");
    }
    await work.addEvent();
    await until(() => (relay.wake(), lines.some(({ msg }) => msg === "relay failed; trying again")), {
      what: "a failed present",
    });
    isBroken = false;
    skewMs += 1_000;

    await until(() => (relay.wake(), broker.published.length > 0), { what: "the event" });
  });

  it("has no more than a thousand in flight, and goes on as they are fanned out", async () => {
    start({ batchSize: 400, outbox: counted() });
    for (const expected of [390, 780, 1_000]) {
      await addEvents(390);
      await untilPublished(expected);
    }
    await untilChecks(3);
    expect(broker.published).to.have.length(1_000);

    await fanOut();
    skewMs += 1_000;

    await untilPublished(1_170);
  });

  it("has a fifth of that for a backlog, which what is new passes", async () => {
    await addEvents(1_300);
    start({ batchSize: 100, outbox: counted() });
    await untilPublished(200);
    await untilChecks(3);
    expect(broker.published.length).to.be.within(200, 299);

    await work.addEvent({ recordId: "new" });
    await until(() => published().includes("new"), { what: "what is new" });

    await fanOut();
    skewMs += 1_000;
    await untilPublished(1_301);
    expect(new Set(published())).to.deep.equal(new Set([...numbers(1_300), "new"]));
  });

  describe("events that are not fanned out in time", () => {
    it("are published again once the queue is empty: then the broker has lost them", async () => {
      await broker.consume({ queue: queues.fanout, prefetch: 100, onMessage: (message) => message.ack() });
      await addEvents(3);
      start();
      await untilPublished(3);

      // The first second is of the wait after a failure.
      skewMs += 5_001;
      expect(await untilLine("relay.stranded")).to.include({ events: 3 });
      skewMs += 1_000;

      await until(
        () => {
          skewMs += 1_000;
          return broker.published.length >= 6;
        },
        { what: "all again", timeoutMs: never },
      );
      expect(new Set(published())).to.deep.equal(new Set(numbers(3)));
    });

    it("stay while the queue holds messages, for as long as that is believed", async () => {
      await addEvents(3);
      start({ outbox: counted() });
      await untilPublished(3);

      skewMs += 2 * requeueAfterMs;
      await untilTurns(5);
      expect(published(), "all three are in the queue").to.have.length(3);

      // It takes one, and does nothing about it.
      await broker.consume({ queue: queues.fanout, prefetch: 1, onMessage: () => undefined });
      await untilLine("relay.stranded");
      skewMs += 1_000;
      await untilPublished(6);
    });

    it("are published again when a crash of the database brings them back", async () => {
      await work.addEvent();
      const [row] = await core.sql("SELECT * FROM svc.outbox");
      await fanOut();
      start({ outbox: counted() });
      await until(async () => (await work.outbox()).length === 0, { what: "the fan-out" });
      await untilChecks(1);

      await core.sql(
        "INSERT INTO svc.outbox (event_id, transaction_id, resource, writer, bytes) VALUES ($1, $2, $3, $4, $5)",
        Object.values(row as object),
      );

      await until(
        () => {
          skewMs += 500;
          return broker.published.length >= 2;
        },
        { what: "the event again", timeoutMs: never },
      );
    });
  });

  describe("beside another relay", () => {
    it("leaves it its events, until it says nothing any more; then it publishes them, and its own once", async () => {
      await addOther();
      await addOf("other", 2);
      await addOf("svc", 2);
      start({ outbox: counted() });
      await untilPublished(2);
      await untilTurns(5);
      expect(published()).to.have.members(["svc1", "svc2"]);

      await core.sql("UPDATE svc.relays SET seen_at = now() - interval '5 seconds' WHERE name = 'other'");
      skewMs += 1_000;

      await untilPublished(4);
      expect(published()).to.have.members(["svc1", "svc2", "other1", "other2"]);
    });

    it("publishes half of what nobody of them wrote", async () => {
      await addOther();
      await addOf("psql", 20);

      start({ outbox: counted() });
      await untilPublished(10);
      await untilTurns(5);

      expect(broker.published).to.have.length(10);
    });

    it("leaves its share on stop", async () => {
      start({ outbox: counted() });
      await untilTurns(1);
      expect(await core.sql("SELECT name FROM svc.relays")).to.deep.equal([{ name: "svc" }]);

      await running?.stop();

      expect(await core.sql("SELECT name FROM svc.relays")).to.deep.equal([]);
    });
  });

  it("publishes on stop what it is presenting", async () => {
    let go: (() => void) | undefined;
    await addEvents(2);
    start({
      async present(resource, events) {
        await new Promise<void>((resolve) => (go = resolve));
        return present(resource, events);
      },
    });
    await until(() => go, { what: "the present" });

    const stopped = running?.stop();
    go?.();
    await stopped;

    expect(published()).to.deep.equal(["1", "2"]);
  });
});
