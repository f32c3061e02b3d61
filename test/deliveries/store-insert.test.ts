import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { createDeliveryStore, type DeliveryStore, type NewDelivery } from "../../src/deliveries/store.ts";
import type { EventModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import { pause } from "../../src/kit/worker.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

// What others do to an event meanwhile; store.test.ts has the rest.
describe("createDeliveryStore, insert", () => {
  let core: CoreDatabase;
  let work: Work;
  let store: DeliveryStore;
  let subscription: SubscriptionModel;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    store = createDeliveryStore({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
  });

  after(() => core.close());

  const newDelivery = (
    event: Pick<EventModel, "id" | "uuid">,
    overrides: Partial<NewDelivery> = {},
  ): NewDelivery => ({
    uuid: randomUUID(),
    eventId: String(event.id),
    eventUuid: event.uuid,
    subscriptionId: subscription.id,
    userId: subscription.userId,
    resource: "notes",
    url: subscription.url,
    maxAttempts: 3,
    isTaken: true,
    ...overrides,
  });
  const insert = (
    events: readonly Pick<EventModel, "id" | "uuid">[],
    deliveries: readonly NewDelivery[],
    isComplete = true,
  ): ReturnType<DeliveryStore["insert"]> =>
    store.insert({
      events: events.map(({ id, uuid }) => ({ id: String(id), uuid, data: "{}" })),
      deliveries,
      isComplete,
      flightMs: 60_000,
    });

  it("writes a portion of an event's deliveries although another fan-out that was at it fails", async () => {
    const event = await work.addEvent();
    const [first, last] = [newDelivery(event), newDelivery(event, { subscriptionId: subscription.id + 1 })];
    const other = await core.database.pool.connect();
    try {
      await other.query("BEGIN");
      await other.query("SELECT FROM svc.outbox FOR UPDATE");
      const portion = insert([event], [first], false);
      // A moment in which it could pass the event over.
      await Promise.race([portion, pause(200, new AbortController().signal)]);
      await other.query("ROLLBACK");
      await portion;
      await insert([event], [last]);
    } finally {
      other.release();
    }

    expect((await work.deliveries()).map(({ uuid }) => uuid)).to.have.members([first.uuid, last.uuid]);
    expect(await work.outbox()).to.deep.equal([]);
  });

  it("makes nothing of an event that the database lost in a crash, and leaves the one that got its id", async () => {
    const event = await work.addEvent();
    const lost = { ...event, uuid: randomUUID() };

    expect((await insert([lost], [newDelivery(lost)])).ids.size).to.equal(0);
    expect(await work.outbox()).to.deep.equal([event.id]);
  });

  it("does not wait for a dispatcher that is at work on the event, and leaves it to that one", async () => {
    const event = await work.addEvent();
    const other = await core.database.pool.connect();
    try {
      await other.query("BEGIN");
      await other.query("DELETE FROM svc.outbox WHERE event_id = $1", [String(event.id)]);

      expect((await insert([event], [newDelivery(event)])).ids.size).to.equal(0);
      await other.query("ROLLBACK");
    } finally {
      other.release();
    }
    expect((await insert([event], [newDelivery(event)])).ids.size).to.equal(1);
  });
});
