import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import type { Rates } from "../../src/deliveries/admission/rates.ts";
import { createHeldSender, type HeldSenderOptions } from "../../src/deliveries/held-sender.ts";
import { createHeldStore } from "../../src/deliveries/held-store.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { openSigning } from "../../src/subscriptions/signing.ts";
import { runWorkers, type Running } from "../../src/app/workers.ts";
import { useAttemptsScene } from "../support/attempts-scene.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { until } from "../support/wait.ts";
import { createWatchedAdmission, secretBox, success, unlimited } from "../support/work.ts";

describe("the order of held deliveries", () => {
  const scene = useAttemptsScene();
  let lane: Running | undefined;
  let ids: readonly bigint[];

  beforeEach(async () => {
    await scene.core.sql("TRUNCATE svc.delivery_queue, svc.lanes");
    await scene.core.sql("DELETE FROM svc.deliveries");
    const held = { status: "held", heldAt: new Date() };
    const first = await scene.work.addDelivery(scene.subscription, held);
    const second = await scene.work.addDelivery(scene.subscription, held);
    ids = [first.id, second.id];
  });
  afterEach(async () => {
    await lane?.stop();
  });

  const start = (overrides: Partial<HeldSenderOptions> = {}): void => {
    const worker = createHeldSender({
      admission: createWatchedAdmission(),
      rates: unlimited,
      attempts: scene.attempts,
      eligibility: notesEligibility(),
      isKnown: () => true,
      scheduleOf: () => ({ maxAttempts: 3, backoffMs: [3_600_000] }),
      metrics: createMetrics().deliveries,
      held: createHeldStore({ sql: scene.core.sql, indexSql: scene.core.sql }),
      flightMs: 60_000,
      holdForMs: 600_000,
      atOnce: 1,
      intervalMs: 50,
      log: scene.log,
      ...overrides,
    });
    lane = runWorkers([worker], scene.log);
  };
  const sentDeliveries = async (): Promise<readonly (bigint | undefined)[]> => {
    const deliveries = await scene.work.deliveries();
    return scene.posts.map(
      ({ headers }) => deliveries.find(({ uuid }) => uuid === headers["webhook-id"])?.id,
    );
  };
  const expectInOrder = async (): Promise<void> => {
    await until(() => scene.posts.length === ids.length, { what: "both attempts" });
    expect(await sentDeliveries()).to.deep.equal(ids);
  };

  it("is kept by one that cannot be signed for a while", async () => {
    let refusals = 2;
    scene.open(success, {
      openSigning(sealed) {
        if (refusals-- > 0) throw new Error("sealed with another key");
        return openSigning(secretBox, sealed, Date.now());
      },
    });

    start();

    await expectInOrder();
  });

  it("is kept by one whose receiver is busy for a while", async () => {
    let refusals = 2;
    scene.open(success, {
      async send(post) {
        if (refusals-- > 0) return { kind: "unmade", reason: "busy" };
        scene.posts.push(post);
        return { kind: "made", result: success() };
      },
    });

    start();

    await expectInOrder();
  });

  it("is kept by one whose receiver takes longer than a turn, with places for several", async () => {
    let underWay = 0;
    let most = 0;
    scene.open(async () => {
      underWay += 1;
      most = Math.max(most, underWay);
      await scene.core.sql("SELECT pg_sleep(0.2)");
      underWay -= 1;
      return success();
    });

    start({ atOnce: 4, intervalMs: 1 });

    await expectInOrder();
    expect(most).to.equal(1);
  });

  it("goes on at once after the deliveries of a turn", async () => {
    const held = { status: "held", heldAt: new Date(), replayId: 1n, triggerKind: "manual" };
    // A subscription leaves its place to another after 50.
    for (let count = 0; count < 58; count += 1) await scene.work.addDelivery(scene.subscription, held);
    scene.open(success);

    start({ intervalMs: 600_000 });

    await until(() => scene.posts.length === ids.length + 58, { what: "all attempts" });
    expect((await sentDeliveries()).slice(0, 2)).to.deep.equal(ids);
  });

  it("is kept by one whose record cannot be read for a while", async () => {
    let refusals = 2;
    scene.open(success, {
      store: {
        ...scene.store,
        async dataOf(deliveries) {
          if (refusals-- > 0) throw Object.assign(new Error("cancelled"), { code: "57014" });
          return scene.store.dataOf(deliveries);
        },
      },
    });

    start();

    await expectInOrder();
  });

  it("is kept by one whose reader cannot be judged, although the return takes a while", async () => {
    let refusals = 1;
    scene.open(success, {
      store: {
        ...scene.store,
        async record(recording) {
          await scene.core.sql("SELECT pg_sleep(0.2)");
          return scene.store.record(recording);
        },
      },
    });
    const eligibility = notesEligibility();

    start({
      intervalMs: 1,
      eligibility: {
        judge: async (...asked) =>
          refusals-- > 0
            ? Promise.reject(new Error("Connection terminated unexpectedly"))
            : eligibility.judge(...asked),
      },
    });

    await expectInOrder();
  });

  it("is kept by a delivery whose take got no answer, without a wait for the end of its flight", async () => {
    let isCut = false;
    scene.open(success);
    const sql: Sql = async (text, values) => {
      const rows = await scene.core.sql(text, values);
      if (isCut || !text.includes("INSERT INTO svc.flights")) return rows as never;
      isCut = true;
      throw new Error("Connection terminated unexpectedly");
    };

    start({ held: createHeldStore({ sql, indexSql: scene.core.sql }) });

    await expectInOrder();
    await scene.attempts.drain();
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("is kept by one in flight when the process stops", async () => {
    scene.open(success);
    const eligibility = notesEligibility();
    let stopped: Promise<unknown> | undefined;

    start({
      eligibility: {
        async judge(...asked) {
          stopped ??= Promise.all([scene.stop(), lane?.stop()]);
          return eligibility.judge(...asked);
        },
      },
    });
    await until(() => stopped !== undefined, { what: "the stop" });
    await stopped;

    const states = (await scene.work.deliveries()).map(({ id, status }) => [id, status]);
    expect(states).to.deep.equal(ids.map((id) => [id, "held"]));
    expect(scene.posts).to.deep.equal([]);
    expect(await scene.work.flights()).to.deep.equal([]);
  });

  it("is logged once, even when one is held again repeatedly", async () => {
    scene.open(success);
    const grants = [0, 0, 1, 1];
    const rates: Rates = {
      waitMs: () => 0,
      take: async (asked) => new Map(asked.map((one) => [one.subscriptionId, grants.shift() ?? 1])),
    };
    await scene.core.sql("UPDATE svc.subscriptions SET rate_limit = 1000");

    start({ rates });

    await expectInOrder();
    const counted = (): number =>
      scene.lines
        .filter(({ event }) => event === "held.sent")
        .reduce((sum, line) => sum + Number(line["deliveries"]), 0);
    await until(() => counted() >= ids.length, { what: "the line" });
    await lane?.stop();
    expect(counted()).to.equal(ids.length);
  });
});
