import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { onlyIndexes, type Sql } from "../../src/db/sql.ts";
import { createHeldStore, type HeldStore } from "../../src/deliveries/held-store.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { addDeliveries } from "../support/history-rows.ts";
import { createExplainingSql, type Plan } from "../support/plans.ts";
import { until } from "../support/wait.ts";

describe("createHeldStore", () => {
  const scene = useCoreScene();
  const open = (sql = scene.core.sql): HeldStore => createHeldStore({ sql, indexSql: sql });
  const untilWaiting = async (): Promise<void> => {
    const locks =
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    await until(async () => (await scene.core.sql(locks)).length > 0, { what: "the take to wait" });
  };

  it("cancels the held deliveries of one subscription, up to a delivery", async () => {
    const { work } = scene;
    const [one, other] = [await work.addSubscription(), await work.addSubscription()];
    const held = { status: "held", heldAt: new Date() };
    const foreign = await work.addDelivery(one, held);
    const pending = await work.addDelivery(other);
    const first = await work.addDelivery(other, held);
    const later = await work.addDelivery(other, held);
    const what = { subscriptionId: other.id, upTo: String(first.id), reason: "Dropped.", limit: 10 };

    expect(await open().cancel(what)).to.equal(1);

    const statuses = new Map((await work.deliveries()).map(({ id, status }) => [id, status]));
    expect([foreign, pending, first, later].map(({ id }) => statuses.get(id))).to.deep.equal([
      "held",
      "pending",
      "cancelled",
      "held",
    ]);
  });

  it("cancels nothing of a subscription that is on again, for the time that it was off", async () => {
    const { work, core } = scene;
    const { id: subscriptionId } = await work.addSubscription();
    await addDeliveries(core.sql, { of: subscriptionId, status: "held" });
    const store = open();
    const cancel = (days: number): Promise<number> =>
      store.cancel({
        subscriptionId,
        upTo: undefined,
        offForMs: days * 86_400_000,
        reason: "Off.",
        limit: 10,
      });

    expect(await cancel(7)).to.equal(0);
    await core.sql("UPDATE svc.subscriptions SET is_active = false, disabled_at = now() - interval '8 days'");
    expect(await cancel(9)).to.equal(0);
    expect(await cancel(7)).to.equal(1);
  });

  it("reads nothing of a long history when it cancels", async () => {
    const { work, core } = scene;
    const { id: of } = await work.addSubscription();
    await addDeliveries(core.sql, { of, count: 500 });
    await addDeliveries(core.sql, { of, status: "held", count: 10_000 });
    const what = { subscriptionId: of, upTo: undefined, reason: "Dropped.", limit: 10 };
    const plans: Plan[] = [];
    const client = await core.database.pool.connect();
    try {
      for (const mode of ["custom", "generic"] as const) {
        const note = (plan: Plan): void => void plans.push(plan);
        const sql = createExplainingSql({ client, settings: onlyIndexes, mode, note });
        await open(sql).cancel(what);
      }
    } finally {
      client.release();
    }

    // Each is read for the lock, and again for the update.
    expect(plans.map(({ rowsRead }) => rowsRead <= 2 * what.limit)).to.deep.equal([true, true]);
  });

  it("marks its deliveries as delayed by their user, like those of a webhook with a rate limit", async () => {
    const { work } = scene;
    const [plain, limited] = [await work.addSubscription(), await work.addSubscription({ rateLimit: 1 })];
    await work.addDelivery(plain, { status: "held", heldAt: new Date() });
    for (const one of [plain, limited]) await work.addDelivery(one);
    const from = { subscriptionId: plain.id, holder: randomUUID(), flightMs: 60_000, limit: 1 };

    const { deliveries: held } = await open().takeOldest(from);
    const { deliveries: due } = await scene.store.takeDue({
      limit: 9,
      flightMs: 60_000,
      sinceMs: undefined,
    });

    expect(held.map(({ isPaced }) => isPaced)).to.deep.equal([true]);
    const ofDue = due.map(({ subscriptionId, isPaced }) => [subscriptionId, isPaced]);
    expect(ofDue).to.have.deep.members([
      [plain.id, false],
      [limited.id, true],
    ]);
  });

  it("takes over a lane whose lease has ended, or ends far ahead: the database's clock was ahead", async () => {
    const { work, core } = scene;
    const subscription = await work.addSubscription();
    await work.addDelivery(subscription, { status: "held", heldAt: new Date() });
    const store = open();
    const taken: number[] = [];
    for (const time of ["30 minutes", "-1 second", "2 hours"]) {
      await core.sql("UPDATE svc.deliveries SET status = 'held', held_at = now()");
      await core.sql("DELETE FROM svc.lanes");
      await core.sql("INSERT INTO svc.lanes VALUES ($1, gen_random_uuid(), now() + $2::interval)", [
        subscription.id,
        time,
      ]);
      const from = { subscriptionId: subscription.id, holder: randomUUID(), flightMs: 60_000, limit: 1 };
      taken.push((await store.takeOldest(from)).deliveries.length);
    }

    expect(taken).to.deep.equal([0, 1, 1]);
  });

  it("takes none that was dropped while it waited for the lane", async () => {
    const { work, core } = scene;
    const subscription = await work.addSubscription();
    const subscriptionId = subscription.id;
    const { id } = await work.addDelivery(subscription, { status: "held", heldAt: new Date() });
    const store = open();
    const taking = { subscriptionId, holder: randomUUID(), flightMs: 60_000, limit: 1 };
    await core.sql("INSERT INTO svc.lanes VALUES ($1, $2, now())", [subscriptionId, taking.holder]);

    const taken = await core.transact(async (sql) => {
      await sql("SELECT FROM svc.lanes FOR UPDATE");
      const waiting = store.takeOldest(taking);
      await untilWaiting();
      await store.cancel({ subscriptionId, upTo: undefined, reason: "Dropped.", limit: 10 });
      return { waiting };
    });

    expect((await taken.waiting).deliveries).to.deep.equal([]);
    expect((await work.deliveryOf(id)).status).to.equal("cancelled");
    expect(await work.flights()).to.deep.equal([]);
  });

  it("takes the oldest first after a take without an answer that was still running", async () => {
    const { work, core } = scene;
    const subscription = await work.addSubscription();
    const add = async (): Promise<string> =>
      String((await work.addDelivery(subscription, { status: "held", heldAt: new Date() })).id);
    const [first] = [await add(), await add()];
    let running: Sql | undefined;
    const sql: Sql = async (text, values) => {
      const lost = text.includes("INSERT INTO svc.flights") ? running : undefined;
      if (lost === undefined) return core.sql(text, values);
      running = undefined;
      await lost(text, values);
      throw new Error("Connection terminated unexpectedly");
    };
    const store = createHeldStore({ sql, indexSql: core.sql });
    const taking = { subscriptionId: subscription.id, holder: randomUUID(), flightMs: 60_000, limit: 1 };

    const { again } = await core.transact(async (own) => {
      running = own;
      expect(await store.takeOldest(taking).catch(({ message }: Error) => message)).to.include("terminated");
      const waiting = store.takeOldest(taking);
      await untilWaiting();
      return { again: waiting };
    });

    expect((await again).deliveries).to.deep.equal([]);
    expect((await store.takeOldest(taking)).deliveries.map(({ id }) => id)).to.deep.equal([first]);
  });

  it("keeps the lane of another dispatcher, and a later request to drop", async () => {
    const { work, core } = scene;
    const { id: subscriptionId } = await work.addSubscription();
    const store = open();
    const [holder, stranger] = [randomUUID(), randomUUID()];
    await store.takeOldest({ subscriptionId, holder, flightMs: 60_000, limit: 1 });
    await core.sql("INSERT INTO svc.discards (subscription_id, up_to) VALUES ($1, 9)", [subscriptionId]);
    const count = async (table: string): Promise<number> =>
      (await core.sql(`SELECT FROM svc.${table} WHERE subscription_id = $1`, [subscriptionId])).length;

    await store.leave({ subscriptionId, holder: stranger });
    await store.endDiscard({ subscriptionId, upTo: "8" });
    expect([await count("lanes"), await count("discards")]).to.deep.equal([1, 1]);

    await store.leave({ subscriptionId, holder });
    await store.endDiscard({ subscriptionId, upTo: "9" });
    expect([await count("lanes"), await count("discards")]).to.deep.equal([0, 0]);
  });

  it("forgets a request to drop without held deliveries after ten seconds: one may be in flight until then", async () => {
    const { work, core } = scene;
    const store = open();
    const { id } = await work.addSubscription();
    await core.sql("INSERT INTO svc.discards (subscription_id, up_to) VALUES ($1, 9)", [id]);
    const kept: number[] = [];
    for (const seconds of [8, 12]) {
      await core.sql("UPDATE svc.discards SET asked_at = now() - $1 * interval '1 second'", [seconds]);
      await store.forgetDiscards();
      kept.push((await core.sql("SELECT FROM svc.discards")).length);
    }

    expect(kept).to.deep.equal([1, 0]);
  });
});
