import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { DeliveryModel, SubscriptionModel } from "../../src/db/generated/models.ts";
import type { Attempts, DeliveryInHand } from "../../src/deliveries/attempt/attempts.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import {
  createDeliveryStore,
  type DeliveryStore,
  type Outcome,
  type Return,
} from "../../src/deliveries/store.ts";
import { createSweep, type Sweep, type SweepOptions } from "../../src/deliveries/sweep.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { pause } from "../../src/kit/worker.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWatchedAdmission, createWork, type WatchedAdmission, type Work } from "../support/work.ts";

const never = 600_000;

const idsOf = (...deliveries: readonly DeliveryModel[]): readonly string[] =>
  deliveries.map(({ id }) => String(id));

// What waits for a slot, and who tells of it; sweep.test.ts has the rest.
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
  const addParked = async (count: number, of = subscription): Promise<readonly DeliveryModel[]> => {
    const deliveries = [];
    for (let one = 0; one < count; one++) deliveries.push(await work.addDelivery(of, { due: "parked" }));
    return deliveries;
  };

  describe("of what waits for a slot", () => {
    it("has as much attempted as there are slots for, from both ends, and leaves no place reserved", async () => {
      const line = await addParked(6);
      let slots = 3;
      const isFree = (): boolean => admission.held < slots;
      admission.refuses = () => (isFree() ? undefined : "busy");
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await untilStarted(3);
      expect(startedIds()).to.have.members([line[0], line[1], line[5]].map((one) => String(one?.id)));
      expect(admission.held).to.equal(3);
      expect(returns).to.deep.equal([]);

      slots = 6;
      sweep.onFree();

      await untilStarted(6);
      expect(new Set(startedIds()).size).to.equal(6);
    });

    it("parts the slots among the subscriptions", async () => {
      const other = await work.addSubscription();
      await addParked(10);
      await addParked(10, other);
      admission.refuses = () => (admission.held < 4 ? undefined : "busy");

      start({ intervalMs: never });
      await untilStarted(4);

      expect(
        started.map(({ subscriptionId }) => subscriptionId).toSorted((one, next) => one - next),
      ).to.deep.equal([subscription.id, subscription.id, other.id, other.id]);
    });

    it("leaves it alone while its subscription is paused, and has it attempted once that is active", async () => {
      const [delivery] = await addParked(1);
      await core.sql("UPDATE svc.subscriptions SET is_active = false");
      const turns = watchTurns();
      start({ store: turns.store });
      await turns.next(2);
      expect([started, returns]).to.deep.equal([[], []]);

      await core.sql("UPDATE svc.subscriptions SET is_active = true");

      await untilStarted(1);
      expect(startedIds()).to.deep.equal(idsOf(delivery as DeliveryModel));
    });

    it("makes no turn for a slot that falls free while only paused subscriptions have something", async () => {
      await addParked(1);
      await core.sql("UPDATE svc.subscriptions SET is_active = false");
      let looks = 0;
      const sweep = start({
        intervalMs: never,
        store: {
          ...store,
          findParked(options) {
            looks += 1;
            return store.findParked(options);
          },
        },
      });
      await until(() => looks > 0, { what: "the first look" });
      await pause(100, new AbortController().signal);

      sweep.onFree();
      await pause(100, new AbortController().signal);

      expect(looks).to.equal(1);
    });

    it("looks for it when it is told that something waits and a slot falls free", async () => {
      const turns = watchTurns();
      const sweep = start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      await until(async () => lines.length === 0, { what: "nothing" });
      await addParked(1);

      sweep.onQueued(undefined);
      sweep.onFree();

      await untilStarted(1);
    });

    it("keeps in mind what it is told in the course of its look", async () => {
      let isFirst = true;
      const sweep: Sweep = start({
        intervalMs: never,
        store: {
          ...store,
          async findParked(options) {
            const found = await store.findParked(options);
            if (isFirst) {
              isFirst = false;
              await addParked(1);
              sweep.onQueued(undefined);
            }
            return found;
          },
        },
      });
      await until(() => !isFirst, { what: "a look" });
      await until(() => started.length > 0 || (sweep.onFree(), false), { what: "the attempt" });
    });

    it("goes through all subscriptions, however many have something that waits", async () => {
      await core.sql(
        `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, is_active)
         SELECT user_id, url, resource, events, encrypted_secret, secret_hint, false FROM svc.subscriptions CROSS JOIN generate_series(1, 250)`,
      );
      await core.sql(
        `INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id)
         SELECT 1000000 + id, id, user_id FROM svc.subscriptions WHERE NOT is_active`,
      );
      const last = await work.addSubscription();
      await addParked(1, last);

      start({ intervalMs: never });

      await untilStarted(1);
      expect(started[0]?.subscriptionId).to.equal(last.id);
    });
  });

  describe("of messages", () => {
    it("looks into the queue when another dispatcher tells of a delivery", async () => {
      const turns = watchTurns();
      start({ intervalMs: never, store: turns.store });
      await turns.next(0);
      const { id, uuid } = await work.addDelivery(subscription, { due: "parked" });

      await broker.publish([deliveryMessage({ id: String(id), uuid }, "retry")]);

      await untilStarted(1);
      expect(await broker.depth(queues.retry)).to.equal(0);
    });

    it("puts one that stands for no delivery on svc.dead, and gives it back while that is not confirmed", async () => {
      broker.refuses = ({ exchange }) => exchange === exchanges.dead;
      const body = Buffer.from("what is this?");
      start({ intervalMs: never });
      await broker.publish([
        { exchange: exchanges.deliveries, routingKey: "first", messageId: "theirs", body },
      ]);
      await until(() => broker.published.length > 1, { what: "the try" });

      broker.refuses = () => false;

      await until(async () => (await broker.depth(queues.dead)) === 1, { what: "the dead letter" });
      expect(broker.published.at(-1)).to.deep.include({
        messageId: "theirs",
        body,
        headers: { "x-svc-reason": "not a delivery" },
      });
    });
  });
});
