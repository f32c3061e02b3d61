import { expect } from "chai";
import type { SubscriptionModel } from "../support/generated/models.ts";
import type { Rates } from "../../src/deliveries/admission/rates.ts";
import type { Reservation } from "../../src/deliveries/admission/admission.ts";
import type { AttemptEnds, Attempts } from "../../src/deliveries/attempt/attempts.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";
import { createHeldSender } from "../../src/deliveries/held-sender.ts";
import { createHeldStore, type HeldStore } from "../../src/deliveries/held-store.ts";
import type { Eligibility } from "../../src/subscriptions/eligibility.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { until } from "../support/wait.ts";
import { createWatchedAdmission, success, unlimited, type WatchedAdmission } from "../support/work.ts";
import { useWorkerScene } from "../support/worker-scene.ts";

/** Longer than any test: only a wake begins another turn. */
const never = 600_000;

describe("createHeldSender", () => {
  const scene = useWorkerScene();
  let admission: WatchedAdmission;
  let rates: Rates;
  let store: HeldStore;
  let settle: Attempts["settle"];
  let started: (AttemptEnds & { readonly delivery: DeliveryInFlight; readonly place: Reservation })[];

  beforeEach(() => {
    admission = createWatchedAdmission();
    rates = unlimited;
    store = createHeldStore({ sql: scene.core.sql, indexSql: scene.core.sql });
    settle = () => expect.fail("settled");
    started = [];
  });

  const start = (intervalMs = never, eligibility: Pick<Eligibility, "judge"> = notesEligibility()): void =>
    scene.run(
      createHeldSender({
        admission,
        rates,
        attempts: {
          start: (delivery, place, ends) => void started.push({ delivery, place, ...ends }),
          settle: (delivery, outcome) => settle(delivery, outcome),
          putBack: () => expect.fail("put back"),
        },
        eligibility,
        isKnown: () => true,
        scheduleOf: () => ({ maxAttempts: 3, backoffMs: [3_600_000] }),
        metrics: createMetrics().deliveries,
        held: store,
        flightMs: 60_000,
        holdForMs: never,
        atOnce: 1,
        intervalMs,
        log: scene.log,
      }),
    );
  const untilStarted = (count: number): Promise<unknown> =>
    until(() => started.length >= count, { what: `${count} attempts` });
  const hold = async (subscription: SubscriptionModel, replayId?: bigint): Promise<string> => {
    const held = {
      status: "held",
      heldAt: new Date(),
      ...(replayId === undefined ? {} : { replayId, triggerKind: "manual" }),
    };
    return String((await scene.work.addDelivery(subscription, held)).id);
  };
  const holdAgain: Attempts["settle"] = async (_, { id, status }) => {
    await scene.core.sql("SELECT pg_sleep(0.1)");
    await scene.core.sql("UPDATE svc.deliveries SET status = $2, held_at = now() WHERE id = $1", [
      id,
      status,
    ]);
  };
  const startedIds = (): readonly string[] => started.map(({ delivery }) => delivery.id);
  const endAll = (): void => {
    for (const { place, putBack, onEnd } of started.splice(0))
      place.enter({
        begin(done) {
          done(success());
          onEnd?.(true);
        },
        giveUp() {
          putBack?.(undefined);
          onEnd?.(false);
        },
      });
  };

  const expectOneByOne = async (ids: readonly string[]): Promise<void> => {
    for (const id of ids) {
      await untilStarted(1);
      expect(startedIds()).to.deep.equal([id]);
      endAll();
    }
  };

  it("sends those of replays at the same time, and held ones one after the other", async () => {
    const subscription = await scene.work.addSubscription();
    const ids: string[] = [];
    for (const replayId of [1n, 1n, 1n, undefined, undefined, 2n, 2n])
      ids.push(await hold(subscription, replayId));
    const portions: (readonly string[])[] = [];

    start();
    for (const count of [3, 1, 1, 2]) {
      await untilStarted(count);
      await scene.core.sql("SELECT pg_sleep(0.1)");
      portions.push(startedIds());
      endAll();
    }

    expect(portions).to.deep.equal([ids.slice(0, 3), ids.slice(3, 4), ids.slice(4, 5), ids.slice(5)]);
    expect(new Set(admission.asked.map(({ lane }) => lane))).to.deep.equal(new Set(["retry"]));
  });

  it("holds a delivery again whose reader cannot be judged, and sends it later", async () => {
    const id = await hold(await scene.work.addSubscription());
    settle = holdAgain;
    const eligibility = notesEligibility();
    let isAway = true;
    start(5, {
      judge(pairs, which) {
        if (!isAway) return eligibility.judge(pairs, which);
        isAway = false;
        return Promise.reject(new Error("Connection terminated unexpectedly"));
      },
    });

    await untilStarted(1);

    expect(startedIds()).to.deep.equal([id]);
    endAll();
  });

  it("cancels all dropped deliveries in a row, however many portions they are", async () => {
    const subscription = await scene.work.addSubscription();
    for (let count = 0; count < 6; count += 1) await hold(subscription);
    const values = [subscription.id, await hold(subscription)];
    await scene.core.sql("INSERT INTO svc.discards (subscription_id, up_to) VALUES ($1, $2)", values);
    const whole = store;
    // As when others have just locked or changed all but one. A turn has five portions.
    store = { ...whole, cancel: (asked) => whole.cancel({ ...asked, limit: 1 }) };

    start();
    await until(async () => (await scene.core.sql("SELECT FROM svc.discards")).length === 0, {
      what: "the end of the discard",
    });

    const statuses = (await scene.work.deliveries()).map(({ status }) => status);
    expect(statuses).to.deep.equal(Array.from({ length: 7 }, () => "cancelled"));
  });

  it("cancels those of a deleted webhook, and of one that is off for longer than they are held", async () => {
    const elevenMinutesAgo = new Date(Date.now() - 660_000);
    const nineMinutesAgo = new Date(Date.now() - 540_000);
    const deleted = await scene.work.addSubscription();
    const over = await scene.work.addSubscription({ isActive: false, disabledAt: elevenMinutesAgo });
    const paused = await scene.work.addSubscription({ isActive: false, disabledAt: nineMinutesAgo });
    for (const subscription of [deleted, over, paused]) await hold(subscription);
    await scene.core.sql("DELETE FROM svc.subscriptions WHERE id = $1", [deleted.id]);

    start();
    const ended = await until(
      async () => {
        const deliveries = await scene.work.deliveries();
        return deliveries.filter(({ status }) => status === "held").length === 1 && deliveries;
      },
      { what: "the cancellations" },
    );

    expect(ended.map(({ status, lastError }) => [status, lastError])).to.deep.equal([
      ["cancelled", "The subscription was deleted."],
      ["cancelled", "The subscription was off for longer than 600 s."],
      ["held", null],
    ]);
  });

  it("forgets a request to drop deliveries that went out otherwise: later ones are sent", async () => {
    const subscription = await scene.work.addSubscription();
    const { id } = await scene.work.addDelivery(subscription, { status: "retrying", attempt: 1 });
    await scene.core.sql(
      "INSERT INTO svc.discards (subscription_id, up_to, asked_at) VALUES ($1, $2, now() - interval '1 minute')",
      [subscription.id, id],
    );

    start(5);
    await until(async () => (await scene.core.sql("SELECT FROM svc.discards")).length === 0, {
      what: "the end of the request",
    });
    await scene.core.sql("UPDATE svc.deliveries SET status = 'held', held_at = now() WHERE id = $1", [id]);

    await untilStarted(1);
    expect(startedIds()).to.deep.equal([String(id)]);
    endAll();
  });

  it("sends no more of them at the same time than its receiver has slots", async () => {
    admission.room = 2;
    const subscription = await scene.work.addSubscription();
    for (let count = 0; count < 3; count += 1) await hold(subscription, 1n);

    start();
    await untilStarted(2);
    await scene.core.sql("SELECT pg_sleep(0.1)");
    expect(started.length).to.equal(2);
    endAll();
    await untilStarted(1);
    endAll();
  });

  it("sends them one after the other where the webhook has a rate", async () => {
    const subscription = await scene.work.addSubscription({ rateLimit: 1_000 });
    for (let count = 0; count < 2; count += 1) await hold(subscription, 1n);

    start();
    await untilStarted(1);
    await scene.core.sql("SELECT pg_sleep(0.1)");
    expect(started.length).to.equal(1);
    endAll();
    await untilStarted(1);
    endAll();
  });

  it("holds a delivery again that the rate refuses, and begins with it", async () => {
    const subscription = await scene.work.addSubscription({ rateLimit: 1_000 });
    const ids = [await hold(subscription), await hold(subscription)];
    const grants = [0, 1, 1];
    rates = {
      waitMs: () => 0,
      take: async (asked) => new Map(asked.map((one) => [one.subscriptionId, grants.shift() ?? 0])),
    };
    settle = holdAgain;

    start();
    await expectOneByOne(ids);
  });

  it("holds a delivery again without a slot, and begins with it in the next turn", async () => {
    const subscription = await scene.work.addSubscription();
    const ids = [await hold(subscription), await hold(subscription)];
    const { reserve } = admission;
    let refusals = 2;
    // Others have taken the free slots.
    const taking = {
      reserve: (...asked: Parameters<typeof reserve>) => (refusals-- > 0 ? undefined : reserve(...asked)),
    };
    Object.assign(admission, taking);
    settle = holdAgain;

    start(50);
    await expectOneByOne(ids);
  });

  it("holds a delivery again that gives up its place, and continues with it", async () => {
    const subscription = await scene.work.addSubscription();
    const ids = [await hold(subscription), await hold(subscription)];
    const { reserve } = admission;
    let losses = 1;
    // No slot becomes free in time.
    const losing = (...asked: Parameters<typeof reserve>): Reservation | undefined => {
      const place = reserve(...asked);
      if (place === undefined || losses-- <= 0) return place;
      return { leave: () => place.leave(), enter: ({ giveUp }) => (place.leave(), giveUp("busy")) };
    };
    Object.assign(admission, { reserve: losing });
    settle = holdAgain;

    start();
    const found: (readonly string[])[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      await untilStarted(1);
      found.push(startedIds());
      endAll();
    }

    expect(found).to.deep.equal([ids.slice(0, 1), ids.slice(0, 1), ids.slice(1)]);
  });

  it("leaves the rate of a webhook to deliveries in the queue", async () => {
    const subscription = await scene.work.addSubscription({ rateLimit: 1_000 });
    const held = await hold(subscription);
    await scene.work.addDelivery(subscription, { due: "parked" });

    start();
    await scene.core.sql("SELECT pg_sleep(0.2)");
    expect(startedIds()).to.deep.equal([]);
    await scene.core.sql("DELETE FROM svc.delivery_queue");
    await untilStarted(1);
    expect(startedIds()).to.deep.equal([held]);
    endAll();
  });

  it("waits up to a second for the rate of a webhook, and leaves its place to another before a longer wait", async () => {
    const slow = await scene.work.addSubscription();
    const soon = await scene.work.addSubscription();
    await hold(slow);
    const id = await hold(soon);
    const waits = [1_000];
    const waitMs = (asked: number): number => (asked === slow.id ? never : (waits.shift() ?? 0));
    rates = { ...unlimited, waitMs };

    start();
    await scene.core.sql("SELECT pg_sleep(0.2)");
    expect(startedIds()).to.deep.equal([]);
    await untilStarted(1);
    expect(startedIds()).to.deep.equal([id]);
    endAll();
  });

  it("gives the place of a refused webhook to the next one at once", async () => {
    admission.refuses = ({ url }) => (url.endsWith("/silent") ? "silent" : undefined);
    for (let count = 0; count < 5; count += 1)
      await hold(await scene.work.addSubscription({ url: "http://127.0.0.1:9/silent" }));
    const healthy = await hold(await scene.work.addSubscription());

    start();
    await untilStarted(1);

    expect(startedIds()).to.deep.equal([healthy]);
    endAll();
  });

  it("gives users turns, however many webhooks of one wait", async () => {
    const user = await scene.work.addUser();
    for (let count = 0; count < 3; count += 1)
      await hold(await scene.work.addSubscription({ userId: user.id }));
    const other = await hold(await scene.work.addSubscription());

    start();
    await untilStarted(1);
    endAll();
    await untilStarted(1);

    expect(startedIds()).to.deep.equal([other]);
    endAll();
  });

  it("stops only when the attempts that it waits for have ended, and leaves their lane", async () => {
    await hold(await scene.work.addSubscription());
    start();
    await untilStarted(1);
    let isStopped = false;

    const stopped = scene.stop().then(() => (isStopped = true));
    await scene.core.sql("SELECT pg_sleep(0.1)");
    expect([isStopped, await scene.core.sql("SELECT FROM svc.lanes")]).to.deep.equal([false, [{}]]);
    endAll();
    await stopped;

    expect(await scene.core.sql("SELECT FROM svc.lanes")).to.deep.equal([]);
  });

  it("goes through the webhooks 200 at a time and 2,000 in a turn, and continues where the last turn ended", async () => {
    const paused = { url: "/", userId: 1, rateLimit: null, isActive: false, isOver: false, discardTo: null };
    const looks: (number | "end")[] = [];
    store = {
      ...store,
      async find({ after, limit }) {
        looks.push(after);
        return Array.from({ length: Math.min(limit, 2_000 - after) }, (_, place) => ({
          ...paused,
          subscriptionId: after + place + 1,
        }));
      },
      async forgetDiscards() {
        looks.push("end");
      },
    };

    start(5);
    await until(() => looks.length > 24, { what: "four turns" });

    const pages = Array.from({ length: 11 }, (_, page) => 200 * page);
    expect(looks.slice(0, 25)).to.deep.equal([...pages, "end", ...pages, "end", 0]);
  });

  it("looks once in a turn when nothing is held", async () => {
    const looks: number[] = [];
    const real = store;
    await new Promise<void>((resolve) => {
      store = {
        ...real,
        find(options) {
          looks.push(options.after);
          return real.find(options);
        },
        async forgetDiscards() {
          await real.forgetDiscards();
          // Another look would have begun by then.
          setImmediate(resolve);
        },
      };
      start();
    });

    expect(looks).to.deep.equal([0]);
  });
});
