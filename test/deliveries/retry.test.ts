import { expect } from "chai";
import { createIndexSql } from "../../src/db/sql.ts";
import { createDeliveryHistory, type DeliveryHistory } from "../../src/deliveries/history.ts";
import type { RetryAnswer } from "../../src/deliveries/retry.ts";
import { stateSql } from "../support/delivery-states.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { addDeliveries, addSubscriber, emptyHistory, type GivenDelivery } from "../support/history-rows.ts";
import { until } from "../support/wait.ts";

const reasonOf = (answer: RetryAnswer): string => (answer.kind === "refused" ? answer.reason : answer.kind);
const getCreated = (answer: RetryAnswer) => {
  if (answer.kind === "refused") throw new Error(answer.reason);
  return answer.delivery;
};

describe("retryDelivery", () => {
  const core = coreOfSuite();
  let history: DeliveryHistory;
  let subscriptionId: number;

  before(async () => {
    history = createDeliveryHistory({
      sql: core.sql,
      listSql: createIndexSql(core.database.pool),
      transact: core.transact,
    });
  });
  beforeEach(async () => {
    await emptyHistory(core.sql);
    subscriptionId = await addSubscriber(core.sql);
  });

  const add = (given: Partial<GivenDelivery> = {}): ReturnType<typeof addDeliveries> =>
    addDeliveries(core.sql, { of: subscriptionId, ...given });
  const retry = (id: string, limit = 3): Promise<RetryAnswer> => history.retry({ id, limit });
  const fail = (): Promise<unknown> => core.sql(`UPDATE svc.deliveries SET ${stateSql("'failed'").set}`);
  const countOf = async (table: string): Promise<number> =>
    (await core.sql(`SELECT FROM svc.${table}`)).length;

  it("makes a new delivery of the same event, due now, to the current URL", async () => {
    const failed = await add({ status: "failed" });
    await core.sql("UPDATE svc.subscriptions SET url = 'http://127.0.0.1:9/corrected'");

    const made = getCreated(await retry(failed.id));

    expect(made).to.include({
      eventId: failed.eventId,
      userId: subscriptionId,
      subscriptionId,
      parentDeliveryId: failed.id,
      rootDeliveryId: failed.id,
      triggerKind: "manual",
      status: "pending",
      attempt: 0,
      maxAttempts: 3,
      lastError: null,
      url: "http://127.0.0.1:9/corrected",
    });
    const before = await history.find(failed.id);
    expect(made.uuid).not.to.equal(before?.uuid);
    expect(made.eventUuid).to.equal(before?.eventUuid);
    expect(await history.find(made.id)).to.deep.equal(made);
    const [queued] = await core.sql(
      `SELECT delivery_id, queued.subscription_id, queued.user_id, due_at <= now() AS "isDue", traceparent
       FROM svc.delivery_queue AS queued JOIN svc.deliveries ON id = delivery_id`,
    );
    expect(queued).to.deep.equal({
      delivery_id: made.id,
      subscription_id: subscriptionId,
      user_id: subscriptionId,
      isDue: true,
      traceparent: "of the failed",
    });
  });

  for (const { old, asked, expected } of [
    { old: "'{}'", asked: true, expected: true },
    { old: "'{}'", asked: false, expected: false },
    { old: "'{}'", asked: undefined, expected: false },
    { old: "NULL", asked: true, expected: false },
  ])
    it(`shows ${expected ? "the" : "no"} old row where it is ${old} and the right to it ${asked}`, async () => {
      const { id } = await add({ status: "failed" });
      await core.sql(`UPDATE svc.event_data SET previous = ${old}`);

      const made = getCreated(await history.retry({ id, limit: 1, hasPrevious: asked }));

      expect(made.hasPrevious).to.equal(expected);
    });

  it("counts the retries of the whole chain, for a retry of any of its deliveries", async () => {
    const root = await add({ status: "failed" });
    const second = getCreated(await retry(root.id));
    await fail();
    const third = getCreated(await retry(second.id));
    await fail();

    expect(third).to.include({ parentDeliveryId: second.id, rootDeliveryId: root.id });
    for (const { id } of [root, second, third])
      expect(reasonOf(await retry(id, 2))).to.equal(
        "The manual retry limit of 2 for this delivery has been reached.",
      );
    expect(reasonOf(await retry(third.id, 3))).to.equal("created");
    expect(reasonOf(await retry((await add({ status: "failed" })).id, 1))).to.equal("created");
  });

  it("counts no delivery of a replay", async () => {
    const root = await add({ status: "failed" });
    const replayed = getCreated(await retry(root.id));
    await core.sql("UPDATE svc.deliveries SET replay_id = 1 WHERE id = $1", [replayed.id]);

    const answers = [await retry(root.id, 1), await retry(root.id, 1)];

    expect(answers.map(({ kind }) => kind)).to.deep.equal(["created", "refused"]);
  });

  it("admits no more than the limit for simultaneous retries of the chain", async () => {
    const root = await add({ status: "failed" });
    const second = getCreated(await retry(root.id));
    await fail();

    const answers = await Promise.all([root, second, root, second].map(({ id }) => retry(id, 2)));

    expect(answers.map(({ kind }) => kind).toSorted((a, b) => a.localeCompare(b))).to.deep.equal([
      "created",
      "refused",
      "refused",
      "refused",
    ]);
    expect(await countOf("deliveries")).to.equal(3);
    expect(await countOf("delivery_queue")).to.equal(2);
  });

  it("waits for a running retry of the same chain, and counts it", async () => {
    const root = await add({ status: "failed" });
    let answer: Promise<RetryAnswer> | undefined;

    await core.transact(async (sql) => {
      await sql("SELECT FROM svc.deliveries WHERE id = $1 FOR UPDATE", [root.id]);
      answer = retry(root.id, 1);
      const waiting =
        "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
      await until(async () => (await core.sql(waiting)).length > 0, { what: "the retry to wait" });
      await sql(
        `INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind, max_attempts, url)
         SELECT gen_random_uuid(), event_id, event_uuid, subscription_id, user_id, resource, id, 'manual', 1, '' FROM svc.deliveries WHERE id = $1`,
        [root.id],
      );
    });

    expect(answer && reasonOf(await answer)).to.contain("limit of 1");
  });

  for (const status of ["delivered", "cancelled"])
    it(`makes one of a delivery that is ${status}`, async () => {
      const { id } = await add({ status });

      expect(getCreated(await retry(id))).to.include({ parentDeliveryId: id, status: "pending" });
    });

  it("makes a retrying delivery due itself, after any number of retries", async () => {
    const { id } = await add({ status: "retrying", dueAt: new Date("2040-01-01") });

    const answer = await retry(id, 0);

    expect(answer).to.deep.include({ kind: "hurried" });
    expect(await core.sql("SELECT due_at <= now() AS due, is_hurried FROM svc.delivery_queue")).to.deep.equal(
      [{ due: true, is_hurried: true }],
    );
    expect(await countOf("deliveries")).to.equal(1);
  });

  for (const [what, given, reason] of [
    [
      "is pending",
      { status: "pending" },
      "This delivery is pending: its first attempt is made without a retry.",
    ],
    ["is in flight", { status: "retrying", isInHand: true }, "An attempt of this delivery is being made."],
    [
      "is held",
      { status: "held" },
      "This delivery is held: it goes out when its subscription is switched on.",
    ],
  ] as const)
    it(`refuses a delivery that ${what}`, async () => {
      const { id } = await add(given);

      expect(reasonOf(await retry(id))).to.equal(reason);
      expect(await countOf("deliveries")).to.equal(1);
    });

  it("refuses one whose record was erased", async () => {
    const { id } = await add({ status: "failed" });
    await core.sql("DELETE FROM svc.event_data");

    expect(reasonOf(await retry(id))).to.equal("The record of this delivery was erased.");
  });

  it("refuses when the subscription was deleted", async () => {
    const { id } = await add({ status: "failed" });
    await core.sql("DELETE FROM svc.subscriptions");

    expect(reasonOf(await retry(id))).to.equal("The subscription of this delivery was deleted.");
  });

  it("refuses every retry when the limit is 0", async () => {
    expect(reasonOf(await retry((await add({ status: "failed" })).id, 0))).to.contain("limit of 0");
  });

  it("refuses a delivery that was pruned meanwhile", async () => {
    expect(reasonOf(await retry("9"))).to.equal("This delivery was deleted.");
  });
});
