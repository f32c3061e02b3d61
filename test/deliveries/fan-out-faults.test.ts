import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { EventModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import type { Attempts, DeliveryInHand } from "../../src/deliveries/attempt/attempts.ts";
import type { Place } from "../../src/deliveries/admission/admission.ts";
import { createFanOut, type FanOutOptions } from "../../src/deliveries/fan-out.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import { eventMessage } from "../../src/events/event-message.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWatchedAdmission, createWork, type WatchedAdmission, type Work } from "../support/work.ts";

const seal = createSeal(Buffer.alloc(32, 1));

const messageOf = ({ id, uuid, ownerId }: Pick<EventModel, "id" | "uuid" | "ownerId">): OutgoingMessage =>
  eventMessage({
    event: {
      id: String(id),
      uuid,
      resource: "notes",
      trigger: "on_create",
      recordId: "1",
      ownerId,
      timestamp: "2026-03-28T14:30:00.123456Z",
    },
    data: '{"text":"é"}',
    seal,
  });

const foreignMessage: OutgoingMessage = {
  exchange: exchanges.events,
  routingKey: "x",
  messageId: "theirs",
  body: Buffer.from("what is this?"),
};

// What comes twice, fails or is not an event; fan-out.test.ts has the rest.
describe("createFanOut", () => {
  let core: CoreDatabase;
  let work: Work;
  let store: DeliveryStore;
  let broker: WatchedBroker;
  let admission: WatchedAdmission;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;
  let event: EventModel;
  let started: DeliveryInHand[];
  let places: Place[];
  let parked: number;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    store = createDeliveryStore({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    event = await work.addEvent({ ownerId: String(subscription.userId) });
    broker = createWatchedBroker();
    admission = createWatchedAdmission();
    running = undefined;
    started = [];
    places = [];
    parked = 0;
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(overrides: Partial<FanOutOptions> = {}): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    const metrics = createMetrics();
    const attempts: Pick<Attempts, "start" | "drain"> = {
      start: (delivery, place) => void (started.push(delivery), places.push(place)),
      drain: async () => undefined,
    };
    const fanOut = createFanOut({
      broker,
      seal,
      store,
      findSubscribers: createSubscriberFinder({
        sql: core.sql,
        possibleAdminsOf: () => ({ kind: "nobody" }),
        isAdminFor: () => false,
      }),
      scheduleOf: () => ({ maxAttempts: 4, backoffMs: [] }),
      admission,
      attempts,
      flightMs: 60_000,
      onParked: () => (parked += 1),
      log: memory.log,
      metrics: { ...metrics.events, ...metrics.deliveries },
      ...overrides,
    });
    running = runWorkers({ workers: [fanOut], log: memory.log });
  }

  /** What was published besides the events themselves. */
  const madeOfIt = (): readonly OutgoingMessage[] =>
    broker.published.filter(({ exchange }) => exchange !== exchanges.events);
  const untilTurns = (count: number): Promise<unknown> =>
    until(() => lines.filter(({ event: name }) => name === "fan_out.turn").length >= count, {
      what: `${count} turns`,
    });
  const untilFailed = (): Promise<unknown> =>
    until(() => lines.some(({ msg }) => msg === "fan-out turn failed; giving the events back"), {
      what: "a failed turn",
    });
  const addEvents = async (count: number): Promise<readonly EventModel[]> => {
    const events = [];
    for (let one = 0; one < count; one++)
      events.push(await work.addEvent({ ownerId: String(subscription.userId) }));
    return events;
  };

  it("makes one delivery, attempted once, of an event that comes again and again, and keeps no slot for the others", async () => {
    start();
    await broker.publish([messageOf(event), messageOf(event)]);
    await untilTurns(1);

    await broker.publish([messageOf(event)]);
    await untilTurns(2);

    expect(await work.deliveries()).to.have.length(1);
    expect(started).to.have.length(1);
    expect(admission.held).to.equal(1);
    expect(started[0]?.flight.inHand).to.equal(1);
  });

  it("counts an event that comes again once, and each of those beside it", async () => {
    const counts: unknown[] = [];
    const other = await work.addEvent();
    start({
      metrics: { fannedOut: (count) => counts.push(count), deadLettered: () => undefined },
    });
    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    await broker.publish([messageOf(event), messageOf(other)]);
    await untilTurns(2);

    expect(counts).to.deep.equal([
      { events: 1, deliveries: 1 },
      { events: 1, deliveries: 0 },
    ]);
  });

  it("makes nothing of an event that is not in the outbox", async () => {
    start();

    await broker.publish([messageOf({ id: 9_000_000n, uuid: randomUUID(), ownerId: event.ownerId })]);
    await untilTurns(1);

    expect(await work.deliveries()).to.deep.equal([]);
    expect(admission.held).to.equal(0);
    expect(await broker.depth(queues.fanout)).to.equal(0);
  });

  describe("with a fault", () => {
    it("gives the events back while the database is away, with their slots, and loses none", async () => {
      const events = [event, ...(await addEvents(4))];
      let isAway = true;
      start({
        store: {
          insert: (options) =>
            isAway
              ? Promise.reject(Object.assign(new Error("cut"), { code: "ECONNREFUSED" }))
              : store.insert(options),
        },
      });
      await broker.publish(events.map(messageOf));
      await untilFailed();
      expect([admission.held, started.length]).to.deep.equal([0, 0]);

      isAway = false;

      await until(async () => (await work.deliveries()).length === 5, { what: "a delivery for every event" });
      await until(() => started.length === 5, { what: "every attempt" });
      expect(admission.held).to.equal(5);
    });

    it("halves a batch until the event is alone that fails, which stays in the outbox, and fans out the others once", async () => {
      const others = await addEvents(6);
      const bad = others[3] as EventModel;
      start({
        store: {
          async insert(options) {
            if (options.events.some(({ id }) => id === String(bad.id))) throw new Error("cannot be written");
            return store.insert(options);
          },
        },
      });

      await broker.publish([event, ...others].map(messageOf));
      await until(() => lines.some(({ eventUuid }) => eventUuid === bad.uuid), {
        what: "the line of the bad one",
      });
      await until(() => started.length === 6, { what: "the others" });
      await running?.stop();

      expect(await work.outbox()).to.deep.equal([bad.id]);
      expect(await work.deliveries()).to.have.length(6);
      expect(admission.held).to.equal(6);
      // The relay publishes it again.
      expect(await broker.depth(queues.fanout)).to.equal(0);
    });

    it("goes on with what is missing after a batch that failed half way, and attempts none twice", async () => {
      await core.sql(
        `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
         SELECT user_id, url || n, resource, events, encrypted_secret, secret_hint FROM svc.subscriptions CROSS JOIN generate_series(1, 600) AS n`,
      );
      let inserts = 0;
      start({
        store: {
          async insert(options) {
            inserts += 1;
            if (inserts === 2) throw Object.assign(new Error("cut"), { code: "ECONNREFUSED" });
            return store.insert(options);
          },
        },
      });

      await broker.publish([messageOf(event)]);
      await untilFailed();
      expect([started.length, admission.held]).to.deep.equal([500, 500]);
      await until(() => started.length === 601, { what: "every attempt" });

      expect(new Set(started.map(({ id }) => id)).size).to.equal(601);
      expect(await work.deliveries()).to.have.length(601);
      expect(await work.outbox()).to.deep.equal([]);
      expect(admission.held).to.equal(601);
    });
  });

  for (const [what, message] of [
    ["a message that is no event", () => foreignMessage],
    [
      "an event with somebody else's seal",
      () => ({
        ...messageOf(event),
        headers: { "x-svc-id": String(event.id), "x-svc-data": "0:1", "x-svc-seal": "AAAA" },
      }),
    ],
  ] as const) {
    it(`puts ${what} on svc.dead as it came, and goes on with the others`, async () => {
      const [other] = await addEvents(1);
      const foreign = message();
      start();

      await broker.publish([foreign, messageOf(other as EventModel)]);
      await untilTurns(1);
      await running?.stop();

      const [dead] = madeOfIt();
      expect(dead).to.include({ exchange: exchanges.dead, messageId: foreign.messageId, body: foreign.body });
      expect(dead?.headers).to.deep.equal({ "x-svc-reason": "not an event of this service" });
      expect((await work.deliveries()).map(({ eventUuid }) => eventUuid)).to.deep.equal([other?.uuid]);
      expect(await work.outbox()).to.deep.equal([event.id]);
      expect(await broker.depth(queues.fanout)).to.equal(0);
    });
  }

  it("gives a foreign message back while svc.dead does not confirm it", async () => {
    broker.refuses = ({ exchange }) => exchange === exchanges.dead;
    start();
    await broker.publish([foreignMessage]);
    await until(() => madeOfIt().length > 0, { what: "the try" });

    broker.refuses = () => false;

    await until(async () => (await broker.depth(queues.dead)) === 1, { what: "the dead letter" });
  });

  it("finishes on stop what it had taken, and takes no more", async () => {
    start();
    await broker.publish([messageOf(event)]);
    await until(async () => (await broker.depth(queues.fanout)) === 0, { what: "the message taken" });

    await running?.stop();
    await broker.publish([messageOf(event)]);

    expect(await work.outbox()).to.deep.equal([]);
    expect(started).to.have.length(1);
    expect(await broker.depth(queues.fanout)).to.equal(1);
  });
});
