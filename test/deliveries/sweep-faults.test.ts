import { expect } from "chai";
import { queues } from "../../src/broker/topology.ts";
import { idsOf, never, useSweepScene } from "../support/sweep-scene.ts";
import { until } from "../support/wait.ts";
import { createRates } from "../../src/deliveries/admission/rates.ts";
import { inSeconds, unlimited } from "../support/work.ts";

// Faults of the database between the take and the attempts, and missing rows; sweep.test.ts has the
// rest.
describe("createSweep", () => {
  const scene = useSweepScene();
  const { start, startedIds, untilStarted } = scene;

  it("dead-letters the others when some records were erased, and those no longer", async () => {
    for (let count = 0; count < 5; count += 1)
      await scene.work.addDelivery(scene.subscription, { status: "failed" });
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    await scene.core.sql(
      "DELETE FROM svc.event_data WHERE event_id < (SELECT max(event_id) FROM svc.event_data)",
    );

    start();

    await until(
      async () => (await scene.work.deliveries()).every(({ deadLetteredAt }) => deadLetteredAt !== null),
      { what: "the marks" },
    );
    expect(await scene.broker.depth(queues.dead)).to.equal(1);
  });

  it("cancels the deliveries of all deleted subscriptions without a wait between", async () => {
    for (let count = 0; count < 3; count += 1) {
      const subscription = await scene.work.addSubscription();
      await scene.work.addDelivery(subscription, { due: inSeconds(3_600) });
    }
    await scene.core.sql("DELETE FROM svc.subscriptions");

    start({ intervalMs: never });

    await until(async () => (await scene.work.deliveries()).every(({ status }) => status === "cancelled"), {
      what: "three cancellations",
    });
  });

  it("continues the search for deleted subscriptions after the scanned ones", async () => {
    const asked: number[] = [];
    start({
      store: {
        ...scene.store,
        async findOrphaned({ after }) {
          asked.push(after);
          return { ids: [], last: after < 20 ? after + 10 : undefined };
        },
      },
    });
    await until(() => asked.length >= 3, { what: "three pages" });

    expect(asked.slice(0, 3)).to.deep.equal([0, 10, 20]);
  });

  it("attempts a delivery that is neither in the queue nor in flight, and searches page by page", async () => {
    const stray = await scene.work.addDelivery(scene.subscription, { due: "nowhere" });
    await scene.core.sql("UPDATE svc.deliveries SET updated_at = now() - interval '2 minutes'");
    const asked: (string | undefined)[] = [];
    start({
      store: {
        ...scene.store,
        async returnStrays(options) {
          asked.push(options.after);
          return { ...(await scene.store.returnStrays(options)), last: asked.length > 1 ? undefined : "0" };
        },
      },
    });
    await untilStarted(1);
    await until(() => asked.length > 2, { what: "three pages" });

    expect(startedIds()).to.deep.equal(idsOf(stray));
    expect(asked.slice(0, 3)).to.deep.equal([undefined, "0", undefined]);
    const told = scene.lines.filter(({ event }) => event === "sweep.strays");
    expect(told.map(({ level, deliveries }) => [level, deliveries])).to.deep.equal([[50, 1]]);
  });

  it("attempts deliveries that wait longer than any schedule, after a clock that was set back", async () => {
    const far = await scene.work.addDelivery(scene.subscription, { due: inSeconds(26 * 3_600) });
    const late = inSeconds(24.5 * 3_600);
    const other = await scene.work.addDelivery(scene.subscription, { due: late });

    start();
    await untilStarted(1);

    expect(startedIds()).to.deep.equal(idsOf(far));
    expect(scene.lines.find(({ event }) => event === "sweep.far")).to.include({ deliveries: 1 });
    expect(await scene.work.queued(other.id)).to.deep.include({ dueAt: late });
  });

  it("attempts a retry that was written while the clock was ahead, and keeps the wait of one by a longer schedule", async () => {
    const overDays = { status: "retrying", due: inSeconds(6 * 86_400) } as const;
    const ahead = await scene.work.addDelivery(scene.subscription, {
      ...overDays,
      updatedAt: inSeconds(5 * 86_400),
    });
    const other = await scene.work.addDelivery(scene.subscription, overDays);

    start();
    await untilStarted(1);
    await until(async () => Number((await scene.work.queued(other.id))?.dueAt) < Number(inSeconds(90_000)), {
      what: "the shorter wait",
    });

    expect(startedIds()).to.deep.equal(idsOf(ahead));
    expect(Number((await scene.work.queued(other.id))?.dueAt)).to.be.above(Number(inSeconds(80_000)));
    const lines = scene.lines.filter(({ event }) => event === "sweep.far");
    expect(lines.map(({ deliveries }) => deliveries)).to.deep.equal([1]);
  });

  it("puts all back for a moment when no reader can be judged, with the reason", async () => {
    const delivery = await scene.work.addDelivery(scene.subscription);
    const away = new Error("Connection terminated unexpectedly");

    start({ eligibility: { judge: () => Promise.reject(away) }, intervalMs: never });
    await until(() => scene.returns.length > 0, { what: "the return" });

    expect(scene.returns).to.deep.equal([{ id: String(delivery.id), delayMs: 2_000 }]);
    await until(() => scene.lines.some(({ msg }) => msg === "sweep failed; trying again"), {
      what: "the line",
    });
  });

  it("counts the time in which readers are judged as part of the flight", async () => {
    await scene.work.addDelivery(scene.subscription);
    let judgedAtMs = 0;

    start({
      eligibility: {
        async judge(pairs) {
          judgedAtMs ||= performance.now();
          return pairs.map(() => true);
        },
      },
    });
    await untilStarted(1);

    expect(scene.started[0]?.flight.beganAtMs).to.be.below(judgedAtMs);
  });

  it("puts only rate-limited deliveries back for a moment when the rates cannot be read", async () => {
    const limited = await scene.work.addDelivery(await scene.work.addSubscription({ rateLimit: 10 }));
    const other = await scene.work.addDelivery(scene.subscription);

    start({
      rates: { ...unlimited, take: () => Promise.reject(new Error("canceled")) },
      intervalMs: never,
    });
    await untilStarted(1);

    expect(startedIds()).to.deep.equal(idsOf(other));
    expect(scene.returns).to.deep.equal([{ id: String(limited.id), delayMs: 2_000 }]);
    expect(scene.lines.map(({ msg }) => msg)).to.include("rate limits not asked; their deliveries wait");
  });

  it("attempts the deliveries of others while another transaction locks one of a deleted subscription", async () => {
    const gone = await scene.work.addSubscription();
    const locked = await scene.work.addDelivery(gone, { due: inSeconds(3_600) });
    await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [gone.id]);
    const client = await scene.core.database.pool.connect();
    try {
      await client.query("BEGIN; SELECT FROM svc.deliveries FOR UPDATE");
      start({ store: { ...scene.store, findOrphaned: async () => ({ ids: [gone.id], last: undefined }) } });
      const waits =
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await until(async () => (await scene.core.sql(waits)).length > 0, { what: "the wait for the lock" });
      await scene.work.addDelivery(scene.subscription);

      await untilStarted(1);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }
    await until(async () => (await scene.work.deliveryOf(locked.id)).status === "cancelled", {
      what: "the end",
    });
  }).timeout(90_000);

  it("attempts the others while the rate of a subscription is locked", async () => {
    const limited = await scene.work.addDelivery(await scene.work.addSubscription({ rateLimit: 10 }));
    const other = await scene.work.addDelivery(scene.subscription);
    const client = await scene.core.database.pool.connect();
    try {
      await client.query("BEGIN; SELECT FROM svc.subscription_state FOR UPDATE");
      const { sql } = scene.core;
      const rates = createRates({ sql, now: () => performance.now(), onWait: () => undefined });
      start({ rates, intervalMs: never });
      await untilStarted(1);
    } finally {
      await client.query("ROLLBACK");
      client.release();
    }

    expect(startedIds()).to.deep.equal(idsOf(other));
    expect(scene.returns).to.deep.equal([{ id: String(limited.id), delayMs: 2_000 }]);
  });
});
