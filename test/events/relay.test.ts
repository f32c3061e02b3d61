import { expect } from "chai";
import { createSeal } from "../../src/broker/seal.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import { eventOf } from "../../src/events/event-message.ts";
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
const refused: Presented = { kind: "refused", reason: "no price for this one" };
const present: RelayOptions["present"] = async (_, events) => ({
  kind: "each",
  answers: events.map(({ snapshot }) => presented(snapshot)),
});
const numbers = (count: number): string[] => Array.from({ length: count }, (_, index) => String(index + 1));

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

  it("publishes an event as the sealed envelope of the contract, once", async () => {
    const event = await work.addEvent({ trigger: "on_update", ownerId: "7", snapshot: { text: "é" } });
    await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T14:30:00.123456Z'");

    start({ outbox: counted() });
    await untilPublished(1);
    await untilTurns(5);

    const [message, ...more] = broker.published;
    expect(more).to.deep.equal([]);
    expect(message).to.include({
      exchange: exchanges.events,
      routingKey: "notes.on_update",
      messageId: event.uuid,
    });
    expect(JSON.parse(String(message?.body))).to.deep.equal({
      event_id: event.uuid,
      event: "on_update",
      resource: "notes",
      record_id: "1",
      owner_id: "7",
      data: { text: "é" },
      timestamp: "2026-03-28T14:30:00.123456Z",
    });
    const incoming = { ...message, isRedelivered: false } as unknown as Parameters<typeof eventOf>[0];
    expect(eventOf(incoming, seal)).to.include({ id: String(event.id) });
  });

  it("writes one line for each turn, with what it read and how long that was", async () => {
    const events = [await work.addEvent({ recordId: "1" }), await work.addEvent({ recordId: "refused" })];

    start({
      present: async (_, given) => ({
        kind: "each",
        answers: given.map(({ recordId }) => (recordId === "refused" ? refused : presented({}))),
      }),
    });
    const turn = await untilLine("relay.turn");

    expect(turn).to.deep.include({
      resource: "notes",
      read: 2,
      published: 1,
      eventUuids: events.map(({ uuid }) => uuid),
    });
    for (const duration of ["oldestAgeMs", "publishMs"])
      expect(turn[duration], duration).to.be.within(0, 10_000);
    expect(lines.find(({ event }) => event === "relay.refused")).to.deep.include({
      eventUuids: [events[1]?.uuid],
      reason: "no price for this one",
    });
  });

  it("takes one full batch after another, in order", async () => {
    await addEvents(12);

    start();
    await untilPublished(12);

    expect(published()).to.deep.equal(numbers(12));
  });

  it("does not forget a wake that comes in the middle of a turn", async () => {
    await work.addEvent({ recordId: "first" });
    const relay: Relay = start({
      pollIntervalMs: never,
      async present(resource, events) {
        if (events[0]?.recordId === "first") {
          await work.addEvent({ recordId: "second" });
          relay.wake();
        }
        return present(resource, events);
      },
    });

    await until(() => (relay.wake(), broker.published.length === 2), { what: "the second" });

    expect(published()).to.deep.equal(["first", "second"]);
  });

  it("reads nothing while there is no broker, leaves its share to others, and goes on when there is one", async () => {
    await work.addEvent();
    broker.connected = false;
    let turns = 0;
    broker.isConnected = () => {
      turns += 1;
      return broker.connected;
    };

    start();
    await until(() => turns > 3, { what: "some turns" });
    expect(await core.sql("SELECT name FROM svc.relays")).to.deep.equal([]);

    broker.connected = true;
    await untilPublished(1);
  });

  describe("an event that cannot be shown", () => {
    it("holds back no other, and goes out once the transform is mended, after waits that double", async () => {
      let isBroken = true;
      let asked = 0;
      await addEvents(3);
      start({
        async present(_, events) {
          asked += events.filter(({ recordId }) => recordId === "2").length;
          return {
            kind: "each",
            answers: events.map(({ recordId, snapshot }) =>
              isBroken && recordId === "2" ? refused : presented(snapshot),
            ),
          };
        },
        outbox: counted(),
      });
      await untilPublished(2);
      expect(published()).to.deep.equal(["1", "3"]);

      for (const [waitMs, times] of [
        [1_000, 2],
        [2_000, 3],
      ] as const) {
        expect(asked).to.equal(times - 1);
        skewMs += waitMs;
        await until(() => asked === times, { what: `try ${times}` });
        await untilTurns(2);
      }
      isBroken = false;
      skewMs += 4_000;
      await untilPublished(3);
      expect(published()).to.deep.equal(["1", "3", "2"]);
    });

    it("waits when its resource is not in the mapping files, which the log says", async () => {
      await work.addEvent({ recordId: "9", resource: "strangers" });
      await addEvents(1);

      start();
      await untilPublished(1);

      expect(await untilLine("relay.unknown_resource")).to.include({ resource: "strangers" });
      expect(published()).to.deep.equal(["1"]);
      expect(await work.outbox()).to.have.length(2);
    });

    it("is published later when there are too many of them to be kept in mind one by one", async () => {
      const count = 10_400;
      await addEvents(count);
      let isBroken = true;
      let refusals = 0;
      await fanOut();
      // None is tried again before all have failed.
      stoppedAtMs = performance.now() - skewMs;
      start({
        batchSize: 400,
        present: async (_, events) => ({
          kind: "each",
          // Never all of a read: the resource does not fail as a whole.
          answers: events.map(({ snapshot }, index) => {
            if (!isBroken || index === 0) return presented(snapshot);
            refusals += 1;
            return refused;
          }),
        }),
      });
      await until(() => refusals > 10_050, { what: "too many" });
      isBroken = false;
      stoppedAtMs = undefined;

      await until(
        () => {
          skewMs += 200;
          return new Set(published()).size === count;
        },
        { what: "every event", timeoutMs: never },
      );
    });
  });

  it("publishes again what the broker does not confirm", async () => {
    const first = await work.addEvent({ recordId: "1" });
    await work.addEvent({ recordId: "2" });
    broker.refuses = ({ messageId }) => messageId === first.uuid;

    start();
    expect(await untilLine("relay.unconfirmed")).to.deep.include({ events: 1, eventUuids: [first.uuid] });

    broker.refuses = () => false;
    skewMs += 1_000;
    await untilPublished(3);
    expect(published()).to.deep.equal(["1", "2", "1"]);
  });
});
