import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import type { Sql, Transact } from "../../src/db/sql.ts";
import { blockPruning, pruneEvents, type Pruned } from "../../src/deliveries/prune.ts";
import { createRetention } from "../../src/deliveries/retention.ts";
import { pause } from "../../src/kit/worker.ts";
import { stateSql } from "../support/delivery-states.ts";
import { createMemoryLog } from "../support/http.ts";
import { coreOfSuite, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { until } from "../support/wait.ts";
import { createWork } from "../support/work.ts";

const day = 86_400;
const daysAgo = (days: number): Date => new Date(Date.now() - days * day * 1_000);
const old = daysAgo(31);
const young = daysAgo(29);

describe("pruneEvents and createRetention", () => {
  const core = coreOfSuite();

  beforeEach(() =>
    core.sql(
      "TRUNCATE svc.events, svc.outbox, svc.event_data, svc.deliveries, svc.delivery_queue, svc.attempts, svc.replays",
    ),
  );

  const prune = ({
    isPlan = false,
    onProgress = () => undefined,
    transact = core.transact,
  }: {
    readonly isPlan?: boolean;
    readonly onProgress?: (pruned: Pruned) => void;
    readonly transact?: Transact;
  } = {}): Promise<Pruned> =>
    pruneEvents({
      transact,
      olderThanMs: 30 * day * 1_000,
      isPlan,
      onProgress,
    });

  /**
   * Adds `events` events of 31 days ago. By default each has `deliveries` delivered ones of the
   * same age, with an attempt each.
   */
  async function add({
    events = 1,
    deliveries = 1,
    happened = old,
    ended = old,
    status = "delivered",
    deadLettered = null,
    isFannedOut = true,
  }: {
    readonly events?: number;
    readonly deliveries?: number;
    readonly happened?: Date;
    readonly ended?: Date;
    readonly status?: string;
    readonly deadLettered?: Date | null;
    readonly isFannedOut?: boolean;
  } = {}): Promise<readonly string[]> {
    const made = await core.sql<{ id: string }>(
      `WITH event AS (
         INSERT INTO svc.events (resource, trigger, record_id, snapshot, occurred_at)
         SELECT 'notes', 'on_create', '1', '{}', $2::timestamptz FROM generate_series(1, $1) RETURNING id, uuid
       ), delivery AS (
         INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, root_delivery_id, trigger_kind,
           max_attempts, url, status, updated_at, dead_lettered_at, attempt, last_error)
         SELECT gen_random_uuid(), event.id, event.uuid, number, 1, 'notes', 1, 'automatic', 3, '', $4, $5::timestamptz, $6::timestamptz,
           ${stateSql("$4").attempt}, ${stateSql("$4").lastError}
         FROM event CROSS JOIN generate_series(1, $3) AS number RETURNING id, event_id
       ), attempt AS (
         INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms) SELECT id, 1, now(), 1 FROM delivery
       ), data AS (
         INSERT INTO svc.event_data (event_id, data) SELECT DISTINCT event_id, '{}' FROM delivery
       )
       SELECT id FROM event ORDER BY id`,
      [events, happened, deliveries, status, ended, deadLettered],
    );
    const ids = made.map(({ id }) => id);
    if (isFannedOut) await core.sql("DELETE FROM svc.outbox WHERE event_id = ANY($1::bigint[])", [ids]);
    return ids;
  }

  /** Returns the rows of each table. */
  async function left(): Promise<Readonly<Record<string, number>>> {
    const [row] = await core.sql<Record<string, number>>(`
      SELECT (SELECT count(*)::int FROM svc.events) AS events, (SELECT count(*)::int FROM svc.event_data) AS data,
        (SELECT count(*)::int FROM svc.deliveries) AS deliveries, (SELECT count(*)::int FROM svc.attempts) AS attempts`);
    return row ?? {};
  }

  const eventIds = async (): Promise<readonly string[]> =>
    (await core.sql<{ id: string }>("SELECT id FROM svc.events ORDER BY id")).map(({ id }) => id);

  it("deletes old events with their data, deliveries and attempts", async () => {
    await add({ events: 5, deliveries: 2 });
    const kept = await add({ happened: young, ended: young });

    expect(await prune()).to.deep.equal({ events: 5, deliveries: 10 });
    expect(await eventIds()).to.deep.equal(kept);
    expect(await left()).to.deep.equal({ events: 1, data: 1, deliveries: 1, attempts: 1 });
  });

  it("deletes an event without subscribers", async () => {
    await add({ deliveries: 0 });

    expect(await prune()).to.deep.equal({ events: 1, deliveries: 0 });
    expect(await eventIds()).to.deep.equal([]);
  });

  const kept: readonly (readonly [string, Parameters<typeof add>[0]])[] = [
    ["is not fanned out yet", { deliveries: 0, isFannedOut: false }],
    ["is not wholly fanned out yet", { isFannedOut: false }],
    ["happened later", { happened: young }],
    ["has a delivery that waits for its first attempt", { status: "pending" }],
    ["has a delivery that is retried", { status: "retrying" }],
    ["has a delivery that was finished later", { ended: young }],
    ["has a failed delivery whose dead letter was not confirmed", { status: "failed" }],
  ];
  for (const [fact, options] of kept) {
    it(`keeps an event that ${fact}, and deletes one before it`, async () => {
      await add();
      const ids = await add(options);
      const before = Object.entries(await left());

      expect(await prune()).to.deep.equal({ events: 1, deliveries: 1 });
      expect(await eventIds()).to.deep.equal(ids);
      expect(await left()).to.deep.equal(
        Object.fromEntries(before.map(([table, rows]) => [table, rows - 1])),
      );
    });
  }

  it("keeps an event with all its deliveries if one is unfinished", async () => {
    await add({ deliveries: 3 });
    await core.sql(`UPDATE svc.deliveries SET ${stateSql("'retrying'").set} WHERE subscription_id = 2`);

    expect(await prune()).to.deep.equal({ events: 0, deliveries: 0 });
    expect(await left()).to.deep.equal({ events: 1, data: 1, deliveries: 3, attempts: 3 });
  });

  it("deletes one whose deliveries failed and were cancelled", async () => {
    await add({ status: "failed", deadLettered: old });
    await add({ status: "cancelled" });

    expect(await prune()).to.deep.equal({ events: 2, deliveries: 2 });
  });

  it("skips pages of old events that must stay", async () => {
    const unfinished = await add({ events: 1_100, status: "pending" });
    await add({ events: 600, deliveries: 0 });

    expect(await prune()).to.deep.equal({ events: 600, deliveries: 0 });
    expect(await eventIds()).to.deep.equal(unfinished);
  });

  it("deletes no more than 2000 deliveries at once, also of one event", async () => {
    const pages: Pruned[] = [];
    await add({ events: 2, deliveries: 1_500 });
    await add({ deliveries: 4_500 });
    const unfinished = await add({ deliveries: 2_500 });
    await core.sql(
      `UPDATE svc.deliveries SET ${stateSql("'retrying'").set} WHERE event_id = $1 AND subscription_id = 2400`,
      [unfinished[0]],
    );
    await add({ events: 10 });
    const onProgress = (pruned: Pruned): void => void pages.push(pruned);

    expect(await prune({ isPlan: true })).to.deep.equal({ events: 13, deliveries: 7_510 });
    expect(await prune({ onProgress })).to.deep.equal({ events: 13, deliveries: 7_510 });
    expect(await left()).to.deep.equal({ events: 1, data: 1, deliveries: 2_500, attempts: 2_500 });
    const sizes = pages.map(({ deliveries }, index) => deliveries - (pages[index - 1]?.deliveries ?? 0));
    expect(Math.max(...sizes)).to.equal(2_000);
  });

  it("continues with an event of many deliveries after a death between two portions of them", async () => {
    await add({ deliveries: 4_500 });
    let portions = 0;
    const dying: Transact = (work) => {
      portions += 1;
      // Reads of the page and of the event, and its first portion.
      return portions > 3 ? Promise.reject(new Error("died")) : core.transact(work);
    };
    const died = prune({ transact: dying }).catch(({ message }: Error) => message);

    expect(await died).to.equal("died");
    expect(await left()).to.deep.equal({ events: 1, data: 1, deliveries: 2_500, attempts: 2_500 });
    expect(await prune()).to.deep.equal({ events: 1, deliveries: 2_500 });
    expect(await left()).to.deep.equal({ events: 0, data: 0, deliveries: 0, attempts: 0 });
  });

  it("waits for a running manual retry, and then keeps its event", async () => {
    const ids = await add({ status: "failed", deadLettered: old });
    let pruning: Promise<Pruned> | undefined;

    await core.transact(async (sql) => {
      await blockPruning(sql);
      pruning = prune();
      await until(() => isAnyoneWaiting(core), { what: "the prune to wait" });
      await sql(`UPDATE svc.deliveries SET ${stateSql("'pending'").set}, dead_lettered_at = NULL`);
    });

    expect(await pruning).to.deep.equal({ events: 0, deliveries: 0 });
    expect(await eventIds()).to.deep.equal(ids);
  });

  it("counts the same and deletes nothing in a plan", async () => {
    await add({ events: 3 });

    expect(await prune({ isPlan: true })).to.deep.equal({ events: 3, deliveries: 3 });
    expect(await prune()).to.deep.equal({ events: 3, deliveries: 3 });
  });

  it("is svc-admin prune, which requires an age", async () => {
    await add();
    const terminal = createMemoryTerminal();
    const run = (...args: readonly string[]): Promise<number> =>
      runAdmin({ args: ["prune", ...args], env: { DATABASE_URL: core.url }, cwd: process.cwd(), terminal });

    expect(await run()).to.equal(2);
    expect(await run("--older-than", "0d")).to.equal(2);
    terminal.read();
    expect(await run("--older-than", "30d", "--plan")).to.equal(0);
    expect(terminal.read().stdout).to.equal("1 event and 1 delivery would be deleted.\n");
    expect(await run("--older-than", "32d", "--json")).to.equal(0);
    expect(JSON.parse(terminal.read().stdout)).to.deep.equal({ events: 0, deliveries: 0 });
    expect(await run("--older-than", "30d")).to.equal(0);
    expect(terminal.read()).to.deep.equal({ stdout: "1 event and 1 delivery deleted.\n", stderr: "" });
  });

  const eventCount = async (): Promise<number> => (await core.sql("SELECT FROM svc.events")).length;

  it("is done by the dispatcher, by one process at a time, and not at all with 0 days", async () => {
    const { log } = createMemoryLog();
    const { transact } = core;
    const run = (days: number): (() => Promise<void>) => {
      const stopping = new AbortController();
      const options = { transact, keepForMs: days * day * 1_000, log, intervalMs: 5 };
      const done = createRetention(options).run(stopping.signal);
      return async () => {
        stopping.abort();
        await done;
      };
    };
    await add({ events: 3 });
    await add({ happened: young, ended: young });

    const stopIdle = run(0);
    const stop = await transact(async (sql) => {
      await sql("SELECT pg_advisory_xact_lock(7002)");
      const started = run(30);
      await sleep(100);
      expect(await eventCount()).to.equal(4);
      return started;
    });
    await until(async () => (await eventCount()) === 1, { what: "the old events to be removed" });
    await Promise.all([stop(), stopIdle()]);
  });

  it("ends the replays of deleted webhooks, and removes those that ended long ago", async () => {
    const { id: there } = await createWork(core.prisma).addSubscription();
    const gone = there + 1_000;
    for (const [index, [webhook, state, at]] of (
      [
        [gone, "paused", young],
        [gone + 1, "running", old],
        [gone, "done", old],
        [gone, "cancelled", young],
        [there, "paused", old],
        [there, "done", old],
      ] as const
    ).entries())
      await core.sql(
        `INSERT INTO svc.replays (id, subscription_id, user_id, asked, cursor, until_id, total, is_estimate, state, updated_at)
         VALUES ($1, $2, 1, '{}', 0, 0, 0, false, $3, $4)`,
        [index, webhook, state, at],
      );
    const { log } = createMemoryLog();
    const stopping = new AbortController();
    const options = { transact: core.transact, keepForMs: 30 * day * 1_000, log };

    const done = createRetention({ ...options, intervalMs: 5 }).run(stopping.signal);
    const states = (): Promise<readonly unknown[]> =>
      core.sql("SELECT id::int, state, reason FROM svc.replays ORDER BY id");
    await until(async () => (await states()).length === 5, { what: "the old one to be removed" });
    stopping.abort();
    await done;

    const ended = { state: "cancelled", reason: "The subscription was deleted." };
    expect(await states()).to.deep.equal([
      { id: 0, ...ended },
      { id: 1, ...ended },
      { id: 3, state: "cancelled", reason: null },
      { id: 4, state: "paused", reason: null },
      { id: 5, state: "done", reason: null },
    ]);
  });

  it("ends the replays of deleted webhooks with 0 days too, and removes none", async () => {
    for (const [webhook, state] of [
      [1_000, "paused"],
      [1_001, "done"],
    ] as const)
      await core.sql(
        `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate, state, updated_at)
         VALUES ($1, 1, '{}', 0, 0, 0, false, $2, $3)`,
        [webhook, state, old],
      );
    const { log } = createMemoryLog();
    const stopping = new AbortController();
    const options = { transact: core.transact, keepForMs: 0, log, intervalMs: 5 };
    const done = createRetention(options).run(stopping.signal);
    const states = async (): Promise<readonly string[]> =>
      (await core.sql<{ state: string }>("SELECT state FROM svc.replays ORDER BY id")).map(
        ({ state }) => state,
      );
    await until(async () => !(await states()).includes("paused"), { what: "the end of the replay" });
    stopping.abort();
    await done;

    expect(await states()).to.deep.equal(["cancelled", "done"]);
  });

  it("rests after each page for as long as it took, without an open transaction", async () => {
    await add({ events: 501, deliveries: 0 });
    const { log } = createMemoryLog();
    const stopping = new AbortController();
    const spans: { readonly from: number; readonly to: number }[] = [];
    const transact: Transact = async (work) => {
      const from = performance.now();
      const answer = await core.transact(async (sql) => {
        const result = await work(sql);
        await pause(200, stopping.signal);
        return result;
      });
      spans.push({ from, to: performance.now() });
      return answer;
    };

    const done = createRetention({ transact, keepForMs: 30 * day * 1_000, log }).run(stopping.signal);
    await until(async () => (await eventCount()) === 0, { what: "the old events to be removed" });
    stopping.abort();
    await done;

    expect((spans[1]?.from ?? 0) - (spans[0]?.to ?? 0)).to.be.greaterThan(190);
  });

  it("removes everything in one turn of retention: a day may have ten million", async () => {
    const lastPage = 300;
    let pages = 0;
    // The answer to every statement.
    const answer = { isAlone: true, events: 500, deliveries: 0, large: null };
    const sql = (async (text: string) => {
      if (text.includes("AS MATERIALIZED")) pages += 1;
      return Promise.resolve([{ ...answer, last: String(pages), isOld: pages <= lastPage }]);
    }) as Sql;
    const stopping = new AbortController();
    const { log, lines } = createMemoryLog();
    const transact: Transact = (work) => work(sql);

    const done = createRetention({ transact, keepForMs: 1, log }).run(stopping.signal);
    await until(() => lines.length > 0, { what: "the end of the turn" });
    stopping.abort();
    await done;

    expect(lines[0]).to.include({ event: "retention.turn", events: 500 * lastPage });
  });
});

async function isAnyoneWaiting({ sql }: CoreDatabase): Promise<boolean> {
  const text = `SELECT FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database
    WHERE locktype = 'advisory' AND NOT granted AND datname = current_database()`;
  return (await sql(text)).length > 0;
}
