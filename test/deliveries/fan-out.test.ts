import { expect } from "chai";
import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { exchanges } from "../../src/broker/topology.ts";
import type { EventModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import type { Attempts, DeliveryInFlight } from "../../src/deliveries/attempt/attempts.ts";
import type { Place } from "../../src/deliveries/admission/admission.ts";
import { deliveryUuidOf } from "../../src/deliveries/delivery-uuid.ts";
import { createFanOut, type FanOutOptions } from "../../src/deliveries/fan-out.ts";
import { createDeliveryStore, type DeliveryStore } from "../../src/deliveries/store.ts";
import { eventMessage } from "../../src/events/event-message.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
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
  let started: DeliveryInFlight[];
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
      findSubscribers: createSubscriberFinder({ sql: core.sql, eligibility: notesEligibility() }),
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
  const addEvents = async (count: number): Promise<readonly EventModel[]> => {
    const events = [];
    for (let one = 0; one < count; one++)
      events.push(await work.addEvent({ ownerId: String(subscription.userId) }));
    return events;
  };

  it("makes one delivery for each subscription that matches, and begins to attempt it in one flight", async () => {
    const second = await work.addSubscription({ userId: subscription.userId });
    await work.addSubscription();
    await work.addSubscription({ userId: subscription.userId, events: ["on_delete"] });
    start();

    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    const rows = (await work.deliveries()).toSorted(
      (one, other) => one.subscriptionId - other.subscriptionId,
    );
    expect(rows.map(({ subscriptionId }) => subscriptionId)).to.deep.equal([subscription.id, second.id]);
    expect(rows.map(({ uuid }) => uuid)).to.deep.equal(
      [subscription, second].map(({ id }) => deliveryUuidOf(event.uuid, id)),
    );
    expect(rows[0]).to.include({ maxAttempts: 4, url: subscription.url, eventUuid: event.uuid });
    expect(await work.outbox()).to.deep.equal([]);
    const [one, ...more] = started.toSorted((first, other) => first.subscriptionId - other.subscriptionId);
    expect(more).to.have.length(1);
    const { flight, data, happenedAtMs, subscription: target, ...rest } = one as DeliveryInFlight;
    expect(rest).to.deep.equal({
      id: String(rows[0]?.id),
      uuid: rows[0]?.uuid,
      eventId: String(event.id),
      eventUuid: event.uuid,
      event: "on_create",
      resource: "notes",
      timestamp: "2026-03-28T14:30:00.123456Z",
      attempt: 0,
      maxAttempts: 4,
      isManual: false,
      traceparent: null,
      subscriptionId: subscription.id,
    });
    expect(target.url).to.equal(subscription.url);
    expect(target.encryptedSecret).to.deep.equal(Buffer.from(subscription.encryptedSecret));
    expect(target.user).to.include({ id: subscription.userId, name: "Ada", isAdmin: false });
    expect(String(data)).to.equal('{"text":"é"}');
    const ageMs = Date.now() - Date.parse("2026-03-28T14:30:00.123Z");
    expect(performance.now() - happenedAtMs).to.be.closeTo(ageMs, 10_000);
    const [row, ...flights] = await work.flights();
    expect(flights).to.deep.equal([]);
    expect(flight).to.deep.equal({ id: String(row?.id), unwritten: 2 });
    expect(more[0]?.flight).to.equal(flight);
    expect(madeOfIt()).to.deep.equal([]);
    expect(admission.asked[0]).to.deep.equal({
      userId: subscription.userId,
      url: subscription.url,
      lane: "first",
      bytes: 13,
      isUrgent: false,
    });
  });

  it("leaves to the queue what there is no slot for, and tells the others", async () => {
    const busy = await work.addSubscription({ userId: subscription.userId, url: "http://127.0.0.1:9/busy" });
    admission.refuses = ({ url }) => (url === busy.url ? "busy" : undefined);
    start();

    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    const rows = await work.deliveries();
    const [taken, waiting] = [subscription, busy].map(({ id }) =>
      rows.find(({ subscriptionId }) => subscriptionId === id),
    );
    expect(started.map(({ id }) => id)).to.deep.equal([String(taken?.id)]);
    expect(started[0]?.flight.unwritten).to.equal(1);
    expect((await work.flights())[0]?.deliveryIds).to.deep.equal([taken?.id]);
    expect(await work.queued(taken?.id ?? 0n)).to.equal(null);
    expect(await work.queued(waiting?.id ?? 0n)).to.include({ dueAt: null });
    expect(parked).to.equal(1);
    expect(madeOfIt().map(({ exchange, routingKey, messageId }) => [exchange, routingKey, messageId]))
      .to //
      .deep.equal([[exchanges.deliveries, "first", waiting?.uuid]]);
  });

  it("tells of no more than four of those that wait", async () => {
    admission.refuses = () => "busy";
    const events = [event, ...(await addEvents(9))];
    start();

    await broker.publish(events.map(messageOf));
    await until(async () => (await work.outbox()).length === 0, { what: "the outbox to be empty" });

    const turns = lines.filter(({ event: name }) => name === "fan_out.turn").length;
    expect(madeOfIt().length).to.be.at.most(4 * turns);
    expect(started).to.deep.equal([]);
  });

  it("writes one line for each turn, with its events and how long it was", async () => {
    start();

    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    const turn = lines.find(({ event: name }) => name === "fan_out.turn");
    expect(turn).to.deep.include({
      events: 1,
      deliveries: 1,
      waiting: 0,
      resources: ["notes"],
      eventUuids: [event.uuid],
    });
    expect(turn?.["durationMs"]).to.be.within(0, 10_000);
  });

  it("takes an event out of the outbox that nobody subscribes to", async () => {
    await core.sql("DELETE FROM svc.subscriptions");
    start();

    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    expect(await work.outbox()).to.deep.equal([]);
    expect(await work.flights()).to.deep.equal([]);
  });

  it("writes the deliveries of many subscriptions in portions, each its flight, and the event's end with the last", async () => {
    await core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
       SELECT user_id, url || n, resource, events, encrypted_secret, secret_hint FROM svc.subscriptions CROSS JOIN generate_series(1, 1100) AS n`,
    );
    const inserts: [number, boolean, boolean][] = [];
    start({
      store: {
        async insert(options) {
          const answer = await store.insert(options);
          const isThere = (await work.outbox()).length > 0;
          inserts.push([options.deliveries.length, options.isComplete, isThere]);
          return answer;
        },
      },
    });

    await broker.publish([messageOf(event)]);
    await untilTurns(1);

    expect(inserts).to.deep.equal([
      [500, false, true],
      [500, false, true],
      [101, true, false],
    ]);
    expect(new Set(started.map(({ id }) => id)).size).to.equal(1_101);
    expect((await work.flights()).map(({ deliveryIds }) => deliveryIds.length)).to.have.members([
      500, 500, 101,
    ]);
  });
});
