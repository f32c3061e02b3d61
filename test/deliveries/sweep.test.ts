import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import type { Attempts, DeliveryInHand } from "../../src/deliveries/attempt/attempts.ts";
import {
  createDeliveryStore,
  type DeliveryStore,
  type Outcome,
  type Return,
} from "../../src/deliveries/store.ts";
import { createSweep, type Sweep, type SweepOptions } from "../../src/deliveries/sweep.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import {
  createWatchedAdmission,
  createWork,
  inSeconds,
  type WatchedAdmission,
  type Work,
} from "../support/work.ts";

const never = 600_000;

const idsOf = (...deliveries: readonly DeliveryModel[]): readonly string[] =>
  deliveries.map(({ id }) => String(id));

describe("createSweep", () => {
  let core: CoreDatabase;
  let work: Work;
  let store: DeliveryStore;
  let broker: WatchedBroker;
  let admission: WatchedAdmission;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;
  let started: DeliveryInHand[];
  let outcomes: Outcome[];
  let returns: Return[];

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
    store = createDeliveryStore({ sql: core.sql });
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    broker = createWatchedBroker();
    admission = createWatchedAdmission();
    running = undefined;
    [started, outcomes, returns] = [[], [], []];
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(overrides: Partial<SweepOptions> = {}): Sweep {
    const memory = createMemoryLog();
    lines = memory.lines;
    const writes: Promise<unknown>[] = [];
    const attempts: Pick<Attempts, "start" | "settle" | "putBack" | "drain"> = {
      start: (delivery) => void started.push(delivery),
      settle(_, outcome) {
        outcomes.push(outcome);
        writes.push(store.record({ outcomes: [outcome], landed: [] }));
      },
      putBack({ flight }, back) {
        returns.push(back);
        writes.push(store.putBack({ returns: [{ ...back, flightId: flight.id }], landed: [] }));
      },
      async drain() {
        await Promise.all(writes);
      },
    };
    const sweep = createSweep({
      broker,
      store,
      admission,
      attempts,
      isAdminFor: () => false,
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [3_600_000] }),
      flightMs: 60_000,
      log: memory.log,
      metrics: createMetrics().deliveries,
      intervalMs: 5,
      requeueAfterMs: 60_000,
      ...overrides,
    });
    running = runWorkers({ workers: [sweep], log: memory.log });
    return sweep;
  }

  const startedIds = (): readonly string[] => started.map(({ id }) => id);
  const untilStarted = (count: number): Promise<unknown> =>
    until(() => started.length >= count, { what: `${count} attempts` });
  /** Counts what each turn asks first. */
  const watchTurns = (): {
    readonly store: DeliveryStore;
    readonly next: (count: number) => Promise<unknown>;
  } => {
    let asked = 0;
    const next = (count: number): Promise<unknown> => {
      const goal = asked + count + 1;
      return until(() => asked >= goal, { what: `${count} turns` });
    };
    const nextDueInMs = (): ReturnType<DeliveryStore["nextDueInMs"]> => {
      asked += 1;
      return store.nextDueInMs();
    };
    return { store: { ...store, nextDueInMs }, next };
  };

  const age = (hours: number): Promise<unknown> =>
    core.sql("UPDATE svc.deliveries SET updated_at = now() - $1 * interval '1 hour'", [hours]);

  /** One and 450 others of subscriptions that are gone. */
  async function addMany(): Promise<void> {
    const { id } = await work.addDelivery(subscription);
    await core.sql(
      `WITH made AS (
         INSERT INTO svc.deliveries (id, uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
           max_attempts, url)
         SELECT id + 1000 + n, gen_random_uuid(), event_id, event_uuid, subscription_id + 1000 + n, user_id, resource, id, 'automatic', 3, ''
         FROM svc.deliveries CROSS JOIN generate_series(1, 450) AS n WHERE id = $1 RETURNING id, user_id)
       INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at) SELECT id, $2, user_id, now() FROM made`,
      [String(id), subscription.id],
    );
  }

  describe("of what is due", () => {
    it("has it attempted, all of a turn in one flight, fresh work apart from retries", async () => {
      const fresh = await work.addDelivery(subscription, { due: inSeconds(-9), data: '"é"' });
      const retry = await work.addDelivery(subscription, { status: "retrying", attempt: 1 });
      await work.addDelivery(subscription, { due: inSeconds(60) });
      const turns = watchTurns();

      start({ store: turns.store });
      await turns.next(3);

      expect(startedIds()).to.deep.equal(idsOf(fresh, retry));
      const [one, other] = started;
      expect(one?.flight).to.deep.equal({ id: String((await work.flights())[0]?.id), inHand: 2 });
      expect(other?.flight).to.equal(one?.flight);
      expect(one).to.include({ uuid: fresh.uuid, data: undefined, attempt: 0, eventUuid: fresh.eventUuid });
      expect(one?.subscription.user.id).to.equal(subscription.userId);
      expect(performance.now() - (one?.happenedAtMs ?? 0)).to.be.within(0, 10_000);
      const asked = admission.asked.map(({ lane, bytes, isUrgent }) => [lane, bytes, isUrgent]);
      expect(asked).to.deep.equal([
        ["first", 4, false],
        ["retry", 2, false],
      ]);
    });

    it("says that the first attempt of a manual one is urgent, and no other", async () => {
      for (const attempt of [0, 1]) await work.addDelivery(subscription, { triggerKind: "manual", attempt });

      start();
      await untilStarted(2);

      expect(admission.asked.map(({ isUrgent }) => isUrgent)).to.deep.equal([true, false]);
    });

    it("has a retry attempted when its time comes, however long the interval is", async () => {
      const delivery = await work.addDelivery(subscription, { due: inSeconds(0.3) });
      const turns = watchTurns();
      start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      expect(startedIds()).to.deep.equal([]);

      await untilStarted(1);

      expect(startedIds()).to.deep.equal(idsOf(delivery));
    });

    it("has one attempted that falls due in the course of a turn", async () => {
      const dueAt = inSeconds(0.4);
      await work.addDelivery(subscription, { due: dueAt });
      start({
        intervalMs: never,
        store: {
          ...store,
          async takeDue(options) {
            const taken = await store.takeDue(options);
            await until(() => Date.now() > dueAt.getTime() + 50, { what: "the due time" });
            return taken;
          },
        },
      });

      await untilStarted(1);
    });

    it("has one attempted that was queued since its last turn, when its time comes", async () => {
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      await work.addDelivery(subscription, { due: inSeconds(0.05) });

      sweep.onQueued(60);

      await untilStarted(1);
    });

    it("takes more than a batch without a wait", async () => {
      await addMany();

      start({ intervalMs: never });
      await until(() => started.length + outcomes.length >= 451, { what: "all" });

      expect(new Set([...startedIds(), ...outcomes.map((outcome) => outcome.id)]).size).to.equal(451);
    });

    it("takes more than a batch without a wait of which most are at their end", async () => {
      await addMany();
      await core.sql("UPDATE svc.deliveries SET status = 'delivered' WHERE id % 10 <> 0");

      start({ intervalMs: never });
      await until(
        async () => (await core.sql("SELECT FROM svc.delivery_queue WHERE due_at <= now()")).length === 0,
        { what: "all" },
      );
    });

    it("puts one back for which there is no slot, to wait for one", async () => {
      admission.refuses = () => "busy";
      const delivery = await work.addDelivery(subscription);

      start({ intervalMs: never });
      await until(() => returns.length > 0, { what: "the return" });

      expect(returns[0]).to.deep.equal({ id: String(delivery.id), delayMs: undefined });
      expect(started).to.deep.equal([]);
    });

    it("puts one back whose subscription is paused, and cancels one whose subscription is gone", async () => {
      const orphan = await work.addDelivery(await work.addSubscription());
      const paused = await work.addDelivery(subscription);
      await core.sql("UPDATE svc.subscriptions SET is_active = false WHERE id = $1", [subscription.id]);
      await core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [orphan.subscriptionId]);

      start({ intervalMs: never });
      await until(async () => (await work.deliveryOf(orphan.id)).status === "cancelled", { what: "the end" });
      await until(async () => (await work.queued(paused.id)) !== null, { what: "the return" });

      expect(await work.deliveryOf(orphan.id)).to.include({
        lastError: "The subscription was deleted.",
        attempt: 0,
      });
      expect(await work.queued(paused.id)).to.include({ dueAt: null });
      expect(started).to.deep.equal([]);
    });
  });

  describe("of a record that the subscriber does not own", () => {
    let delivery: DeliveryModel;

    beforeEach(async () => {
      delivery = await work.addDelivery(subscription);
      await core.sql("UPDATE svc.events SET owner_id = '0'");
    });

    it("cancels the delivery once the subscriber is no admin any more", async () => {
      start();
      await until(() => outcomes.length > 0, { what: "the outcome" });

      expect(outcomes[0]).to.deep.equal({
        id: String(delivery.id),
        uuid: delivery.uuid,
        attemptsBefore: 0,
        status: "cancelled",
        lastError: "The subscriber may no longer see this record.",
      });
      expect(started).to.deep.equal([]);
    });

    it("has it attempted for an admin, as the user is now", async () => {
      await core.sql("UPDATE svc.users SET is_admin = true");
      start({ isAdminFor: (resource, { isAdmin }) => resource === "notes" && isAdmin });

      await untilStarted(1);
    });
  });

  describe("when its receiver has not answered for as long as its attempts would have taken, and two days", () => {
    it("gives the delivery up, with the reason", async () => {
      await work.addDelivery(subscription, { attempt: 1 });
      await age(50.1);
      admission.refuses = () => "silent";

      start();
      await until(() => outcomes.length > 0, { what: "the outcome" });

      expect(outcomes[0]).to.include({
        status: "failed",
        attemptsBefore: 1,
        lastError: "Given up after 1 of 3 attempts: 127.0.0.1:9 has not answered anything for too long.",
      });
      expect(started).to.deep.equal([]);
    });

    for (const [what, hours, refusal] of [
      ["has it wait an hour before that", 49, "silent"],
      ["has it wait when the receiver is only busy", 1_000, "busy"],
    ] as const) {
      it(what, async () => {
        await work.addDelivery(subscription, { attempt: 1 });
        await age(hours);
        admission.refuses = () => refusal;

        start({ intervalMs: never });
        await until(() => returns.length > 0, { what: "the return" });

        expect(outcomes).to.deep.equal([]);
      });
    }
  });

  it("has attempted what a process had in hand that died", async () => {
    const delivery = await work.addDelivery(subscription);
    await store.takeDue({ limit: 1, flightMs: -1_000, sinceMs: undefined });

    start();
    await untilStarted(1);

    expect(startedIds()).to.deep.equal(idsOf(delivery));
    expect(lines.find(({ event }) => event === "sweep.overdue")).to.include({ deliveries: 1 });
  });

  it("cancels what waits of a subscription that was deleted, whatever it waits for", async () => {
    const waiting = [
      await work.addDelivery(subscription, { due: "parked" }),
      await work.addDelivery(subscription, { due: inSeconds(3_600) }),
    ];
    await core.sql("DELETE FROM svc.subscriptions");

    start();

    await until(async () => (await work.deliveries()).every(({ status }) => status === "cancelled"), {
      what: "the end",
    });
    for (const { id } of waiting) expect(await work.queued(id)).to.equal(null);
  });

  it("buries failed deliveries of which no dead letter was confirmed, until one is", async () => {
    const failed = await work.addDelivery(subscription, {
      status: "failed",
      lastError: "spent",
      data: "[1.50]",
    });
    await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const young = await work.addDelivery(subscription, { status: "failed" });
    broker.refuses = () => true;
    start();
    await until(() => broker.published.length >= 3, { what: "three tries" });
    expect((await work.deliveryOf(failed.id)).deadLetteredAt).to.equal(null);

    broker.refuses = () => false;

    await until(async () => (await work.deliveryOf(failed.id)).deadLetteredAt, { what: "the mark" });
    expect(new Set(broker.published.map(({ messageId }) => messageId))).to.deep.equal(new Set([failed.uuid]));
    expect(broker.published[0]).to.include({ exchange: exchanges.dead });
    expect(broker.published[0]?.headers).to.include({ "x-svc-reason": "spent" });
    expect(broker.published[0]?.body.toString()).to.include('"data":[1.50],');
    expect(await broker.depth(queues.dead)).to.equal(1);
    expect((await work.deliveryOf(young.id)).deadLetteredAt).to.equal(null);
  });

  it("has deliveries attempted while there is no broker", async () => {
    broker.connected = false;
    await work.addDelivery(subscription);

    start();

    await untilStarted(1);
  });

  it("goes on after the database failed", async () => {
    await work.addDelivery(subscription);
    await core.sql("ALTER TABLE svc.delivery_queue RENAME TO queue_away");
    try {
      start();
      await until(() => lines.some(({ msg }) => msg === "sweep failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await core.sql("ALTER TABLE svc.queue_away RENAME TO delivery_queue");
    }

    await untilStarted(1);
  });
});
