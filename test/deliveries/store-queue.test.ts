import { expect } from "chai";
import { createDeliveryStore, type DeliveryStore, type Taken } from "../../src/deliveries/store.ts";
import type { DeliveryModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const idsOf = (rows: readonly { readonly id: string | bigint }[]): readonly string[] =>
  rows.map(({ id }) => String(id)).toSorted();
const flightMs = 60_000;

// What waits, and what takes it; store.test.ts has the rest.
describe("createDeliveryStore", () => {
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

  const takeDue = (limit = 100, sinceMs?: number): Promise<Taken> =>
    store.takeDue({ limit, flightMs, sinceMs });
  const takeParked = (oldest: number, newest: number, { id } = subscription): Promise<Taken> =>
    store.takeParked({ wanted: [{ subscriptionId: id, oldest, newest }], flightMs });
  const addMany = async (count: number, due?: "parked"): Promise<readonly DeliveryModel[]> => {
    const deliveries = [];
    for (let one = 0; one < count; one++)
      deliveries.push(await work.addDelivery(subscription, due === undefined ? {} : { due }));
    return deliveries;
  };

  describe("takeDue", () => {
    it("gives a delivery as it is now, with its event, its subscription and its user", async () => {
      const delivery = await work.addDelivery(subscription, {
        attempt: 1,
        status: "retrying",
        traceparent: "00-1",
        data: '{"text":"é"}',
      });
      await core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/corrected'");
      await core.sql("UPDATE svc.users SET name = 'Ada L.', is_admin = true");
      await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 minute'");

      const { flightId, deliveries } = await takeDue();

      const [taken, ...more] = deliveries;
      expect(more).to.deep.equal([]);
      const { waitedMs, eventAgeMs, ...rest } = taken ?? { waitedMs: 0, eventAgeMs: 0 };
      expect(rest).to.deep.equal({
        id: String(delivery.id),
        uuid: delivery.uuid,
        eventId: String(delivery.eventId),
        eventUuid: delivery.eventUuid,
        event: "on_create",
        resource: "notes",
        timestamp: "2026-03-28T14:30:00.123456Z",
        attempt: 1,
        maxAttempts: 3,
        isManual: false,
        ownerId: String(subscription.userId),
        traceparent: "00-1",
        bytes: 13,
        subscriptionId: subscription.id,
        subscription: {
          url: "http://127.0.0.1:9/corrected",
          encryptedSecret: Buffer.from(subscription.encryptedSecret),
          isActive: true,
          user: {
            id: subscription.userId,
            name: "Ada L.",
            email: (await core.database.prisma.user.findFirstOrThrow()).email,
            isAdmin: true,
          },
        },
      });
      expect(waitedMs).to.be.within(60_000, 70_000);
      expect(eventAgeMs).to.be.closeTo(Date.now() - Date.parse("2026-03-28T14:30:00Z"), 10_000);
      const [flight] = await work.flights();
      expect(flight).to.deep.include({ id: flightId, deliveryIds: [delivery.id] });
      expect(flight?.endsAt.getTime()).to.be.within(Date.now() + 50_000, Date.now() + 60_001);
      expect(await work.queued(delivery.id)).to.equal(null);
    });

    it("takes what is due, those due longest first, each once", async () => {
      const younger = await work.addDelivery(subscription, { due: inSeconds(-5) });
      const older = await work.addDelivery(subscription, { status: "retrying", due: inSeconds(-50) });
      for (const due of [inSeconds(60), "parked", "nowhere"] as const)
        await work.addDelivery(subscription, { due });

      expect(idsOf((await takeDue(1)).deliveries)).to.deep.equal([String(older.id)]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(younger.id)]);
      expect(await takeDue()).to.deep.equal({ flightId: undefined, deliveries: [], removed: 0 });
    });

    it("looks no further back than it is told", async () => {
      const [old, young] = [
        await work.addDelivery(subscription, { due: inSeconds(-50) }),
        await work.addDelivery(subscription, { due: inSeconds(-5) }),
      ];

      expect(idsOf((await takeDue(100, 20_000)).deliveries)).to.deep.equal([String(young.id)]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(old.id)]);
    });

    it("takes one at its end out of the queue, and gives it to nobody", async () => {
      const deliveries = [];
      for (const status of ["delivered", "failed", "cancelled"])
        deliveries.push(await work.addDelivery(subscription, { status, due: inSeconds(-1) }));

      expect(await takeDue()).to.deep.equal({ flightId: undefined, deliveries: [], removed: 3 });
      for (const { id } of deliveries) expect(await work.queued(id)).to.equal(null);
      expect(await work.flights()).to.deep.equal([]);
    });

    it("parts what is due among sweeps at once", async () => {
      await addMany(12);

      const taken = (await Promise.all(Array.from({ length: 4 }, () => takeDue(3)))).flatMap(
        ({ deliveries }) => deliveries,
      );

      expect(new Set(idsOf(taken)).size).to.equal(taken.length);
      expect(taken.length).to.be.above(2);
    });

    for (const [what, statement, expected] of [
      ["is paused", "UPDATE svc.subscriptions SET is_active = false", false],
      ["belongs to a disabled user", "UPDATE svc.users SET disabled_at = now()", false],
      ["was deleted", "DELETE FROM svc.subscriptions", undefined],
    ] as const) {
      it(`says so of one whose subscription ${what}`, async () => {
        await work.addDelivery(subscription);
        await core.sql(statement);

        const [taken] = (await takeDue()).deliveries;

        expect(taken?.subscription?.isActive).to.equal(expected);
        expect(taken?.subscription === null).to.equal(expected === undefined);
      });
    }
  });

  describe("takeParked and findParked", () => {
    it("take from both ends of a subscription's line, each once, and nothing of others", async () => {
      const line = await addMany(5, "parked");
      await work.addDelivery(await work.addSubscription(), { due: "parked" });
      await work.addDelivery(subscription, { due: inSeconds(-1) });

      const [a, b, c, d, e] = idsOf(line);
      expect(idsOf((await takeParked(2, 1)).deliveries)).to.deep.equal([a, b, e]);
      expect(idsOf((await takeParked(5, 5)).deliveries)).to.deep.equal([c, d]);
      expect(await takeParked(1, 1)).to.deep.equal({ flightId: undefined, deliveries: [], removed: 0 });
      expect((await work.flights()).map(({ deliveryIds }) => deliveryIds.length)).to.have.members([3, 2]);
    });

    it("find each subscription of which something waits for a slot, with what it is now, a page at a time", async () => {
      const paused = await work.addSubscription({ isActive: false });
      const deleted = await work.addSubscription();
      const disabled = await work.addSubscription();
      const idle = await work.addSubscription();
      for (const one of [subscription, subscription, paused, deleted, disabled])
        await work.addDelivery(one, { due: "parked" });
      await work.addDelivery(idle);
      await core.sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [disabled.userId]);
      await core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [deleted.id]);

      const first = await store.findParked({ after: 0, limit: 3 });
      const rest = await store.findParked({ after: deleted.id, limit: 3 });

      const { url } = subscription;
      expect([...first, ...rest]).to.deep.equal([
        { subscriptionId: subscription.id, url, userId: subscription.userId, isActive: true },
        { subscriptionId: paused.id, url, userId: paused.userId, isActive: false },
        { subscriptionId: deleted.id, url: null, userId: null, isActive: false },
        { subscriptionId: disabled.id, url, userId: disabled.userId, isActive: false },
      ]);
    });
  });

  describe("returnStrays", () => {
    it("makes an unfinished delivery due that is neither in the queue nor in a flight, and no other", async () => {
      const [stray, queued, young] = [
        await work.addDelivery(subscription, { due: inSeconds(60) }),
        await work.addDelivery(subscription, { due: inSeconds(60) }),
        await work.addDelivery(subscription, { due: inSeconds(60) }),
      ];
      const flying = await work.addDelivery(subscription, { due: inSeconds(-1) });
      await takeDue();
      const ended = await work.addDelivery(subscription, { due: inSeconds(60) });
      await core.sql("UPDATE svc.deliveries SET status = 'delivered' WHERE id = $1", [ended.id]);
      await core.sql("DELETE FROM svc.delivery_queue WHERE delivery_id = ANY($1)", [
        [stray.id, young.id, ended.id],
      ]);
      await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 hour' WHERE id <> $1", [
        young.id,
      ]);
      const page = { limit: 1_000, olderThanMs: 60_000 };

      expect(await store.returnStrays({ after: undefined, ...page })).to.deep.equal({
        last: String(ended.id),
        count: 1,
      });
      expect(await store.returnStrays({ after: String(ended.id), ...page })).to.deep.equal({
        last: undefined,
        count: 0,
      });

      const ids = await core.sql<{ id: string }>(
        "SELECT delivery_id AS id FROM svc.delivery_queue ORDER BY 1",
      );
      expect(ids.map(({ id }) => id)).to.deep.equal([stray.id, queued.id].map(String));
      expect(flying.id).to.not.equal(stray.id);
    });
  });

  describe("nextDueInMs", () => {
    it("gives the time to the next that is not due yet", async () => {
      expect(await store.nextDueInMs()).to.equal(undefined);
      for (const due of [inSeconds(-5), inSeconds(60), inSeconds(90), "parked"] as const)
        await work.addDelivery(subscription, { due });

      expect(await store.nextDueInMs()).to.be.within(50_000, 60_001);
    });
  });

  describe("endOverdueFlights and endAllFlights", () => {
    it("make due what is not finished of flights whose time is up, and leave the others", async () => {
      const deliveries = await addMany(3);
      const { flightId = "" } = await takeDue();
      await core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");
      const [open, done, queued] = deliveries as [DeliveryModel, DeliveryModel, DeliveryModel];
      await core.sql("UPDATE svc.deliveries SET status = 'delivered' WHERE id = $1", [String(done.id)]);
      await store.putBack({ returns: [{ id: String(queued.id), flightId, delayMs: undefined }], landed: [] });
      const young = await work.addDelivery(subscription);
      await takeDue();

      expect(await store.endOverdueFlights(10)).to.equal(1);

      expect((await work.queued(open.id))?.dueAt).to.be.instanceOf(Date);
      expect(await work.queued(done.id)).to.equal(null);
      expect((await work.queued(queued.id))?.dueAt).to.equal(null);
      expect((await work.flights()).map(({ deliveryIds }) => deliveryIds)).to.deep.equal([[young.id]]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(open.id)]);
    });

    it("leave what another flight has", async () => {
      const [back] = (await addMany(2)) as [DeliveryModel];
      const { flightId = "" } = await takeDue();
      await store.putBack({ returns: [{ id: String(back.id), flightId, delayMs: 0 }], landed: [] });
      await core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");
      const { flightId: other } = await takeDue();

      expect(await store.endOverdueFlights(10)).to.equal(1);

      expect(await work.queued(back.id)).to.equal(null);
      expect((await work.flights()).map(({ id }) => id)).to.deep.equal([other]);
    });

    it("end so many at once, and each once of sweeps at once", async () => {
      for (let count = 0; count < 6; count++) {
        await work.addDelivery(subscription);
        await takeDue();
      }
      await core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");

      expect(await store.endOverdueFlights(2)).to.equal(2);
      const counts = await Promise.all([1, 2, 3, 4].map(() => store.endOverdueFlights(10)));

      expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(4);
      expect((await takeDue()).deliveries).to.have.length(6);
    });

    it("end all, whatever their time", async () => {
      const [delivery] = await addMany(1);
      await takeDue();
      expect(await store.endOverdueFlights(10)).to.equal(0);

      await store.endAllFlights();

      expect(await work.flights()).to.deep.equal([]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(delivery?.id)]);
    });
  });

  describe("cancelOrphans and findOrphaned", () => {
    it("cancel what waits and what is in hand of a subscription that is gone, and nothing else", async () => {
      const [inHand] = await addMany(1);
      await takeDue();
      const waiting = [
        ...(await addMany(1, "parked")),
        await work.addDelivery(subscription, { due: inSeconds(60) }),
      ];
      const finished = await work.addDelivery(subscription, { status: "delivered" });
      const other = await work.addDelivery(await work.addSubscription());
      await takeDue();
      expect(await store.findOrphaned(10)).to.deep.equal([]);
      await core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [subscription.id]);

      expect(await store.findOrphaned(10)).to.deep.equal([subscription.id]);
      expect(await store.cancelOrphans({ subscriptionId: subscription.id, limit: 1 })).to.equal(1);
      expect(await store.cancelOrphans({ subscriptionId: subscription.id, limit: 10 })).to.equal(1);

      for (const { id } of [inHand as DeliveryModel, ...waiting]) {
        expect(await work.deliveryOf(id)).to.include({
          status: "cancelled",
          lastError: "The subscription was deleted.",
        });
        expect(await work.queued(id)).to.equal(null);
      }
      for (const { id, status } of [finished, other])
        expect(await work.deliveryOf(id)).to.include({ status });
      expect(await store.findOrphaned(10)).to.deep.equal([]);
    });
  });

  describe("findUndeadLettered", () => {
    it("finds failed deliveries of which no dead letter was confirmed in time, until one is", async () => {
      const failed = await work.addDelivery(subscription, {
        status: "failed",
        lastError: "spent",
        data: "[1.50]",
      });
      await work.addDelivery(subscription, { status: "failed", deadLetteredAt: new Date() });
      await work.addDelivery(subscription, { status: "retrying" });
      await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 minute'");
      await core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      await work.addDelivery(subscription, { status: "failed" });
      const find = (): ReturnType<DeliveryStore["findUndeadLettered"]> =>
        store.findUndeadLettered({ limit: 10, olderThanMs: 30_000 });

      const found = await find();
      await store.markDeadLettered(idsOf(found));

      expect(found).to.deep.equal([
        {
          id: String(failed.id),
          uuid: failed.uuid,
          eventId: String(failed.eventId),
          eventUuid: failed.eventUuid,
          event: "on_create",
          resource: "notes",
          timestamp: "2026-03-28T14:30:00.123456Z",
          lastError: "spent",
          data: "[1.50]",
        },
      ]);
      expect(await find()).to.deep.equal([]);
    });
  });
});
