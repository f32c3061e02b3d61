import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { EventModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import { createFanOut } from "../../src/deliveries/fan-out.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { createSweep } from "../../src/deliveries/sweep.ts";
import { createMetrics } from "../../src/metrics.ts";
import { runWorkers, type Running } from "../../src/running.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWork, type Work } from "../support/work.ts";

function eventMessage({ uuid, ownerId }: Pick<EventModel, "uuid" | "ownerId">): OutgoingMessage {
  const envelope = {
    event_id: uuid,
    event: "on_create",
    resource: "notes",
    record_id: "1",
    owner_id: ownerId,
    data: { text: "é" },
    timestamp: "2026-03-28T14:30:00.123456Z",
  };
  return {
    exchange: exchanges.events,
    routingKey: "notes.on_create",
    messageId: uuid,
    body: Buffer.from(JSON.stringify(envelope)),
  };
}

const foreignMessage: OutgoingMessage = {
  exchange: exchanges.events,
  routingKey: "x",
  messageId: "theirs",
  body: Buffer.from("what is this?"),
};

describe("createFanOut", () => {
  let core: CoreDatabase;
  let work: Work;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;
  let event: EventModel;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    event = await work.addEvent({ ownerId: String(subscription.userId) });
    broker = createWatchedBroker();
    running = undefined;
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(requeueAfterMs = 60_000): void {
    const memory = createMemoryLog();
    lines = memory.lines;
    const metrics = createMetrics();
    const fanOut = createFanOut({
      broker,
      store: createDeliveryStore({ sql: core.sql }),
      findSubscribers: createSubscriberFinder({
        sql: core.sql,
        possibleAdminsOf: () => ({ kind: "nobody" }),
        isAdminFor: () => false,
      }),
      scheduleOf: () => ({ maxAttempts: 4, backoffMs: [] }),
      requeueAfterMs,
      log: memory.log,
      metrics: { ...metrics.events, ...metrics.deliveries },
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

  it("makes one delivery for each subscription that matches, and publishes it as fresh work", async () => {
    const second = await work.addSubscription({ userId: subscription.userId });
    await work.addSubscription();
    await work.addSubscription({ userId: subscription.userId, events: ["on_delete"] });
    start();

    await broker.publish([eventMessage(event)]);
    await untilTurns(1);

    const rows = await work.deliveries();
    expect(rows.map(({ subscriptionId }) => subscriptionId)).to.deep.equal([subscription.id, second.id]);
    expect(madeOfIt().map(({ exchange, routingKey, messageId }) => [exchange, routingKey, messageId]))
      .to //
      .have.deep.members(rows.map(({ uuid }) => [exchanges.deliveries, "first", uuid]));
    expect(rows[0]).to.include({ maxAttempts: 4, url: subscription.url, eventUuid: event.uuid });
    expect(JSON.parse(Buffer.from(rows[0]?.body ?? []).toString())).to.deep.equal({
      event: "on_create",
      resource: "notes",
      event_id: event.uuid,
      delivery_id: rows[0]?.uuid,
      data: { text: "é" },
      timestamp: "2026-03-28T14:30:00.123456Z",
    });
  });

  it("writes one line for each turn, with its events and how long it was", async () => {
    start();

    await broker.publish([eventMessage(event)]);
    await untilTurns(1);

    const turn = lines.find(({ event: name }) => name === "fan_out.turn");
    expect(turn).to.deep.include({
      events: 1,
      deliveries: 1,
      foreign: 0,
      resources: ["notes"],
      eventUuids: [event.uuid],
    });
    expect(turn?.["durationMs"]).to.be.within(0, 10_000);
  });

  it("makes one delivery, published once, of an event that comes again and again", async () => {
    start();
    await broker.publish([eventMessage(event), eventMessage(event)]);
    await untilTurns(1);

    await broker.publish([eventMessage(event)]);
    await untilTurns(2);

    expect(await work.deliveries()).to.have.length(1);
    expect(madeOfIt()).to.have.length(1);
  });

  it("puts an event that it does not know on svc.dead as it came, and goes on with the others", async () => {
    const unknown = eventMessage({ uuid: randomUUID(), ownerId: event.ownerId });
    start();

    await broker.publish([unknown, eventMessage(event)]);
    await untilTurns(1);
    await running?.stop();

    const [dead] = madeOfIt();
    expect(dead).to.include({
      exchange: exchanges.dead,
      messageId: unknown.messageId,
      body: unknown.body,
    });
    expect(dead?.headers).to.deep.equal({
      "x-svc-reason": "unknown event",
      "x-svc-event": unknown.messageId,
    });
    expect((await work.deliveries()).map(({ eventUuid }) => eventUuid)).to.deep.equal([event.uuid]);
    expect(await broker.depth(queues.fanout)).to.equal(0);
  });

  it("leaves to the sweep what the broker did not confirm", async () => {
    broker.refuses = ({ exchange }) => exchange === exchanges.deliveries;
    start(-1_000);
    await broker.publish([eventMessage(event)]);
    await untilTurns(1);
    await running?.stop();
    expect(await broker.depth(queues.fanout)).to.equal(0);
    expect((await work.events())[0]?.fannedOutAt).to.be.instanceOf(Date);

    broker.refuses = () => false;
    const { log } = createMemoryLog();
    const store = createDeliveryStore({ sql: core.sql });
    const sweep = createSweep({
      broker,
      store,
      log,
      metrics: createMetrics().deliveries,
      intervalMs: 5,
      requeueAfterMs: 60_000,
    });
    running = runWorkers({ workers: [sweep], log });

    await until(async () => (await broker.depth(queues.first)) === 1, { what: "the sweep's message" });
    expect(madeOfIt().at(-1)?.messageId).to.equal((await work.deliveries())[0]?.uuid);
  });

  it("gives the events back while the database fails, and loses none", async () => {
    const others = [];
    for (let count = 0; count < 4; count++)
      others.push(await work.addEvent({ ownerId: String(subscription.userId) }));
    await core.sql("ALTER TABLE svc.deliveries RENAME TO deliveries_away");
    try {
      start();
      await broker.publish([event, ...others].map(eventMessage));
      await untilFailed();
    } finally {
      await core.sql("ALTER TABLE svc.deliveries_away RENAME TO deliveries");
    }

    await until(async () => (await work.deliveries()).length === 5, { what: "a delivery for every event" });
    expect(madeOfIt()).to.have.length(5);
  });

  it("puts a message that is no event on svc.dead as it came, and goes on with the others", async () => {
    start();

    await broker.publish([foreignMessage, eventMessage(event)]);
    await untilTurns(1);
    await running?.stop();

    const [dead] = madeOfIt();
    expect(dead).to.include({ exchange: exchanges.dead, messageId: "theirs", body: foreignMessage.body });
    expect(dead?.headers).to.deep.equal({ "x-svc-reason": "not an event" });
    expect(await work.deliveries()).to.have.length(1);
    expect(await broker.depth(queues.fanout)).to.equal(0);
  });

  it("gives a foreign message back while svc.dead does not confirm it", async () => {
    broker.refuses = ({ exchange }) => exchange === exchanges.dead;
    start();
    await broker.publish([foreignMessage, eventMessage(event)]);
    await untilFailed();

    broker.refuses = () => false;

    await until(async () => (await broker.depth(queues.dead)) === 1, { what: "the dead letter" });
    await untilTurns(1);
    expect(await work.deliveries()).to.have.length(1);
  });

  it("finishes on stop what it had taken, and takes no more", async () => {
    start();
    await broker.publish([eventMessage(event)]);
    await until(async () => (await broker.depth(queues.fanout)) === 0, { what: "the message taken" });

    await running?.stop();
    await broker.publish([eventMessage(event)]);

    expect((await work.events())[0]?.fannedOutAt).to.be.instanceOf(Date);
    expect(madeOfIt()).to.have.length(1);
    expect(await broker.depth(queues.fanout)).to.equal(1);
  });
});
