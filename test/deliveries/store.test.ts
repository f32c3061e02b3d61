import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import {
  createDeliveryStore,
  type DeliveryStore,
  type LeasedDelivery,
  type NewDelivery,
} from "../../src/deliveries/store.ts";
import type { DeliveryModel, EventModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const result: AttemptResult = {
  startedAt: new Date("2026-03-28T14:30:00.123Z"),
  durationMs: 42,
  error: "http",
  detail: "example.com answered 500 Internal Server Error.",
  statusCode: 500,
  responseHeaders: { "content-type": "text/plain", "set-cookie": ["a=1", "b=2"] },
  responseBody: Buffer.from([0, 255, 10]),
  isResponseTruncated: true,
};

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

  const leaseOne = async ({ id }: DeliveryModel): Promise<LeasedDelivery | undefined> =>
    (await store.lease({ ids: [String(id)], leaseMs: 60_000 }))[0];
  const getLease = async (delivery: DeliveryModel): Promise<LeasedDelivery> => {
    const lease = await leaseOne(delivery);
    if (lease === undefined) throw new Error("the delivery was not leased");
    return lease;
  };
  const newDelivery = (event: Pick<EventModel, "uuid">, to = subscription): NewDelivery => ({
    uuid: randomUUID(),
    eventUuid: event.uuid,
    subscriptionId: to.id,
    userId: to.userId,
    resource: "notes",
    url: to.url,
    maxAttempts: 3,
    body: Buffer.from([0, 1, 255]),
  });
  const insert = async (...deliveries: readonly NewDelivery[]): Promise<readonly { uuid: string }[]> => {
    const eventUuids = deliveries.map(({ eventUuid }) => eventUuid);
    return (await store.insertMissing({ eventUuids, deliveries, queuedForMs: 60_000 })).inserted;
  };
  const settle = async (delivery: DeliveryModel): Promise<DeliveryModel> => {
    await store.settleUnleasable([String(delivery.id)]);
    return work.deliveryOf(delivery.id);
  };
  const cancel = (): Promise<unknown> =>
    core.sql(
      "UPDATE svc.deliveries SET status = 'cancelled', last_error = 'The subscription was deleted.', next_attempt_at = NULL",
    );

  describe("insertMissing", () => {
    it("makes a delivery that is due and believed queued, its own root, and marks the event", async () => {
      const event = await work.addEvent();
      const given = newDelivery(event);

      const [inserted] = await insert(given);

      const [row] = await work.deliveries();
      expect(inserted).to.deep.equal({ id: String(row?.id), uuid: given.uuid });
      expect(row).to.include({
        rootDeliveryId: row?.id,
        parentDeliveryId: null,
        eventId: event.id,
        triggerKind: "automatic",
        status: "pending",
        attempt: 0,
      });
      expect(Buffer.from(row?.body ?? [])).to.deep.equal(given.body);
      expect(row?.nextAttemptAt?.getTime()).to.be.at.most(Date.now() + 1);
      expect(row?.queuedUntil?.getTime()).to.be.within(Date.now() + 50_000, Date.now() + 60_000);
      expect((await work.events())[0]?.fannedOutAt).to.be.instanceOf(Date);
    });

    it("makes one delivery for each event and subscription, however often and in however many batches they come", async () => {
      const event = await work.addEvent();
      const other = await work.addSubscription();
      const twice = [newDelivery(event), newDelivery(event)];

      const first = await insert(...twice);
      const second = await insert(newDelivery(event), newDelivery(event, other));

      expect([first.length, second.length]).to.deep.equal([1, 1]);
      expect((await work.deliveries()).map(({ subscriptionId }) => subscriptionId)).to.deep.equal([
        subscription.id,
        other.id,
      ]);
    });

    it("lets only one of two dispatchers make it, at once", async () => {
      const event = await work.addEvent();

      const made = await Promise.all(Array.from({ length: 4 }, () => insert(newDelivery(event))));

      expect(made.flat()).to.have.length(1);
    });

    it("marks an event that nobody subscribes to, and names one that it does not know", async () => {
      const event = await work.addEvent();
      const unknown = newDelivery({ uuid: randomUUID() });

      const answer = await store.insertMissing({
        eventUuids: [event.uuid, unknown.eventUuid],
        deliveries: [unknown],
        queuedForMs: 60_000,
      });

      expect(answer).to.deep.equal({ inserted: [], unknownEvents: new Set([unknown.eventUuid]) });
      expect((await work.events())[0]?.fannedOutAt).to.be.instanceOf(Date);
    });
  });

  describe("lease", () => {
    it("gives the delivery with what the subscription and its user are now", async () => {
      const delivery = await work.addDelivery(subscription, { attempt: 1 });
      await core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/corrected'");
      await core.sql("UPDATE svc.users SET name = 'Ada L.', is_admin = true");

      const lease = await leaseOne(delivery);

      expect(lease).to.include({
        uuid: delivery.uuid,
        attempt: 1,
        maxAttempts: 3,
        url: "http://127.0.0.1:9/corrected",
        ownerId: String(subscription.userId),
      });
      expect(lease?.user).to.include({ id: subscription.userId, name: "Ada L.", isAdmin: true });
      expect(await work.deliveryOf(delivery.id)).to.have.property("url", "http://127.0.0.1:9/corrected");
    });

    it("gives one delivery to one of two, until the lease ends", async () => {
      const delivery = await work.addDelivery(subscription);

      const leases = await Promise.all(Array.from({ length: 4 }, () => leaseOne(delivery)));

      expect(leases.filter((lease) => lease !== undefined)).to.have.length(1);
      await core.sql("UPDATE svc.deliveries SET leased_until = now() - interval '1 second'");
      expect(await leaseOne(delivery)).to.have.property("uuid", delivery.uuid);
    });

    for (const [what, overrides] of [
      ["not due yet", { nextAttemptAt: inSeconds(86_400) }],
      ["on hold", { nextAttemptAt: null }],
      ["delivered", { status: "delivered" }],
      ["failed", { status: "failed" }],
      ["cancelled", { status: "cancelled" }],
    ] as const) {
      it(`does not give one that is ${what}`, async () => {
        expect(await leaseOne(await work.addDelivery(subscription, overrides))).to.equal(undefined);
      });
    }

    for (const [what, statement] of [
      ["is paused", "UPDATE svc.subscriptions SET is_active = false"],
      ["was deleted", "DELETE FROM svc.subscriptions"],
      ["belongs to a disabled user", "UPDATE svc.users SET disabled_at = now()"],
    ] as const) {
      it(`does not give one whose subscription ${what}`, async () => {
        const delivery = await work.addDelivery(subscription);
        await core.sql(statement);

        expect(await leaseOne(delivery)).to.equal(undefined);
      });
    }
  });

  describe("settleUnleasable", () => {
    it("cancels when the subscription is gone, and says so", async () => {
      const delivery = await work.addDelivery(subscription, { queuedUntil: inSeconds(60) });
      await core.sql("DELETE FROM svc.subscriptions");

      expect(await settle(delivery)).to.include({
        status: "cancelled",
        lastError: "The subscription was deleted.",
        nextAttemptAt: null,
        queuedUntil: null,
      });
    });

    for (const statement of [
      "UPDATE svc.subscriptions SET is_active = false",
      "UPDATE svc.users SET disabled_at = now()",
    ]) {
      it(`holds the delivery, to be released when it may go on: ${statement}`, async () => {
        const delivery = await work.addDelivery(subscription, {
          status: "retrying",
          lastError: "HTTP 500",
          queuedUntil: inSeconds(60),
        });
        await core.sql(statement);

        const held = await settle(delivery);
        await store.releaseHeld();
        const stillHeld = await work.deliveryOf(delivery.id);
        await core.sql("UPDATE svc.subscriptions SET is_active = true");
        await core.sql("UPDATE svc.users SET disabled_at = NULL");
        await store.releaseHeld();

        expect(held).to.include({
          status: "retrying",
          lastError: "HTTP 500",
          nextAttemptAt: null,
          queuedUntil: null,
        });
        expect(stillHeld.nextAttemptAt).to.equal(null);
        expect(await leaseOne(delivery)).to.have.property("uuid", delivery.uuid);
      });
    }

    it("touches none that is finished, leased by another, or only not due", async () => {
      await work.addDelivery(subscription, { status: "delivered" });
      await work.addDelivery(subscription, { leasedUntil: inSeconds(60) });
      await work.addDelivery(await work.addSubscription(), { nextAttemptAt: inSeconds(60) });
      await core.sql("UPDATE svc.subscriptions SET is_active = false WHERE id = $1", [subscription.id]);
      const before = await work.deliveries();

      await store.settleUnleasable(before.map(({ id }) => String(id)));

      expect(await work.deliveries()).to.deep.equal(before);
    });
  });

  describe("record", () => {
    it("writes a retry and its attempt, and gives the lease back", async () => {
      const delivery = await work.addDelivery(subscription, { queuedUntil: inSeconds(60) });
      const lease = await getLease(delivery);

      const written = await store.record([
        { lease, status: "retrying", attempt: 1, delayMs: 30_000, lastError: "HTTP 500", result },
      ]);

      expect([...written]).to.deep.equal([String(delivery.id)]);
      const row = await work.deliveryOf(delivery.id);
      expect(row).to.include({
        status: "retrying",
        attempt: 1,
        lastError: "HTTP 500",
        leasedUntil: null,
        queuedUntil: null,
      });
      expect(row.nextAttemptAt?.getTime()).to.be.within(Date.now() + 20_000, Date.now() + 30_000);
      const [attempt, ...more] = await work.attemptsOf(delivery.id);
      expect(more).to.deep.equal([]);
      expect(attempt).to.deep.include({
        number: 1,
        startedAt: result.startedAt,
        durationMs: 42,
        statusCode: 500,
        error: "http",
        responseHeaders: result.responseHeaders,
        responseTruncated: true,
      });
      expect(Buffer.from(attempt?.responseBody ?? [])).to.deep.equal(result.responseBody);
    });

    it("writes many outcomes at once, each its own, and takes an old error away with success", async () => {
      const deliveries = [];
      for (const lastError of ["old", "old", "old"])
        deliveries.push(await work.addDelivery(subscription, { lastError }));
      const leases = await Promise.all(deliveries.map(getLease));
      const [a, b, c] = leases as [LeasedDelivery, LeasedDelivery, LeasedDelivery];
      const { error: _, ...success } = result;

      await store.record([
        { lease: a, status: "delivered", attempt: 1, result: { ...success, statusCode: 204 } },
        { lease: b, status: "failed", attempt: 3, lastError: "spent", result },
        { lease: c, status: "cancelled", attempt: 0, lastError: "no right" },
      ]);

      const rows = await work.deliveries();
      expect(
        rows.map(({ status, attempt, lastError, nextAttemptAt }) => [
          status,
          attempt,
          lastError,
          nextAttemptAt,
        ]),
      ).to.deep.equal([
        ["delivered", 1, null, null],
        ["failed", 3, "spent", null],
        ["cancelled", 0, "no right", null],
      ]);
      const attempts = await Promise.all(deliveries.map(({ id }) => work.attemptsOf(id)));
      expect(
        attempts.map((made) => made.map(({ number, statusCode }) => [number, statusCode])),
      ).to.deep.equal([[[1, 204]], [[3, 500]], []]);
    });

    it("writes nothing of an outcome whose lease another holds by now", async () => {
      const delivery = await work.addDelivery(subscription);
      const lost = await getLease(delivery);
      // A lease is told from the next by its end, in milliseconds: they are seconds apart, as no lease is shorter.
      await core.sql("UPDATE svc.deliveries SET leased_until = leased_until - interval '1 day'");
      await core.sql("SELECT pg_sleep(0.002)");
      const held = await getLease(delivery);

      const written = await store.record([
        { lease: lost, status: "failed", attempt: 1, lastError: "late", result },
      ]);

      expect(written.size).to.equal(0);
      expect(await work.deliveryOf(delivery.id)).to.deep.include({
        status: "pending",
        attempt: 0,
        lastError: null,
        leasedUntil: held.leasedUntil,
      });
      expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
    });

    it("writes the same outcome once, when the answer to the first was lost", async () => {
      const delivery = await work.addDelivery(subscription);
      const outcome = { lease: await getLease(delivery), status: "delivered", attempt: 1, result } as const;
      await store.record([outcome]);

      expect((await store.record([outcome])).size).to.equal(0);
      expect(await work.attemptsOf(delivery.id)).to.have.length(1);
    });

    it("leaves a delivery cancelled that was cancelled during its POST, and still keeps the attempt", async () => {
      const delivery = await work.addDelivery(subscription);
      const lease = await getLease(delivery);
      await cancel();

      const written = await store.record([
        { lease, status: "retrying", attempt: 1, delayMs: 0, lastError: "HTTP 500", result },
      ]);

      expect(written.size).to.equal(1);
      expect(await work.deliveryOf(delivery.id)).to.include({
        status: "cancelled",
        attempt: 1,
        lastError: "The subscription was deleted.",
        nextAttemptAt: null,
        leasedUntil: null,
      });
      expect(await work.attemptsOf(delivery.id)).to.have.length(1);
    });
  });
});
