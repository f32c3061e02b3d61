import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createIndexSql, createTransact } from "../../src/db/sql.ts";
import { deliveryStatuses } from "../../src/deliveries/delivery.ts";
import type { DeliveryFilter } from "../../src/deliveries/history-texts.ts";
import { createDeliveryHistory, type DeliveryHistory } from "../../src/deliveries/history.ts";
import type { RetryAnswer } from "../../src/deliveries/retry.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { until } from "../support/wait.ts";

const reasonOf = (answer: RetryAnswer): string => (answer.kind === "refused" ? answer.reason : "created");
const getCreated = (answer: RetryAnswer) => {
  if (answer.kind === "refused") throw new Error(answer.reason);
  return answer.delivery;
};

describe("createDeliveryHistory", () => {
  let core: CoreDatabase;
  let history: DeliveryHistory;
  let subscriptionId: number;

  before(async () => {
    core = await openCoreDatabase();
    history = createDeliveryHistory({
      sql: core.sql,
      listSql: createIndexSql(core.database.pool),
      transact: createTransact(core.database.pool),
    });
  });

  beforeEach(async () => {
    await core.sql(
      `TRUNCATE svc.users, svc.tokens, svc.subscriptions, svc.events, svc.outbox, svc.event_data, svc.deliveries, svc.delivery_queue,
        svc.flights, svc.attempts RESTART IDENTITY`,
    );
    subscriptionId = await addSubscription();
  });

  after(() => core.close());

  /** Belongs to a user of its own, with the same id. */
  async function addSubscription(): Promise<number> {
    const [row] = await core.sql<{ id: number }>(`
      WITH subscriber AS (INSERT INTO svc.users (name, email) VALUES ('Ada', gen_random_uuid()) RETURNING id)
      INSERT INTO svc.subscriptions (id, user_id, url, resource, events, encrypted_secret, secret_hint)
      SELECT id, id, 'http://127.0.0.1:9/hook', 'notes', '{on_create}', '', 'test' FROM subscriber RETURNING id`);
    return row?.id ?? 0;
  }

  /** Adds `count` deliveries of an event each; those at work are in the queue, or in a flight. */
  async function add({
    of = subscriptionId,
    status = "delivered",
    count = 1,
    isInHand = false,
    dueAt = null,
  }: {
    readonly of?: number;
    readonly status?: string;
    readonly count?: number;
    readonly isInHand?: boolean;
    readonly dueAt?: Date | null;
  } = {}): Promise<{ readonly id: string; readonly eventId: string }> {
    const rows = await core.sql<{ id: string; eventId: string }>(
      `WITH event AS (
         INSERT INTO svc.events (resource, trigger, record_id, snapshot)
         SELECT 'notes', 'on_create', '1', '{}' FROM generate_series(1, $3) RETURNING id, uuid
       ), fresh AS MATERIALIZED (
         SELECT nextval('svc.deliveries_id_seq') AS delivery_id, * FROM event
       ), made AS (
         INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind,
           max_attempts, url, status, traceparent)
         SELECT delivery_id, delivery_id, gen_random_uuid(), id, uuid, $1, $1, 'notes', 'automatic', 3, 'http://127.0.0.1:9/hook', $2, 'of the failed'
         FROM fresh RETURNING id, event_id
       ), queued AS (
         INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
         SELECT id, $1, $1, $4::timestamptz FROM made WHERE $2 IN ('pending', 'retrying') AND NOT $5
       ), flying AS (
         INSERT INTO svc.flights (delivery_ids, ends_at) SELECT array_agg(id), now() FROM made HAVING $5
       )
       SELECT id, event_id AS "eventId" FROM made ORDER BY id DESC LIMIT 1`.replaceAll("$1", "$1::int"),
      [of, status, count, dueAt, isInHand],
    );
    const [last] = rows;
    if (last === undefined) throw new Error("nothing was added");
    return last;
  }

  const retry = (id: string, limit = 3): Promise<RetryAnswer> => history.retry({ id, limit });
  const fail = (): Promise<unknown> => core.sql("UPDATE svc.deliveries SET status = 'failed'");
  const list = (filter: DeliveryFilter, skip = 0, take = 10): ReturnType<DeliveryHistory["list"]> =>
    history.list({ filter, skip, take });
  const found = async (filter: DeliveryFilter): Promise<unknown> => {
    const { rows, total, isEstimate } = await list(filter);
    expect({ total, isEstimate }).to.deep.equal({ total: rows.length, isEstimate: false });
    return rows.map(({ id }) => id);
  };
  const totalFrom = async (skip: number): Promise<readonly [number, boolean]> => {
    const { total, isEstimate } = await list({ userId: subscriptionId }, skip);
    return [total, isEstimate];
  };
  const countOf = async (table: string): Promise<number> =>
    (await core.sql(`SELECT FROM svc.${table}`)).length;

  describe("list", () => {
    it("gives the newest first, a page at a time, with the number of all", async () => {
      const ids: string[] = [];
      for (let count = 0; count < 5; count++) ids.unshift((await add()).id);

      const pages = await Promise.all([0, 2, 4, 6].map((skip) => list({}, skip, 2)));

      expect(pages.map(({ rows }) => rows.map(({ id }) => id))).to.deep.equal([
        ids.slice(0, 2),
        ids.slice(2, 4),
        ids.slice(4),
        [],
      ]);
      for (const { total, isEstimate } of pages)
        expect({ total, isEstimate }).to.deep.equal({ total: 5, isEstimate: false });
    });

    it("filters by user, subscription, status and event, and by all of them at once", async () => {
      const other = await addSubscription();
      const mine = await add({ status: "failed" });
      await add();
      const theirs = await add({ of: other, status: "failed" });

      expect(await found({ userId: other })).to.deep.equal([theirs.id]);
      expect(await found({ subscriptionId: other })).to.deep.equal([theirs.id]);
      expect(await found({ status: "failed" })).to.deep.equal([theirs.id, mine.id]);
      expect(await found({ eventId: mine.eventId })).to.deep.equal([mine.id]);
      expect(
        await found({ userId: subscriptionId, subscriptionId, status: "failed", eventId: mine.eventId }),
      ).to.deep.equal([mine.id]);
    });

    it("gives each status under every other filter, also while it is being attempted", async () => {
      const other = await addSubscription();
      for (const status of deliveryStatuses) {
        const expected = [await add({ status })];
        if (status === "pending" || status === "retrying")
          expected.unshift(await add({ status, isInHand: true }));
        const ids = expected.map(({ id }) => id);
        await add({ of: other, status });
        const [{ eventId } = { eventId: "" }] = expected;

        expect(await found({ userId: subscriptionId, status })).to.deep.equal(ids);
        expect(await found({ subscriptionId, status })).to.deep.equal(ids);
        expect(await found({ userId: subscriptionId, subscriptionId, status })).to.deep.equal(ids);
        expect(await found({ eventId, status })).to.deep.equal(ids.slice(0, 1));
        expect(await found({ userId: other, subscriptionId, status })).to.deep.equal([]);
        expect(await found({ userId: other, eventId, status })).to.deep.equal([]);
        expect((await list({ status })).total).to.equal(ids.length + 1);
      }
      expect(await found({ userId: other, subscriptionId })).to.deep.equal([]);
    });

    it("gives a delivery that is in the queue and in a flight once, and pages of those at work without a gap", async () => {
      await add({ status: "retrying", count: 3 });
      await add({ status: "retrying", count: 3, isInHand: true });
      await core.sql("INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ('{2,3}', now())");

      const pages = await Promise.all([0, 2, 4, 6].map((skip) => list({ status: "retrying" }, skip, 2)));

      expect(pages.flatMap(({ rows }) => rows.map(({ id }) => id))).to.deep.equal([
        "6",
        "5",
        "4",
        "3",
        "2",
        "1",
      ]);
      expect(pages.map(({ total }) => total)).to.deep.equal([6, 6, 6, 6]);
    });

    it("says when the next attempt is due, of what waits for it", async () => {
      const dueAt = new Date("2030-01-02T03:04:05.678Z");
      await add({ status: "retrying", dueAt });
      await add({ status: "pending" });
      await add({ status: "retrying", isInHand: true });

      const { rows } = await list({});

      expect(rows.map(({ nextAttemptAt }) => nextAttemptAt)).to.deep.equal([null, null, dueAt]);
      expect(await history.find("1")).to.deep.equal(rows[2]);
    });

    it("counts up to 10,000, and estimates what is more", async () => {
      await add({ count: 10_000 });
      expect(await totalFrom(0)).to.deep.equal([10_000, false]);
      await add({ count: 20_000 });
      // It knows of no rows, then of all.
      await core.sql("ANALYZE svc.deliveries");
      expect(await totalFrom(0)).to.deep.equal([30_000, true]);
      await add({ count: 30_000 });
      const [before] = await totalFrom(0);
      expect(before).to.be.within(10_001, 70_000);
      // The end of the list is known when it is seen, and no page before it is taken for the end.
      expect((await totalFrom(before < 59_000 ? before : 59_000))[0]).to.be.greaterThan(
        before < 59_000 ? before : 59_000,
      );
      expect(await totalFrom(59_995)).to.deep.equal([60_000, false]);
      expect((await totalFrom(2_000_000))[0]).to.be.within(10_001, 2_000_000);
    });
  });

  it("is svc-admin deliveries list, which says how many there are besides", async () => {
    const terminal = createMemoryTerminal();
    const answer = async (...args: readonly string[]): Promise<{ stdout: string; stderr: string }> => {
      const env = { DATABASE_URL: core.url };
      expect(
        await runAdmin({ args: ["deliveries", "list", ...args], env, cwd: process.cwd(), terminal }),
      ).to.equal(0);
      return terminal.read();
    };
    const remark = async (...args: readonly string[]): Promise<string> => (await answer(...args)).stderr;
    await add({ count: 7 });

    expect(await remark()).to.equal("");
    expect(await remark("--limit", "3", "--json")).to.equal("");
    expect(await remark("--limit", "3")).to.equal("These are the newest 3 of 7.\n");
    const filters = ["--resource", "notes", "--status", "delivered,failed", "--record", "1", "--url", "x"];
    expect((await answer(...filters)).stdout).to.equal("There are no such deliveries.\n");
    const { stdout } = await answer(...filters.slice(0, -2), "--event", "on_create", "--created-after", "1h");
    expect(stdout).to.include("notes.on_create");
    expect(
      new Set(
        stdout
          .trimEnd()
          .split("\n")
          .map(({ length }) => length),
      ),
    ).to.deep.equal(new Set([98]));
    await add({ count: 11_993 });
    await core.sql("ANALYZE svc.deliveries");
    expect(await remark("--limit", "3")).to.equal("These are the newest 3 of about 12,000.\n");
  });

  it("finds a delivery, and its attempts in order", async () => {
    const { id } = await add();
    for (const number of [2, 1])
      await core.sql(
        `INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, response_headers, response_body)
         VALUES ($1, $2, '2030-01-02T03:04:05.678Z', 5, '{"a":"b"}', 'text')`,
        [id, number],
      );

    expect(await history.find(id)).to.include({
      id,
      status: "delivered",
      attempt: 0,
      triggerKind: "automatic",
    });
    const attempts = await history.attemptsOf(id);
    expect(attempts.map(({ number }) => number)).to.deep.equal([1, 2]);
    expect(attempts[0]).to.deep.equal({
      number: 1,
      startedAt: new Date("2030-01-02T03:04:05.678Z"),
      durationMs: 5,
      statusCode: null,
      error: null,
      responseHeaders: { a: "b" },
      responseBody: Buffer.from("text"),
      responseTruncated: false,
      address: null,
      dnsMs: null,
      connectMs: null,
      tlsMs: null,
      firstByteMs: null,
      trigger: "scheduled",
    });
    expect(await history.find("9")).to.equal(undefined);
    expect(await history.attemptsOf("9")).to.deep.equal([]);
  });

  describe("retry", () => {
    it("makes a delivery of its own of the same event, due now, to the URL of today", async () => {
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

    it("counts the retries of the whole chain, whichever of its deliveries is retried", async () => {
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

    it("lets no more in than the limit when many come at once, from anywhere in the chain", async () => {
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

    it("waits for a retry of the same chain under way, and counts it", async () => {
      const root = await add({ status: "failed" });
      let answer: Promise<RetryAnswer> | undefined;

      await createTransact(core.database.pool)(async (sql) => {
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

    for (const status of ["pending", "retrying", "delivered", "cancelled"]) {
      it(`refuses a delivery that is ${status}`, async () => {
        const { id } = await add({ status });

        expect(reasonOf(await retry(id))).to.equal(
          `Only a failed delivery can be retried; this one is ${status}.`,
        );
        expect(await countOf("deliveries")).to.equal(1);
      });
    }

    it("refuses when the subscription was deleted", async () => {
      const { id } = await add({ status: "failed" });
      await core.sql("DELETE FROM svc.subscriptions");

      expect(reasonOf(await retry(id))).to.equal("The subscription of this delivery was deleted.");
    });

    it("refuses every retry when the limit is 0", async () => {
      expect(reasonOf(await retry((await add({ status: "failed" })).id, 0))).to.contain("limit of 0");
    });

    it("refuses what was pruned meanwhile", async () => {
      expect(reasonOf(await retry("9"))).to.equal("This delivery was deleted.");
    });
  });
});
