import { expect } from "chai";
import { createDeliveryStore, type DeliveryStore, type LeasedDelivery } from "../../src/deliveries/store.ts";
import type { SubscriptionModel } from "../../src/db/generated/models.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { until } from "../support/wait.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const idsOf = (rows: readonly { readonly id: string | bigint }[]): readonly string[] =>
  rows.map(({ id }) => String(id)).toSorted();

// What stands for a delivery in a queue, and what brings it back; store.test.ts has the rest.
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

  const claim = (limit = 100): Promise<readonly { id: string }[]> =>
    store.claimDue({ limit, queuedForMs: 60_000 });

  const leaseOf = async (delivery: { readonly id: bigint }): Promise<LeasedDelivery> => {
    const [lease] = await store.lease({ ids: [String(delivery.id)], leaseMs: 60_000 });
    if (lease === undefined) throw new Error("expected a lease");
    return lease;
  };

  describe("claimDue", () => {
    it("takes what is due and in no queue, those due longest first, each once", async () => {
      const younger = await work.addDelivery(subscription, { nextAttemptAt: inSeconds(-5) });
      const older = await work.addDelivery(subscription, {
        status: "retrying",
        nextAttemptAt: inSeconds(-50),
      });
      const stranded = await work.addDelivery(subscription, {
        nextAttemptAt: inSeconds(-2),
        queuedUntil: inSeconds(-1),
        leasedUntil: inSeconds(-1),
      });
      for (const overrides of [
        { nextAttemptAt: inSeconds(60) },
        { nextAttemptAt: null },
        { queuedUntil: inSeconds(60) },
        { leasedUntil: inSeconds(60) },
        { status: "delivered" },
        { status: "failed" },
        { status: "cancelled" },
      ])
        await work.addDelivery(subscription, overrides);

      expect(idsOf(await claim(1))).to.deep.equal([String(older.id)]);
      expect(idsOf(await claim())).to.deep.equal(idsOf([younger, stranded]));
      expect(await claim()).to.deep.equal([]);
    });

    it("parts what is due among sweeps at once", async () => {
      for (let count = 0; count < 12; count++) await work.addDelivery(subscription);

      const claims = await Promise.all(Array.from({ length: 4 }, () => claim(3)));

      expect(new Set(idsOf(claims.flat())).size).to.equal(claims.flat().length);
    });
  });

  describe("postpone", () => {
    it("makes a delivery due later, to the next quarter of a second, and gives its lease back", async () => {
      const delivery = await work.addDelivery(subscription, { queuedUntil: inSeconds(60) });
      const lease = await leaseOf(delivery);

      await store.postpone([{ lease, delayMs: 30_010, reason: "Waiting." }]);

      const row = await work.deliveryOf(delivery.id);
      expect(row).to.include({
        status: "pending",
        attempt: 0,
        lastError: "Waiting.",
        leasedUntil: null,
        queuedUntil: null,
      });
      expect(row.updatedAt).to.deep.equal(delivery.updatedAt);
      const dueAt = row.nextAttemptAt?.getTime() ?? 0;
      expect(dueAt).to.be.within(Date.now() + 25_000, Date.now() + 30_260);
      expect(dueAt % 250).to.equal(0);
      expect(await work.attemptsOf(delivery.id)).to.deep.equal([]);
    });

    it("makes those due at once that have not to wait, and keeps the error of an attempt", async () => {
      const failed = await work.addDelivery(subscription, { status: "retrying", lastError: "HTTP 500" });
      const fresh = await work.addDelivery(subscription);
      const leases = await Promise.all([failed, fresh].map(leaseOf));

      await store.postpone(leases.map((lease) => ({ lease, delayMs: 0, reason: undefined })));

      await until(async () => (await claim()).length > 0, { what: "the next quarter of a second" });
      const rows = await work.deliveries();
      expect(rows.map(({ status, lastError }) => [status, lastError])).to.deep.equal([
        ["retrying", "HTTP 500"],
        ["pending", null],
      ]);
    });

    it("leaves one that another holds by now, and one that was cancelled", async () => {
      const taken = await work.addDelivery(subscription);
      const cancelled = await work.addDelivery(subscription);
      const leases = await Promise.all([taken, cancelled].map(leaseOf));
      await core.sql("UPDATE svc.deliveries SET leased_until = now() + interval '1 hour' WHERE id = $1", [
        taken.id,
      ]);
      await core.sql("UPDATE svc.deliveries SET status = 'cancelled', next_attempt_at = NULL WHERE id = $1", [
        cancelled.id,
      ]);
      const before = await work.deliveries();

      await store.postpone(leases.map((lease) => ({ lease, delayMs: 1_000, reason: "Waiting." })));

      expect(await work.deliveries()).to.deep.equal(before);
    });
  });

  describe("unqueue", () => {
    it("makes a delivery due again at once, also one that a dead dispatcher had leased", async () => {
      const fresh = await work.addDelivery(subscription);
      const stranded = await work.addDelivery(subscription, { leasedUntil: inSeconds(-5) });
      const claimed = await claim();

      await store.unqueue(claimed.map(({ id }) => id));

      expect(idsOf(await claim())).to.deep.equal(idsOf([fresh, stranded]));
    });
  });

  describe("forgetQueued", () => {
    for (const [areLeasesOver, expected] of [
      [false, ["queued"]],
      [true, ["leased", "queued"]],
    ] as const) {
      it(`makes ${expected.join(" and ")} deliveries due when leases are ${areLeasesOver ? "" : "not "}over`, async () => {
        const names = new Map<string, string>();
        for (const [name, overrides] of [
          ["queued", { queuedUntil: inSeconds(60) }],
          ["leased", { queuedUntil: inSeconds(60), leasedUntil: inSeconds(60) }],
          ["delivered", { status: "delivered", queuedUntil: inSeconds(60) }],
        ] as const)
          names.set(String((await work.addDelivery(subscription, overrides)).id), name);

        await store.forgetQueued({ areLeasesOver });

        const due = await claim();
        expect(due.map(({ id }) => names.get(id))).to.have.members(expected);
      });
    }
  });

  describe("findUndeadLettered", () => {
    it("finds failed deliveries of which no dead letter was confirmed in time, until one is", async () => {
      const failed = await work.addDelivery(subscription, { status: "failed", lastError: "spent" });
      await work.addDelivery(subscription, { status: "failed", deadLetteredAt: new Date() });
      await work.addDelivery(subscription, { status: "retrying" });
      await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '1 minute'");
      await work.addDelivery(subscription, { status: "failed" });
      const find = (): ReturnType<DeliveryStore["findUndeadLettered"]> =>
        store.findUndeadLettered({ limit: 10, olderThanMs: 30_000 });

      const found = await find();
      await store.markDeadLettered(idsOf(found));

      expect(found).to.deep.equal([
        {
          id: String(failed.id),
          uuid: failed.uuid,
          eventUuid: failed.eventUuid,
          lastError: "spent",
          body: Buffer.from(failed.body),
        },
      ]);
      expect(await find()).to.deep.equal([]);
    });
  });
});
