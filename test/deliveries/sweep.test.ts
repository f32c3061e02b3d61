import { expect } from "chai";
import { exchanges, queues } from "../../src/broker/topology.ts";
import type { SubscriptionModel } from "../../src/db/generated/models.ts";
import { deliveryMessage } from "../../src/deliveries/messages.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import { createSweep, type Sweep, type SweepOptions } from "../../src/deliveries/sweep.ts";
import { createMetrics } from "../../src/metrics.ts";
import { runWorkers, type Running } from "../../src/running.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWatchedBroker, type WatchedBroker } from "../support/watched-broker.ts";
import { createWork, inSeconds, type Work } from "../support/work.ts";

const never = 600_000;

describe("createSweep", () => {
  let core: CoreDatabase;
  let work: Work;
  let broker: WatchedBroker;
  let running: Running | undefined;
  let lines: Record<string, unknown>[];
  let subscription: SubscriptionModel;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  beforeEach(async () => {
    await work.clear();
    subscription = await work.addSubscription();
    broker = createWatchedBroker();
    running = undefined;
  });

  afterEach(async () => {
    await running?.stop();
    await broker.close();
  });

  after(() => core.close());

  function start(overrides: Partial<SweepOptions> = {}): Sweep {
    const memory = createMemoryLog();
    lines = memory.lines;
    const store = createDeliveryStore({ sql: core.sql });
    const sweep = createSweep({
      broker,
      store,
      log: memory.log,
      metrics: createMetrics().deliveries,
      intervalMs: 5,
      requeueAfterMs: 60_000,
      ...overrides,
    });
    running = runWorkers({ workers: [sweep], log: memory.log });
    return sweep;
  }

  const published = (): readonly string[] => broker.published.map(({ messageId }) => messageId);
  const untilPublished = (count: number): Promise<unknown> =>
    until(() => broker.published.length >= count, { what: `${count} messages` });
  /** Resolves after so many whole turns, told by the depths that each asks for. */
  const watchTurns = (): ((count: number) => Promise<unknown>) => {
    const depth = broker.depth.bind(broker);
    let asked = 0;
    broker.depth = (queue) => {
      asked += 1;
      return depth(queue);
    };
    return (count) => {
      const goal = asked + 2 * (count + 1);
      return until(() => asked >= goal, { what: `${count} turns` });
    };
  };

  it("publishes what is due and what a lost message left behind, once, fresh work apart from retries", async () => {
    const due = await work.addDelivery(subscription, { nextAttemptAt: inSeconds(-9) });
    const stranded = await work.addDelivery(subscription, {
      status: "retrying",
      attempt: 1,
      queuedUntil: inSeconds(-1),
      leasedUntil: inSeconds(-1),
    });
    await work.addDelivery(subscription, { nextAttemptAt: inSeconds(60) });
    await work.addDelivery(subscription, { queuedUntil: inSeconds(60) });
    const turns = watchTurns();

    start();
    await turns(3);

    expect(published()).to.have.members([due.uuid, stranded.uuid]);
    expect(broker.published).to.have.deep.members([
      deliveryMessage({ ...due, id: String(due.id) }, "first"),
      deliveryMessage({ ...stranded, id: String(stranded.id) }, "retry"),
    ]);
    const believed = (await work.deliveryOf(due.id)).queuedUntil?.getTime();
    expect(believed).to.be.within(Date.now() + 50_000, Date.now() + 60_000);
  });

  it("publishes a retry when its time comes, however long the interval is", async () => {
    const { uuid } = await work.addDelivery(subscription, { nextAttemptAt: inSeconds(0.3) });
    const turns = watchTurns();
    start({ intervalMs: never });
    await turns(0);
    expect(published()).to.deep.equal([]);

    await untilPublished(1);

    expect(published()).to.deep.equal([uuid]);
    expect(Date.now()).to.be.at.least((await work.deliveries())[0]?.nextAttemptAt?.getTime() ?? Infinity);
  });

  it("publishes a retry that falls due in the course of a turn", async () => {
    const { uuid, nextAttemptAt } = await work.addDelivery(subscription, { nextAttemptAt: inSeconds(0.5) });
    const store = createDeliveryStore({ sql: core.sql });
    start({
      intervalMs: never,
      store: {
        ...store,
        async claimDue(options) {
          const claimed = await store.claimDue(options);
          await until(() => Date.now() > (nextAttemptAt?.getTime() ?? 0) + 50, { what: "the due time" });
          return claimed;
        },
      },
    });

    await untilPublished(1);

    expect(published()).to.deep.equal([uuid]);
  });

  it("publishes a retry that was planned since its last turn when its time comes", async () => {
    const turns = watchTurns();
    const sweep = start({ intervalMs: never });
    await turns(0);
    const { uuid } = await work.addDelivery(subscription, { nextAttemptAt: inSeconds(0.05) });

    sweep.wakeIn(60);

    await untilPublished(1);
    expect(published()).to.deep.equal([uuid]);
  });

  it("publishes more than a batch without a wait", async () => {
    const { eventId } = await work.addDelivery(subscription);
    await core.sql(
      `INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
         max_attempts, url, body, next_attempt_at)
       SELECT gen_random_uuid(), $1, gen_random_uuid(), n, 1, 'notes', 1, 'automatic', 3, '', '', now() FROM generate_series(-1100, -1) AS n`,
      [eventId],
    );

    start({ intervalMs: never });
    await untilPublished(1101);

    expect(new Set(published()).size).to.equal(1101);
  });

  it("leaves work in the database while a lane is long, and goes on when it is not", async () => {
    await work.addDelivery(subscription);
    const fill = Array.from({ length: 2001 }, (_, n) => deliveryMessage({ id: "1", uuid: `${n}` }, "first"));
    await broker.publish(fill);
    const turns = watchTurns();

    start();
    await turns(3);

    expect(broker.published).to.have.length(2001);
    expect(lines).to.deep.equal([]);
    await broker.consume({ queue: queues.first, prefetch: 3000, onMessage: (message) => message.ack() });
    await untilPublished(2002);
  });

  it("fills a lane no further than its limit", async () => {
    for (let count = 0; count < 3; count++) await work.addDelivery(subscription, { attempt: 1 });
    await broker.publish(
      Array.from({ length: 1998 }, (_, n) => deliveryMessage({ id: "1", uuid: `${n}` }, "retry")),
    );
    const turns = watchTurns();

    start();
    await turns(3);

    expect(await broker.depth(queues.retry)).to.equal(2000);
  });

  it("makes due again what the broker did not confirm", async () => {
    const refused = await work.addDelivery(subscription, { leasedUntil: inSeconds(-5) });
    const taken = await work.addDelivery(subscription);
    broker.refuses = ({ messageId }) => messageId === refused.uuid;
    start();
    await until(() => published().filter((uuid) => uuid === refused.uuid).length >= 3, {
      what: "three tries",
    });

    broker.refuses = () => false;

    await until(async () => (await broker.depth(queues.first)) === 2, { what: "both in the queue" });
    expect(published().filter((uuid) => uuid === taken.uuid)).to.have.length(1);
  });

  it("buries failed deliveries of which no dead letter was confirmed, until one is", async () => {
    const failed = await work.addDelivery(subscription, { status: "failed", lastError: "spent" });
    await core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const young = await work.addDelivery(subscription, { status: "failed" });
    broker.refuses = () => true;
    start();
    await untilPublished(3);
    expect((await work.deliveryOf(failed.id)).deadLetteredAt).to.equal(null);

    broker.refuses = () => false;

    await until(async () => (await work.deliveryOf(failed.id)).deadLetteredAt, { what: "the mark" });
    expect(new Set(published())).to.deep.equal(new Set([failed.uuid]));
    expect(broker.published[0]).to.include({ exchange: exchanges.dead });
    expect(broker.published[0]?.headers).to.include({ "x-svc-reason": "spent" });
    expect(await broker.depth(queues.dead)).to.equal(1);
    expect((await work.deliveryOf(young.id)).deadLetteredAt).to.equal(null);
  });

  it("releases what was on hold once its subscription is active", async () => {
    const { uuid } = await work.addDelivery(subscription, { nextAttemptAt: null });
    await core.sql("UPDATE svc.subscriptions SET is_active = false");
    const turns = watchTurns();
    start();
    await turns(2);
    expect(published()).to.deep.equal([]);

    await core.sql("UPDATE svc.subscriptions SET is_active = true");

    await untilPublished(1);
    expect(published()).to.deep.equal([uuid]);
  });

  it("touches nothing while there is no broker", async () => {
    const { id } = await work.addDelivery(subscription);
    let turns = 0;
    broker.isConnected = () => {
      turns += 1;
      return broker.connected;
    };
    broker.connected = false;
    start();
    await until(() => turns > 3, { what: "some turns" });
    expect((await work.deliveryOf(id)).queuedUntil).to.equal(null);

    broker.connected = true;

    await untilPublished(1);
  });

  it("goes on after the database failed", async () => {
    await work.addDelivery(subscription);
    await core.sql("ALTER TABLE svc.deliveries RENAME TO deliveries_away");
    try {
      start();
      await until(() => lines.some(({ msg }) => msg === "sweep failed; trying again"), {
        what: "a failed turn",
      });
    } finally {
      await core.sql("ALTER TABLE svc.deliveries_away RENAME TO deliveries");
    }

    await untilPublished(1);
  });
});
