import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import { createOutbox } from "../../src/events/outbox.ts";
import { createMetrics } from "../../src/metrics.ts";
import { createRelay, type Relay, type RelayOptions } from "../../src/events/relay.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { createEventPresenter } from "../../src/resources/present.ts";
import { runWorkers, type Running } from "../../src/running.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

/** Longer than any test: only a wake ends such a wait. */
const never = 600_000;
const requeueAfterMs = 60_000;

/** No relations, so nothing is read. */
const noModels = {} as ModelsClient;

const present: RelayOptions["present"] = async (events) =>
  events.map(({ snapshot }) => ({ kind: "presented", data: snapshot }));

describe("createRelay", () => {
  let core: CoreDatabase;
  let work: Work;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    broker = createWatchedBroker();
    running = undefined;
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  const addStranded = async (count: number): Promise<void> => {
    for (let record = 1; record <= count; record++)
      await work.addEvent({
        recordId: `lost ${record}`,
        publishedAt: inSeconds(-60),
        claimedUntil: inSeconds(-30 + record),
      });
  };

  function start(overrides: Partial<RelayOptions> = {}): Relay {
    const memory = createMemoryLog();
    lines = memory.lines;
    const relay = createRelay({
      outbox: createOutbox({ sql: core.sql }),
      present,
      broker,
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

  /** The record ids that were given to the broker, in order. */
  const published = (): readonly unknown[] =>
    broker.published.map(({ body }) => (JSON.parse(body.toString()) as { record_id: string }).record_id);
  const untilMarked = (recordId: string): Promise<unknown> =>
    until(
      async () =>
        (await work.events()).find((event) => event.recordId === recordId && event.publishedAt !== null),
      { what: `the event of record ${recordId} marked as published`, timeoutMs: 5_000 },
    );
  const untilPublished = (count: number): Promise<unknown> =>
    until(() => broker.published.length >= count, { what: `${count} messages`, timeoutMs: 4_000 });
  const eventOf = async (recordId: string) =>
    (await work.events()).find((event) => event.recordId === recordId);
  /** Ends the wait of a postponed event. */
  const endPostponements = (): Promise<unknown> =>
    core.sql("UPDATE svc.events SET claimed_until = now() WHERE published_at IS NULL");

  it("publishes an event as the envelope of the contract, and believes it in the broker", async () => {
    const event = await work.addEvent({ trigger: "on_update", ownerId: "7", snapshot: { text: "é" } });
    await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T14:30:00.123456Z'");

    start();
    await untilMarked("1");

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
    const believedForMs = ((await eventOf("1"))?.claimedUntil?.getTime() ?? 0) - Date.now();
    expect(believedForMs).to.be.within(requeueAfterMs - 10_000, requeueAfterMs);
  });

  it("writes one line for each turn, with what it took and how long that was", async () => {
    const events = [await work.addEvent({ recordId: "1" }), await work.addEvent({ recordId: "refused" })];

    start({
      present: async (given) =>
        given.map(({ recordId }) =>
          recordId === "refused" ? { kind: "refused", reason: "no" } : { kind: "presented", data: {} },
        ),
    });
    const turns = (): typeof lines => lines.filter(({ event }) => event === "relay.turn");
    await until(() => turns().length > 0, { what: "the line of a turn" });

    expect(turns()[0]).to.deep.include({
      claimed: 2,
      published: 1,
      postponed: 1,
      resources: ["notes"],
      eventUuids: events.map(({ uuid }) => uuid),
    });
    for (const duration of ["oldestAgeMs", "presentMs", "publishMs", "durationMs"])
      expect(turns()[0]?.[duration], duration).to.be.within(0, 10_000);
    expect(lines.find(({ event }) => event === "relay.postponed")).to.include({
      eventUuid: events[1]?.uuid,
      reason: "no",
    });
  });

  it("takes one full batch after another without waiting", async () => {
    for (let record = 1; record <= 12; record++) await work.addEvent({ recordId: String(record) });

    start({ pollIntervalMs: never });
    await untilMarked("12");

    expect(published()).to.deep.equal(Array.from({ length: 12 }, (_, index) => String(index + 1)));
  });

  it("does not forget a wake that comes in the middle of a turn", async () => {
    await work.addEvent({ recordId: "first" });
    const relay: Relay = start({
      pollIntervalMs: never,
      async present(events) {
        if (events[0]?.recordId === "first") {
          await work.addEvent({ recordId: "second" });
          relay.wake();
        }
        return present(events);
      },
    });

    await untilMarked("second");

    expect(published()).to.deep.equal(["first", "second"]);
  });

  it("finds what other writers committed, without a wake", async () => {
    start();
    await until(() => broker.isConnected(), { what: "a turn" });

    await work.addEvent();

    await untilMarked("1");
  });

  it("claims nothing while there is no broker, and goes on when there is one", async () => {
    await work.addEvent();
    broker.connected = false;
    let turns = 0;
    broker.isConnected = () => {
      turns += 1;
      return broker.connected;
    };

    start();
    await until(() => turns > 3, { what: "some turns" });

    expect((await eventOf("1"))?.claimedUntil).to.equal(null);
    broker.connected = true;
    await untilMarked("1");
  });

  describe("an event that cannot be shown", () => {
    let isBroken: boolean;

    beforeEach(async () => {
      isBroken = true;
      for (const recordId of ["1", "2", "3"])
        await work.addEvent({ recordId, snapshot: { id: Number(recordId), text: "hello" } });
    });

    const notes = definition({
      name: "notes",
      fields: [field("text", "String")],
      code: {
        transform({ id }) {
          if (isBroken && id === 2) throw new Error("no price for this one");
          return { id };
        },
      },
    });
    const presenting = (): RelayOptions["present"] =>
      createEventPresenter({
        definitions: definitionsOf(notes),
        models: noModels,
        log: createMemoryLog().log,
      });

    it("holds back no other, keeps the reason, and goes out once the transform is mended", async () => {
      start({ present: presenting() });
      await untilMarked("3");

      expect(published()).to.deep.equal(["1", "3"]);
      const held = await until(
        async () => {
          const event = await eventOf("2");
          return event?.relayError === null ? undefined : event;
        },
        { what: "the reason" },
      );
      expect(held.relayError).to.contain("notes").and.to.contain("no price for this one");
      expect(held).to.include({ publishedAt: null, relayFailures: 1 });

      isBroken = false;
      await endPostponements();
      await untilMarked("2");
      expect(published()).to.deep.equal(["1", "3", "2"]);
      expect((await eventOf("2"))?.relayError).to.equal(null);
    });

    it("waits when its resource is not in the mapping files", async () => {
      await work.addEvent({ recordId: "9", resource: "papers" });
      isBroken = false;

      start({ present: presenting() });
      await untilMarked("3");

      await until(async () => (await eventOf("9"))?.relayError !== null, { what: "the reason" });
      expect(await eventOf("9")).to.include({
        publishedAt: null,
        relayError: "The resource papers is not in the mapping files.",
      });
      expect(published()).to.deep.equal(["1", "2", "3"]);
    });
  });

  it("postpones what the broker does not confirm, and publishes it again later", async () => {
    const refused = await work.addEvent({ recordId: "1" });
    await work.addEvent({ recordId: "2" });
    broker.refuses = ({ messageId }) => messageId === refused.uuid;

    start();
    await untilMarked("2");

    await until(async () => (await eventOf("1"))?.relayError !== null, { what: "the reason" });
    expect(await eventOf("1")).to.include({
      relayError: "unconfirmed: nack",
      relayFailures: 1,
      publishedAt: null,
    });
    broker.refuses = () => false;
    await endPostponements();
    await untilMarked("1");
    expect(published()).to.deep.equal(["1", "2", "1"]);
  });

  it("waits twice as long after every failure, up to five minutes", async () => {
    const failures = [0, 3, 8, 9, 1_000_000];
    for (const relayFailures of failures) await work.addEvent({ relayFailures });
    broker.refuses = () => true;

    start({ pollIntervalMs: never });
    await until(async () => (await work.events()).every(({ relayError }) => relayError !== null), {
      what: "every event postponed",
    });

    const waits = (await work.events()).map(
      ({ claimedUntil }) => (claimedUntil?.getTime() ?? 0) - Date.now(),
    );
    const planned = [1_000, 8_000, 256_000, 300_000, 300_000];
    for (const [index, wait] of waits.entries()) {
      expect(wait, `after ${failures[index]}`).to.be.within(
        (planned[index] ?? 0) - 5_000,
        planned[index] ?? 0,
      );
    }
  });

  it("goes on after the database failed", async () => {
    await core.sql("ALTER TABLE svc.events RENAME TO events_away");
    const relay = start({ pollIntervalMs: never });
    try {
      await until(() => lines.some(({ msg }) => msg === "relay turn failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await core.sql("ALTER TABLE svc.events_away RENAME TO events");
    }
    await work.addEvent();

    await until(
      async () => {
        relay.wake();
        return (await eventOf("1"))?.publishedAt;
      },
      { what: "the event" },
    );
  });

  describe("events that the broker lost", () => {
    it("come back without a wait between batches", async () => {
      await broker.consume({
        queue: queues.fanout,
        prefetch: 100,
        onMessage: (message) => message.ack(),
      });
      await addStranded(12);

      start();
      await untilPublished(12);

      expect(published()).to.deep.equal(Array.from({ length: 12 }, (_, index) => `lost ${index + 1}`));
      expect(lines.filter(({ event }) => event === "relay.stranded").map(({ events }) => events))
        .to //
        .deep.equal([5, 5, 2]);
    });

    it("stay while the queue holds messages: then the fan-out is behind, and nothing is lost", async () => {
      await addStranded(1);
      await work.addEvent({ recordId: "first" });
      const relay = start({ pollIntervalMs: never });
      // Nobody consumes, so that this one stays in the queue.
      await untilMarked("first");

      await work.addEvent({ recordId: "second" });
      relay.wake();
      await untilMarked("second");

      expect(published()).to.deep.equal(["first", "second"]);
    });
  });
});
