import { expect } from "chai";
import type { DeliveryStore } from "../../src/deliveries/store.ts";
import type { TakenDeliveries } from "../../src/deliveries/taken.ts";
import { noClaims } from "../../src/kit/caller.ts";
import type { DeliveryModel } from "../support/generated/models.ts";
import { stateSql } from "../support/delivery-states.ts";
import { flightMs, useStoreScene } from "../support/store-scene.ts";
import { inSeconds } from "../support/work.ts";

const idsOf = (rows: readonly { readonly id: string | bigint }[]): readonly string[] =>
  rows.map(({ id }) => String(id)).toSorted();

// Waiting deliveries and their takers; store.test.ts has the rest.
describe("createDeliveryStore", () => {
  const scene = useStoreScene();

  const takeDue = (limit = 100, sinceMs?: number): Promise<TakenDeliveries> =>
    scene.store.takeDue({ limit, flightMs, sinceMs });
  const takeParked = (
    oldest: number,
    newest: number,
    { id } = scene.subscription,
  ): Promise<TakenDeliveries> =>
    scene.store.takeParked({ wanted: [{ subscriptionId: id, oldest, newest }], flightMs });
  const addMany = async (count: number, due?: "parked"): Promise<readonly DeliveryModel[]> => {
    const deliveries = [];
    for (let one = 0; one < count; one++)
      deliveries.push(await scene.work.addDelivery(scene.subscription, due === undefined ? {} : { due }));
    return deliveries;
  };

  describe("takeDue", () => {
    it("returns a delivery with its current event, subscription and user", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, {
        attempt: 1,
        status: "retrying",
        traceparent: "00-1",
        data: '{"text":"é"}',
      });
      await scene.core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/corrected'");
      await scene.core.sql("UPDATE svc.users SET name = 'Ada L.', is_admin = true");
      await scene.core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 minute'");

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
        isPaced: false,
        hasPrevious: false,
        trigger: "scheduled",
        ownerId: String(scene.subscription.userId),
        traceparent: "00-1",
        bytes: 13,
        subscriptionId: scene.subscription.id,
        subscription: {
          url: "http://127.0.0.1:9/corrected",
          signing: {
            encryptedSecret: Buffer.from(scene.subscription.encryptedSecret),
            encryptedPrevious: null,
            encryptedHeaders: null,
          },
          rateLimit: null,
          isActive: true,
          user: {
            id: scene.subscription.userId,
            name: "Ada L.",
            email: (await scene.core.prisma.user.findFirstOrThrow()).email,
            isAdmin: true,
            claims: noClaims,
          },
        },
      });
      expect(waitedMs).to.be.within(60_000, 70_000);
      expect(eventAgeMs).to.be.closeTo(Date.now() - Date.parse("2026-03-28T14:30:00Z"), 10_000);
      const [flight] = await scene.work.flights();
      expect(flight).to.deep.include({ id: flightId, deliveryIds: [delivery.id] });
      expect(flight?.endsAt.getTime()).to.be.within(Date.now() + 50_000, Date.now() + 60_001);
      expect(await scene.work.queued(delivery.id)).to.equal(null);
    });

    it("takes due deliveries from both ends, each once, so that recent ones pass a backlog", async () => {
      const due = [];
      for (const seconds of [-60, -50, -40, -30])
        due.push(await scene.work.addDelivery(scene.subscription, { due: inSeconds(seconds) }));
      for (const place of [inSeconds(60), "parked", "nowhere"] as const)
        await scene.work.addDelivery(scene.subscription, { due: place });
      const [first, second, third, last] = due.map(({ id }) => String(id));

      expect(idsOf((await takeDue(3)).deliveries)).to.have.members([first, second, last]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([third]);
      expect(await takeDue()).to.deep.include({ flightId: undefined, deliveries: [], removed: 0 });
    });

    it("reads no further back than requested", async () => {
      const [old, young] = [
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(-50) }),
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(-5) }),
      ];

      expect(idsOf((await takeDue(100, 20_000)).deliveries)).to.deep.equal([String(young.id)]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(old.id)]);
    });

    it("removes a finished delivery from the queue, and returns it to no process", async () => {
      const deliveries = [];
      for (const status of ["delivered", "failed", "cancelled"])
        deliveries.push(await scene.work.addDelivery(scene.subscription, { status, due: inSeconds(-1) }));

      expect(await takeDue()).to.deep.include({ flightId: undefined, deliveries: [], removed: 3 });
      for (const { id } of deliveries) expect(await scene.work.queued(id)).to.equal(null);
      expect(await scene.work.flights()).to.deep.equal([]);
    });

    it("divides due deliveries among simultaneous sweeps", async () => {
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
      it(`reports one whose scene.subscription ${what}`, async () => {
        await scene.work.addDelivery(scene.subscription);
        await scene.core.sql(statement);

        const [taken] = (await takeDue()).deliveries;

        expect(taken?.subscription?.isActive).to.equal(expected);
        expect(taken?.subscription === null).to.equal(expected === undefined);
      });
    }
  });

  describe("takeParked and findParked", () => {
    it("take from both ends of a subscription's line, each once, and nothing of others", async () => {
      const line = await addMany(5, "parked");
      await scene.work.addDelivery(await scene.work.addSubscription(), { due: "parked" });
      await scene.work.addDelivery(scene.subscription, { due: inSeconds(-1) });

      const [a, b, c, d, e] = idsOf(line);
      expect(idsOf((await takeParked(2, 1)).deliveries)).to.deep.equal([a, b, e]);
      expect(idsOf((await takeParked(5, 5)).deliveries)).to.deep.equal([c, d]);
      expect(await takeParked(1, 1)).to.deep.include({ flightId: undefined, deliveries: [], removed: 0 });
      expect((await scene.work.flights()).map(({ deliveryIds }) => deliveryIds.length)).to.have.members([
        3, 2,
      ]);
    });

    it("find each subscription with deliveries that wait for a slot, in its current state, a page at a time", async () => {
      const paused = await scene.work.addSubscription({ isActive: false });
      const deleted = await scene.work.addSubscription();
      const disabled = await scene.work.addSubscription();
      const idle = await scene.work.addSubscription();
      for (const one of [scene.subscription, scene.subscription, paused, deleted, disabled])
        await scene.work.addDelivery(one, { due: "parked" });
      await scene.work.addDelivery(idle);
      await scene.core.sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [disabled.userId]);
      await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [deleted.id]);

      const first = await scene.store.findParked({ after: 0, limit: 3 });
      const rest = await scene.store.findParked({ after: deleted.id, limit: 3 });

      const { url } = scene.subscription;
      expect([...first, ...rest]).to.deep.equal([
        {
          subscriptionId: scene.subscription.id,
          url,
          userId: scene.subscription.userId,
          isActive: true,
          rateLimit: null,
        },
        { subscriptionId: paused.id, url, userId: paused.userId, isActive: false, rateLimit: null },
        { subscriptionId: deleted.id, url: null, userId: null, isActive: false, rateLimit: null },
        { subscriptionId: disabled.id, url, userId: disabled.userId, isActive: false, rateLimit: null },
      ]);
    });
  });

  describe("returnStrays", () => {
    it("makes an unfinished delivery due that is neither in the queue nor in a flight, and no other", async () => {
      const [stray, queued, young] = [
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) }),
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) }),
        await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) }),
      ];
      const flying = await scene.work.addDelivery(scene.subscription, { due: inSeconds(-1) });
      await takeDue();
      const ended = await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) });
      await scene.core.sql(`UPDATE svc.deliveries SET ${stateSql("'delivered'").set} WHERE id = $1`, [
        ended.id,
      ]);
      await scene.core.sql("DELETE FROM svc.delivery_queue WHERE delivery_id = ANY($1)", [
        [stray.id, young.id, ended.id],
      ]);
      await scene.core.sql(
        "UPDATE svc.deliveries SET updated_at = now() - interval '1 hour' WHERE id <> $1",
        [young.id],
      );
      const page = { limit: 1_000, olderThanMs: 60_000 };

      expect(await scene.store.returnStrays({ after: undefined, ...page })).to.deep.equal({
        last: String(ended.id),
        count: 1,
      });
      expect(await scene.store.returnStrays({ after: String(ended.id), ...page })).to.deep.equal({
        last: undefined,
        count: 0,
      });

      const ids = await scene.core.sql<{ id: string }>(
        "SELECT delivery_id AS id FROM svc.delivery_queue ORDER BY 1",
      );
      expect(ids.map(({ id }) => id)).to.deep.equal([stray.id, queued.id].map(String));
      expect(flying.id).to.not.equal(stray.id);
    });
  });

  describe("nextDueInMs", () => {
    it("returns the time to the next due delivery", async () => {
      expect(await scene.store.nextDueInMs()).to.equal(undefined);
      for (const due of [inSeconds(-5), inSeconds(60), inSeconds(90), "parked"] as const)
        await scene.work.addDelivery(scene.subscription, { due });

      expect(await scene.store.nextDueInMs()).to.be.within(50_000, 60_001);
    });
  });

  describe("endOverdueFlights and endAllFlights", () => {
    it("make unfinished deliveries of overdue flights due, and leave the others", async () => {
      const deliveries = await addMany(3);
      const { flightId = "" } = await takeDue();
      await scene.core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");
      const [open, done, queued] = deliveries as [DeliveryModel, DeliveryModel, DeliveryModel];
      await scene.core.sql(`UPDATE svc.deliveries SET ${stateSql("'delivered'").set} WHERE id = $1`, [
        String(done.id),
      ]);
      await scene.store.putBack({
        returns: [{ id: String(queued.id), flightId, delayMs: undefined }],
        endedFlights: [],
      });
      const young = await scene.work.addDelivery(scene.subscription);
      await takeDue();

      expect(await scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 })).to.equal(1);

      expect((await scene.work.queued(open.id))?.dueAt).to.be.instanceOf(Date);
      expect(await scene.work.queued(done.id)).to.equal(null);
      expect((await scene.work.queued(queued.id))?.dueAt).to.equal(null);
      expect((await scene.work.flights()).map(({ deliveryIds }) => deliveryIds)).to.deep.equal([[young.id]]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(open.id)]);
    });

    it("leave deliveries of another flight", async () => {
      const [back] = (await addMany(2)) as [DeliveryModel];
      const { flightId = "" } = await takeDue();
      await scene.store.putBack({
        returns: [{ id: String(back.id), flightId, delayMs: 0 }],
        endedFlights: [],
      });
      await scene.core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");
      const { flightId: other } = await takeDue();

      expect(await scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 })).to.equal(1);

      expect(await scene.work.queued(back.id)).to.equal(null);
      expect((await scene.work.flights()).map(({ id }) => id)).to.deep.equal([other]);
    });

    it("make the deliveries of a process due that died while the database's clock was ahead", async () => {
      const [delivery] = (await addMany(1)) as [DeliveryModel];
      await takeDue();
      for (const [ahead, count] of [
        ["30 minutes", 0],
        ["2 hours", 1],
      ] as const) {
        await scene.core.sql("UPDATE svc.flights SET ends_at = now() + $1::interval", [ahead]);
        expect(await scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 })).to.equal(count);
      }

      expect((await scene.work.queued(delivery.id))?.dueAt).to.be.instanceOf(Date);
    });

    it("end that many at once, and each once for simultaneous sweeps", async () => {
      for (let count = 0; count < 6; count++) {
        await scene.work.addDelivery(scene.subscription);
        await takeDue();
      }
      await scene.core.sql("UPDATE svc.flights SET ends_at = now() - interval '1 second'");

      expect(await scene.store.endOverdueFlights({ limit: 2, flightMs: 60_000 })).to.equal(2);
      const counts = await Promise.all(
        [1, 2, 3, 4].map(() => scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 })),
      );

      expect(counts.reduce((sum, count) => sum + count, 0)).to.equal(4);
      expect((await takeDue()).deliveries).to.have.length(6);
    });

    it("end all, whatever their time", async () => {
      const [delivery] = await addMany(1);
      await takeDue();
      expect(await scene.store.endOverdueFlights({ limit: 10, flightMs: 60_000 })).to.equal(0);

      await scene.store.endAllFlights();

      expect(await scene.work.flights()).to.deep.equal([]);
      expect(idsOf((await takeDue()).deliveries)).to.deep.equal([String(delivery?.id)]);
    });
  });

  describe("findUndeadLettered", () => {
    it("finds failed deliveries without a confirmed dead letter in time, until it is confirmed", async () => {
      const failed = await scene.work.addDelivery(scene.subscription, {
        status: "failed",
        lastError: "spent",
        data: "[1.50]",
      });
      await scene.work.addDelivery(scene.subscription, { status: "failed", deadLetteredAt: new Date() });
      await scene.work.addDelivery(scene.subscription, { status: "retrying" });
      await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 minute'");
      await scene.core.sql("UPDATE svc.events SET occurred_at = '2026-03-28T16:30:00.123456+02:00'");
      await scene.work.addDelivery(scene.subscription, { status: "failed" });
      const find = (): ReturnType<DeliveryStore["findUndeadLettered"]> =>
        scene.store.findUndeadLettered({ after: "0", limit: 10, olderThanMs: 30_000 });

      const found = await find();
      await scene.store.markDeadLettered(idsOf(found));

      expect(found).to.deep.equal([
        {
          id: String(failed.id),
          uuid: failed.uuid,
          eventUuid: failed.eventUuid,
          event: "on_create",
          resource: "notes",
          timestamp: "2026-03-28T14:30:00.123456Z",
          lastError: "spent",
          data: "[1.50]",
          previous: null,
        },
      ]);
      expect(await find()).to.deep.equal([]);
    });
  });
});
