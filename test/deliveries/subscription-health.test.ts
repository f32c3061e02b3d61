import { expect } from "chai";
import type { QueryResultRow } from "pg";
import type { SubscriptionModel, SubscriptionStateModel } from "../support/generated/models.ts";
import {
  createSubscriptionHealth,
  type SubscriptionHealth,
} from "../../src/deliveries/subscription-health.ts";
import { testOperator } from "../support/actors.ts";
import { createMemoryLog } from "../support/http.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { until } from "../support/wait.ts";

const dayMs = 24 * 3600 * 1000;
const failed = { error: "http", statusCode: 500 } as const;
const gone = { error: "http", statusCode: 410 } as const;

describe("createSubscriptionHealth", () => {
  const scene = useCoreScene();
  let subscription: SubscriptionModel;
  let statements: number;
  let faults: unknown[];
  let nowMs: number;
  let drained: () => Promise<void>;
  const stops: AbortController[] = [];

  beforeEach(async () => {
    subscription = await scene.work.addSubscription();
    statements = 0;
    faults = [];
    nowMs = 1_000_000;
    drained = () => Promise.resolve();
  });
  afterEach(() => {
    for (const stop of stops.splice(0)) stop.abort();
  });

  const open = (): SubscriptionHealth => {
    const health = createSubscriptionHealth({
      async sql<R extends QueryResultRow>(text: string, values?: readonly unknown[]) {
        const rows = await scene.core.sql<R>(text, values).catch((error: unknown) => {
          faults.push(error);
          throw error;
        });
        // Not earlier: notes during a write are written with the next one.
        statements += 1;
        return rows;
      },
      log: createMemoryLog().log,
      actor: testOperator,
      disableAfterMs: 5 * dayMs,
      drained: () => drained(),
      now: () => nowMs,
    });
    const stop = new AbortController();
    stops.push(stop);
    void health.run(stop.signal);
    return health;
  };
  const state = (): Promise<SubscriptionStateModel> =>
    scene.core.prisma.subscriptionState.findFirstOrThrow({
      where: { subscriptionId: subscription.id },
    });
  const current = (): Promise<SubscriptionModel> =>
    scene.core.prisma.subscription.findFirstOrThrow({ where: { id: subscription.id } });
  const untilWritten = (count: number): Promise<unknown> =>
    until(() => statements >= count, { what: `${count} writes` });
  /** Sets the time of the first failure. */
  const failingFor = (days: number): Promise<unknown> =>
    scene.core.sql(
      "UPDATE svc.subscription_state SET failing_since = now() - $1 * interval '1 day', last_success_at = NULL WHERE subscription_id = $2",
      [days, subscription.id],
    );

  it("writes the first result, each change, and the rest once a minute", async () => {
    const health = open();
    health.note(subscription, {});
    await untilWritten(1);
    const first = await state();
    expect(first.lastAttemptAt).to.deep.equal(first.lastSuccessAt);

    for (let count = 0; count < 100; count++) health.note(subscription, {});
    nowMs += 1_000;
    health.note(subscription, failed);
    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    expect(statements).to.equal(2);

    nowMs += 60_000;
    health.note(subscription, failed);
    await untilWritten(3);
    health.note(subscription, {});
    await until(async () => (await state()).failingSince === null, { what: "the success" });
  });

  it("writes the results of attempts that end after the stop, also those not due yet", async () => {
    let drain: (() => void) | undefined;
    drained = () => new Promise((resolve) => (drain = resolve));
    const health = open();
    health.note(subscription, failed);
    await untilWritten(1);
    const { lastAttemptAt } = await state();
    stops.at(-1)?.abort();
    const end = await until(() => drain, { what: "the wait for attempts" });
    nowMs += 1_000;
    health.note(subscription, failed);
    end();
    await untilWritten(2);

    expect((await state()).lastAttemptAt).to.be.greaterThan(lastAttemptAt ?? new Date());
  });

  it("stores a success and the failure directly after it at different times", async () => {
    const health = open();
    health.note(subscription, {});
    nowMs += 0.001;
    health.note(subscription, failed);

    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    expect((await state()).lastSuccessAt).to.be.below((await state()).failingSince ?? new Date(0));
    expect(statements).to.equal(1);
  });

  it("writes within a minute a result that no later result includes", async () => {
    const health = open();
    health.note(subscription, failed);
    await untilWritten(1);
    nowMs += 30_000;
    health.note(subscription, failed);
    await scene.core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/other'");
    expect(await state()).to.include({ failingSince: null });

    nowMs += 30_000;

    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    expect(statements).to.equal(2);
  });

  it("writes the result of a new URL at once", async () => {
    const health = open();
    health.note(subscription, failed);
    await untilWritten(1);
    await scene.core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/other'");

    health.note({ ...subscription, url: "http://127.0.0.1:9/other" }, failed);

    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
  });

  it("joins the results of two dispatchers: the success of one ends the failures that the other began", async () => {
    const [one, other] = [open(), open()];
    one.note(subscription, failed);
    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    await failingFor(1);

    other.note(subscription, {});

    await until(async () => (await state()).failingSince === null, { what: "the success" });
  });

  it("switches off subscriptions that failed for too long or are gone, and starts over when they are on again", async () => {
    const health = open();
    await failingFor(4.9);
    health.note(subscription, failed);
    await untilWritten(1);
    await until(async () => (await state()).failingToldAt !== null, { what: "the warning" });
    expect(await current()).to.include({ isActive: true });

    await failingFor(5.1);
    nowMs += 60_000;
    health.note(subscription, failed);
    await until(async () => !(await current()).isActive, { what: "the subscription to be off" });
    expect(await current()).to.include({ disabledReason: "failing" });

    await scene.core.sql("UPDATE svc.subscriptions SET is_active = true");
    expect(await state()).to.include({ failingSince: null, failingToldAt: null });
    nowMs += 60_000;
    health.note(subscription, failed);
    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    expect(await current()).to.include({ isActive: true });

    health.note({ id: subscription.id, url: "http://127.0.0.1:9/before" }, gone);
    health.note(subscription, gone);
    await until(async () => !(await current()).isActive, { what: "the subscription to be off" });
    expect(await current()).to.include({ disabledReason: "gone" });
  });

  it("waits for a change by the owner, and switches off no new receiver", async () => {
    await failingFor(5.1);
    const owner = await scene.core.database.pool.connect();
    try {
      await owner.query("BEGIN; SELECT FROM svc.subscriptions FOR NO KEY UPDATE");
      open().note(subscription, failed);
      const waiting =
        "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()";
      await until(async () => (await scene.core.sql(waiting)).length > 0, { what: "the wait" });
      await owner.query("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/other'; COMMIT");
    } finally {
      owner.release();
    }

    await untilWritten(1);
    expect(faults).to.deep.equal([]);
    expect(await current()).to.include({ isActive: true });
  });

  it("starts over with the subscriptions of a user who is enabled again, and of no other", async () => {
    const another = await scene.work.addSubscription();
    await scene.core.sql("UPDATE svc.users SET disabled_at = now()");
    await scene.core.sql(
      "UPDATE svc.subscription_state SET failing_since = now() - interval '9 days', failing_told_at = now(), last_success_at = NULL",
    );

    await scene.core.sql("UPDATE svc.users SET disabled_at = NULL WHERE id = $1", [subscription.userId]);

    expect(await state()).to.include({ failingSince: null, failingToldAt: null });
    const isFailing =
      "SELECT failing_since IS NOT NULL AS yes FROM svc.subscription_state WHERE subscription_id = $1";
    expect(await scene.core.sql(isFailing, [another.id])).to.deep.equal([{ yes: true }]);
    open().note(subscription, failed);
    await untilWritten(1);
    await until(async () => (await state()).failingSince !== null, { what: "the failure" });
    expect(await current()).to.include({ isActive: true });
  });

  it("permits no inconsistent state", async () => {
    for (const broken of [
      "UPDATE svc.subscriptions SET is_active = false, disabled_reason = 'nonsense'",
      "UPDATE svc.subscription_state SET failing_told_at = now()",
      "UPDATE svc.subscription_state SET last_success_at = now(), failing_since = now() - interval '1 day'",
    ])
      expect(await scene.core.sql(broken).catch((error: unknown) => String(error)), broken).to.contain(
        "check",
      );
    // A change by hand, or by a process of the previous version.
    await scene.core.sql("UPDATE svc.subscriptions SET is_active = false");
    expect(await current()).to.include({ disabledReason: "owner" });
    await scene.core.sql("UPDATE svc.subscriptions SET is_active = true");
    expect(await current()).to.include({ disabledReason: null, disabledAt: null });
  });
});
