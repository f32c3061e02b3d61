import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createIndexSql } from "../../src/db/sql.ts";
import { deliveryStatuses } from "../../src/deliveries/delivery.ts";
import type { DeliveryFilter } from "../../src/deliveries/history-texts.ts";
import { createDeliveryHistory, type DeliveryHistory } from "../../src/deliveries/history.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { addDeliveries, addSubscriber, emptyHistory, type GivenDelivery } from "../support/history-rows.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";

describe("createDeliveryHistory", () => {
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

  const addSubscription = (): Promise<number> => addSubscriber(core.sql);
  const add = (given: Partial<GivenDelivery> = {}): ReturnType<typeof addDeliveries> =>
    addDeliveries(core.sql, { of: subscriptionId, ...given });

  const list = (filter: DeliveryFilter, skip = 0, take = 10): ReturnType<DeliveryHistory["list"]> =>
    history.list({ filter, skip, take });
  const found = async (filter: DeliveryFilter): Promise<unknown> => {
    const { records, total, isEstimate } = await list(filter);
    expect({ total, isEstimate }).to.deep.equal({ total: records.length, isEstimate: false });
    return records.map(({ id }) => id);
  };
  const totalFrom = async (skip: number): Promise<readonly [number, boolean]> => {
    const { total = 0, isEstimate } = await list({ userId: subscriptionId }, skip);
    return [total, isEstimate];
  };

  describe("list", () => {
    it("returns the newest first, a page at a time, with the number of all", async () => {
      const ids: string[] = [];
      for (let count = 0; count < 5; count++) ids.unshift((await add()).id);

      const pages = await Promise.all([0, 2, 4, 6].map((skip) => list({}, skip, 2)));

      expect(pages.map(({ records }) => records.map(({ id }) => id))).to.deep.equal([
        ids.slice(0, 2),
        ids.slice(2, 4),
        ids.slice(4),
        [],
      ]);
      for (const { total, isEstimate } of pages)
        expect({ total, isEstimate }).to.deep.equal({ total: 5, isEstimate: false });
    });

    it("compares the ids as numbers where no index serves the filter, in both orders", async () => {
      await add({ count: 12 });
      const narrow = { userId: subscriptionId, narrowing: { resource: "notes" } };

      const newest = await history.read({ filter: narrow, skip: 0, take: 4 });
      const oldest = await history.read({ filter: narrow, order: "asc", skip: 0, take: 4 });

      expect(newest.rows.map(({ id }) => id)).to.deep.equal(["12", "11", "10", "9"]);
      expect(oldest.rows.map(({ id }) => id)).to.deep.equal(["1", "2", "3", "4"]);
    });

    it("filters by user, subscription, status and event, and by all of them at once", async () => {
      const other = await addSubscription();
      const mine = await add({ status: "failed" });
      await add();
      const theirs = await add({ of: other, status: "failed" });

      expect(await found({ userId: other })).to.deep.equal([theirs.id]);
      expect(await found({ subscriptionId: other })).to.deep.equal([theirs.id]);
      expect(await found({ statuses: ["failed"] })).to.deep.equal([theirs.id, mine.id]);
      expect(await found({ eventId: mine.eventId })).to.deep.equal([mine.id]);
      expect(
        await found({ userId: subscriptionId, subscriptionId, statuses: ["failed"], eventId: mine.eventId }),
      ).to.deep.equal([mine.id]);
    });

    it("finds each status under every other filter, also during an attempt", async () => {
      const other = await addSubscription();
      for (const status of deliveryStatuses) {
        const statuses = [status];
        const expected = [await add({ status })];
        if (status === "pending" || status === "retrying")
          expected.unshift(await add({ status, isInHand: true }));
        const ids = expected.map(({ id }) => id);
        await add({ of: other, status });
        const [{ eventId } = { eventId: "" }] = expected;

        expect(await found({ userId: subscriptionId, statuses })).to.deep.equal(ids);
        expect(await found({ subscriptionId, statuses })).to.deep.equal(ids);
        expect(await found({ userId: subscriptionId, subscriptionId, statuses })).to.deep.equal(ids);
        expect(await found({ eventId, statuses })).to.deep.equal(ids.slice(0, 1));
        expect(await found({ userId: other, subscriptionId, statuses })).to.deep.equal([]);
        expect(await found({ userId: other, eventId, statuses })).to.deep.equal([]);
        expect((await list({ statuses })).total).to.equal(ids.length + 1);
      }
      expect(await found({ userId: other, subscriptionId })).to.deep.equal([]);
    });

    it("returns a delivery that is in the queue and in a flight once, and pages of unfinished ones without a gap", async () => {
      await add({ status: "retrying", count: 3 });
      await add({ status: "retrying", count: 3, isInHand: true });
      await core.sql("INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ('{2,3}', now())");

      const pages = await Promise.all([0, 2, 4, 6].map((skip) => list({ statuses: ["retrying"] }, skip, 2)));

      expect(pages.flatMap(({ records }) => records.map(({ id }) => id))).to.deep.equal([
        "6",
        "5",
        "4",
        "3",
        "2",
        "1",
      ]);
      expect(pages.map(({ total }) => total)).to.deep.equal([6, 6, 6, 6]);
    });

    it("shows nothing of the previous user to one to whom SQL gave the subscription", async () => {
      const other = await addSubscription();
      await add({ count: 2 });
      const { id } = await add();
      await core.sql("UPDATE svc.deliveries SET user_id = $1 WHERE id = $2", [other, id]);

      for (const narrowing of [undefined, { resource: "notes" }]) {
        const filter = { userId: other, subscriptionId, narrowing };
        const { rows } = await history.read({ filter, skip: 0, take: 10 });
        expect(rows.map((row) => row.id)).to.deep.equal([id]);
      }
    });

    it("shows the time of the next attempt, for waiting deliveries", async () => {
      const dueAt = new Date("2030-01-02T03:04:05.678Z");
      await add({ status: "retrying", dueAt });
      await add({ status: "pending" });
      await add({ status: "retrying", isInHand: true });

      const { records } = await list({});

      expect(records.map(({ nextAttemptAt }) => nextAttemptAt)).to.deep.equal([null, null, dueAt]);
      expect(await history.find("1")).to.deep.equal(records[2]);
    });

    it("counts up to 10,000, and estimates beyond", async () => {
      await add({ count: 10_000 });
      expect(await totalFrom(0)).to.deep.equal([10_000, false]);
      await add({ count: 20_000 });
      // The statistics have no rows before this, and then all.
      await core.sql("ANALYZE svc.deliveries");
      expect(await totalFrom(0)).to.deep.equal([30_000, true]);
      await add({ count: 30_000 });
      const [before] = await totalFrom(0);
      expect(before).to.be.within(10_001, 70_000);
      // The last page shows the exact total. No earlier page counts as the last.
      expect((await totalFrom(before < 59_000 ? before : 59_000))[0]).to.be.greaterThan(
        before < 59_000 ? before : 59_000,
      );
      expect(await totalFrom(59_995)).to.deep.equal([60_000, false]);
      // An estimate would link back to empty pages.
      expect(await totalFrom(2_000_000)).to.deep.equal([60_000, false]);
    });
  });

  it("is svc-admin deliveries list, which also prints the number of all", async () => {
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
      attempt: 1,
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
      isResponseTruncated: false,
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
});
