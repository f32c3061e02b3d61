import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel } from "../support/generated/models.ts";
import { aborted } from "../../src/kit/worker.ts";
import { stateSql } from "../support/delivery-states.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { idsOf, never, useSweepScene } from "../support/sweep-scene.ts";
import { until } from "../support/wait.ts";
import { inSeconds } from "../support/work.ts";

describe("createSweep", () => {
  const scene = useSweepScene();
  const { start, startedIds, untilStarted, watchTurns } = scene;

  const age = (hours: number): Promise<unknown> =>
    scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - $1 * interval '1 hour'", [hours]);

  /** Adds one delivery, and 450 others of deleted subscriptions. */
  async function addMany(): Promise<void> {
    const { id } = await scene.work.addDelivery(scene.subscription);
    await scene.core.sql(
      `WITH made AS (
         INSERT INTO svc.deliveries (id, uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
           max_attempts, url)
         SELECT id + 1000 + n, gen_random_uuid(), event_id, event_uuid, subscription_id + 1000 + n, user_id, resource, id, 'automatic', 3, ''
         FROM svc.deliveries CROSS JOIN generate_series(1, 450) AS n WHERE id = $1 RETURNING id, user_id)
       INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at) SELECT id, $2, user_id, now() FROM made`,
      [String(id), scene.subscription.id],
    );
  }

  describe("of due deliveries", () => {
    it("attempts them, all of a turn in one flight, first attempts apart from retries", async () => {
      const fresh = await scene.work.addDelivery(scene.subscription, { due: inSeconds(-9), data: '"é"' });
      const retry = await scene.work.addDelivery(scene.subscription, { status: "retrying", attempt: 1 });
      await scene.work.addDelivery(scene.subscription, { due: inSeconds(60) });
      const turns = watchTurns();

      start({ store: turns.store });
      await turns.next(3);

      expect(startedIds()).to.deep.equal(idsOf(fresh, retry));
      const [one, other] = scene.started;
      expect(one?.flight).to.deep.include({ id: String((await scene.work.flights())[0]?.id), unwritten: 2 });
      expect(other?.flight).to.equal(one?.flight);
      expect(one).to.include({
        uuid: fresh.uuid,
        payload: undefined,
        attempt: 0,
        eventUuid: fresh.eventUuid,
      });
      expect(one?.subscription.user.id).to.equal(scene.subscription.userId);
      expect(performance.now() - (one?.happenedAtMs ?? 0)).to.be.within(0, 10_000);
      const asked = scene.admission.asked.map(({ lane, bytes, isUrgent }) => [lane, bytes, isUrgent]);
      expect(asked).to.deep.equal([
        ["first", 4, false],
        ["retry", 2, false],
      ]);
    });

    it("marks the first attempt of a manual retry as urgent, and no other", async () => {
      for (const status of ["pending", "retrying"])
        await scene.work.addDelivery(scene.subscription, { triggerKind: "manual", status });

      start();
      await untilStarted(2);

      expect(scene.admission.asked.map(({ isUrgent }) => isUrgent)).to.deep.equal([true, false]);
    });

    it("attempts a retry at its due time, with any interval", async () => {
      const delivery = await scene.work.addDelivery(scene.subscription, { due: inSeconds(0.3) });
      const turns = watchTurns();
      start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      expect(startedIds()).to.deep.equal([]);

      await untilStarted(1);

      expect(startedIds()).to.deep.equal(idsOf(delivery));
    });

    it("attempts one that falls due during a turn", async () => {
      const dueAt = inSeconds(0.4);
      await scene.work.addDelivery(scene.subscription, { due: dueAt });
      start({
        intervalMs: never,
        store: {
          ...scene.store,
          async takeDue(options) {
            const taken = await scene.store.takeDue(options);
            await until(() => Date.now() > dueAt.getTime() + 50, { what: "the due time" });
            return taken;
          },
        },
      });

      await untilStarted(1);
    });

    it("attempts one that was queued since its last turn, at its due time", async () => {
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      await scene.work.addDelivery(scene.subscription, { due: inSeconds(0.05) });

      sweep.onQueued(60);

      await untilStarted(1);
    });

    it("takes more than a batch without a wait", async () => {
      await addMany();

      start({ intervalMs: never });
      await until(() => scene.started.length + scene.outcomes.length >= 451, { what: "all" });

      expect(new Set([...startedIds(), ...scene.outcomes.map((outcome) => outcome.id)]).size).to.equal(451);
    });

    it("takes more than a batch without a wait when most are finished", async () => {
      await addMany();
      await scene.core.sql(`UPDATE svc.deliveries SET ${stateSql("'delivered'").set} WHERE id % 10 <> 0`);

      start({ intervalMs: never });
      await until(
        async () =>
          (await scene.core.sql("SELECT FROM svc.delivery_queue WHERE due_at <= now()")).length === 0,
        { what: "all" },
      );
    });

    it("puts a delivery without a slot back, to wait for one", async () => {
      scene.admission.refuses = () => "busy";
      const delivery = await scene.work.addDelivery(scene.subscription);

      start({ intervalMs: never });
      await until(() => scene.returns.length > 0, { what: "the return" });

      expect(scene.returns[0]).to.deep.equal({ id: String(delivery.id), delayMs: undefined });
      expect(scene.started).to.deep.equal([]);
    });

    it("puts a delivery back to be announced when only others have slots of its receiver", async () => {
      scene.admission.refuses = () => "busy";
      scene.admission.isForOthers = true;
      const { id, uuid } = await scene.work.addDelivery(scene.subscription);

      start({ intervalMs: never });
      await until(() => scene.returns.length > 0, { what: "the return" });

      expect(scene.returns).to.deep.equal([{ id: String(id), delayMs: undefined, uuidForOthers: uuid }]);
    });

    it("holds a delivery whose subscription is off, and cancels one whose subscription was deleted", async () => {
      const orphan = await scene.work.addDelivery(await scene.work.addSubscription());
      const paused = await scene.work.addDelivery(scene.subscription);
      await scene.core.sql("UPDATE svc.subscriptions SET is_active = false WHERE id = $1", [
        scene.subscription.id,
      ]);
      await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [orphan.subscriptionId]);

      start({ intervalMs: never });
      await until(async () => (await scene.work.deliveryOf(orphan.id)).status === "cancelled", {
        what: "the end",
      });
      await until(async () => (await scene.work.deliveryOf(paused.id)).status === "held", {
        what: "the hold",
      });
      expect(await scene.work.queued(paused.id)).to.equal(null);

      expect(await scene.work.deliveryOf(orphan.id)).to.include({
        lastError: "The subscription was deleted.",
        attempt: 0,
      });
      expect(scene.started).to.deep.equal([]);
    });
  });

  describe("of a record that the subscriber does not own", () => {
    let delivery: DeliveryModel;

    beforeEach(async () => {
      delivery = await scene.work.addDelivery(scene.subscription);
      await scene.core.sql("UPDATE svc.events SET owner_id = '0'");
    });

    it("cancels the delivery once the subscriber is no admin any more", async () => {
      start();
      await until(() => scene.outcomes.length > 0, { what: "the outcome" });

      expect(scene.outcomes[0]).to.deep.equal({
        id: String(delivery.id),
        uuid: delivery.uuid,
        attemptsBefore: 0,
        status: "cancelled",
        lastError: "The subscriber may no longer see this record.",
      });
      expect(scene.started).to.deep.equal([]);
    });

    it("puts it back when another dispatcher may know the readers of the resource", async () => {
      start({ isKnown: () => false, intervalMs: never });
      await until(() => scene.returns.length > 0, { what: "the return" });

      expect(scene.returns).to.deep.equal([{ id: String(delivery.id), delayMs: 30_000 }]);
      expect(scene.outcomes).to.deep.equal([]);
    });

    for (const [hours, least] of [
      [0.5, 1_800_000],
      [100, 3_600_000],
    ] as const) {
      it(`delays it for as long as it has waited, an hour at most, after ${hours} hours`, async () => {
        await age(hours);

        start({ isKnown: () => false, intervalMs: never });
        await until(() => scene.returns.length > 0, { what: "the return" });

        expect(scene.returns[0]?.delayMs).to.be.within(least, least + (hours < 1 ? 60_000 : 0));
      });
    }

    it("attempts it for a current admin", async () => {
      await scene.core.sql("UPDATE svc.users SET is_admin = true");
      start({ eligibility: notesEligibility({ kind: "flag" }) });

      await untilStarted(1);
    });
  });

  describe("when its receiver has not answered for as long as its attempts would have taken, and two days", () => {
    it("fails the delivery, with the reason", async () => {
      await scene.work.addDelivery(scene.subscription, { status: "retrying" });
      await age(50.1);
      scene.admission.refuses = () => "silent";

      start();
      await until(() => scene.outcomes.length > 0, { what: "the outcome" });

      expect(scene.outcomes[0]).to.include({
        status: "failed",
        attemptsBefore: 1,
        lastError: "Given up after 1 of 3 attempts: 127.0.0.1:9 has not answered anything for too long.",
      });
      expect(scene.started).to.deep.equal([]);
    });

    for (const [what, hours, refusal] of [
      ["has it wait an hour before that", 49, "silent"],
      ["has it wait when the receiver is only busy", 1_000, "busy"],
    ] as const) {
      it(what, async () => {
        await scene.work.addDelivery(scene.subscription, { status: "retrying" });
        await age(hours);
        scene.admission.refuses = () => refusal;

        start({ intervalMs: never });
        await until(() => scene.returns.length > 0, { what: "the return" });

        expect(scene.outcomes).to.deep.equal([]);
      });
    }
  });

  it("attempts the deliveries of a process that died", async () => {
    const delivery = await scene.work.addDelivery(scene.subscription);
    await scene.store.takeDue({ limit: 1, flightMs: -1_000, sinceMs: undefined });

    start();
    await untilStarted(1);

    expect(startedIds()).to.deep.equal(idsOf(delivery));
    expect(scene.lines.find(({ event }) => event === "sweep.overdue")).to.include({ deliveries: 1 });
  });

  it("cancels the waiting deliveries of a deleted subscription, in any wait", async () => {
    const waiting = [
      await scene.work.addDelivery(scene.subscription, { due: "parked" }),
      await scene.work.addDelivery(scene.subscription, { due: inSeconds(3_600) }),
    ];
    await scene.core.sql("DELETE FROM svc.subscriptions");

    start();

    await until(async () => (await scene.work.deliveries()).every(({ status }) => status === "cancelled"), {
      what: "the end",
    });
    for (const { id } of waiting) expect(await scene.work.queued(id)).to.equal(null);
  });

  it("attempts the deliveries of others while those of a deleted subscription are cancelled", async () => {
    const due = await scene.work.addDelivery(scene.subscription);
    let portions = 0;
    const endless = async ({ limit }: { readonly limit: number }): Promise<number> => {
      portions += 1;
      return limit;
    };

    start({
      store: {
        ...scene.store,
        findOrphaned: async () => ({ ids: [1_000_000], last: undefined }),
        cancelOrphans: endless,
      },
    });
    await untilStarted(1);
    await until(() => portions > 2, { what: "further portions" });

    expect(startedIds()).to.deep.equal(idsOf(due));
  });

  it("dead-letters failed deliveries without a confirmed dead letter, until it is confirmed", async () => {
    const failed = await scene.work.addDelivery(scene.subscription, {
      status: "failed",
      lastError: "spent",
      data: "[1.50]",
    });
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const young = await scene.work.addDelivery(scene.subscription, { status: "failed" });
    scene.broker.refuses = () => true;
    start();
    await until(() => scene.broker.published.length >= 3, { what: "three tries" });
    expect((await scene.work.deliveryOf(failed.id)).deadLetteredAt).to.equal(null);

    scene.broker.refuses = () => false;

    await until(async () => (await scene.work.deliveryOf(failed.id)).deadLetteredAt, { what: "the mark" });
    expect(new Set(scene.broker.published.map(({ messageId }) => messageId))).to.deep.equal(
      new Set([failed.uuid]),
    );
    expect(scene.broker.published[0]).to.include({ exchange: exchanges.dead });
    expect(scene.broker.published[0]?.headers).to.include({ "x-svc-reason": "spent" });
    expect(scene.broker.published[0]?.body.toString()).to.include('"data":[1.50],');
    expect(await scene.broker.depth(queues.dead)).to.equal(1);
    expect((await scene.work.deliveryOf(young.id)).deadLetteredAt).to.equal(null);
  });

  it("dead-letters the others when the broker refuses some, such as large ones", async () => {
    const failed: string[] = [];
    for (let count = 0; count < 9; count += 1)
      failed.push((await scene.work.addDelivery(scene.subscription, { status: "failed" })).uuid);
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const large = failed.slice(0, 4);
    scene.broker.refuses = ({ messageId }) => large.includes(messageId);

    start();

    await until(async () => (await scene.broker.depth(queues.dead)) === 5, { what: "the dead letters" });
    // It may have another limit later.
    scene.broker.refuses = () => false;
    await until(async () => (await scene.broker.depth(queues.dead)) === 9, { what: "all of them" });
  });

  it("attempts deliveries while the broker does not confirm dead letters", async () => {
    await scene.work.addDelivery(scene.subscription, { status: "failed", lastError: "spent" });
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const answering = new AbortController();
    start({
      broker: {
        ...scene.broker,
        async publish(messages) {
          scene.broker.published.push(...messages);
          await aborted(answering.signal);
          return messages.map(() => ({ kind: "unconfirmed", reason: "no confirm" }));
        },
      },
    });
    await until(() => scene.broker.published.length > 0, { what: "the dead letter" });

    await scene.work.addDelivery(scene.subscription);

    await untilStarted(1);
    answering.abort();
  });

  it("attempts deliveries without a broker", async () => {
    scene.broker.connected = false;
    await scene.work.addDelivery(scene.subscription);

    start();

    await untilStarted(1);
  });

  it("continues after the database failed", async () => {
    await scene.work.addDelivery(scene.subscription);
    await scene.core.sql("ALTER TABLE svc.delivery_queue RENAME TO queue_away");
    try {
      start();
      await until(() => scene.lines.some(({ msg }) => msg === "sweep failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await scene.core.sql("ALTER TABLE svc.queue_away RENAME TO delivery_queue");
    }

    await untilStarted(1);
  });
});
