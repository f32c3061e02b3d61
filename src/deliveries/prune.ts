import type { QueryResultRow } from "pg";
import { getRow, type Sql, type Transact } from "../db/sql.ts";

/** Number of deleted events and deliveries; in a plan, of those that would be deleted. */
export interface Pruned {
  readonly events: number;
  /** Deleted together with their attempts. */
  readonly deliveries: number;
}

interface Page extends Pruned {
  /** Row id of the last event of the page, as a decimal string; null when the page is empty. */
  readonly last: string | null;
  /** Row id of the next event, when it has too many deliveries for this page. */
  readonly large: string | null;
  /** Whether any event of the page was old, so that more may follow. */
  readonly isOld: boolean;
}

/**
 * These limits are constants in the SQL text. For a parameter the planner expects a tenth of the
 * table, and reads all of it for every page.
 */
const eventsPerPage = 500;
const deliveriesPerPage = 2_000;

/** Key of the advisory lock: a number that nothing else in the project uses. */
const pruneLock = 7_001;

/**
 * Blocks every page of a prune until the transaction ends. A page that judged a delivery before its
 * retry was committed would delete the retry's event.
 */
export async function blockPruning(sql: Sql): Promise<void> {
  await sql("SELECT pg_advisory_xact_lock_shared($1)", [pruneLock]);
}

const cutoff = "now() - $2 * interval '1 millisecond'";
const isOver = `(delivery.status IN ('delivered', 'cancelled')
      OR delivery.status = 'failed' AND delivery.dead_lettered_at IS NOT NULL) AND delivery.updated_at < ${cutoff}`;

/**
 * Selects a page of events by id, with at most 2,000 deliveries. Reads no deliveries of young
 * events. OFFSET 0 makes PostgreSQL read them event by event, by the index.
 */
const judgedCtes = `
  page AS MATERIALIZED (
    SELECT page.id, page.is_old, delivery.id AS delivery_id, ${isOver} AS is_over
    FROM (
      SELECT id, occurred_at < ${cutoff} AS is_old FROM svc.events WHERE id > $1 ORDER BY id LIMIT ${eventsPerPage}
    ) AS page LEFT JOIN LATERAL (
      SELECT id, status, dead_lettered_at, updated_at FROM svc.deliveries WHERE event_id = page.id AND page.is_old OFFSET 0
    ) AS delivery ON true
    ORDER BY page.id LIMIT ${deliveriesPerPage}
  ), judged AS MATERIALIZED (
    SELECT id, bool_and(is_old AND coalesce(is_over, true)) AS is_over FROM page
    -- The last one of a page that is full may have more deliveries.
    WHERE (SELECT count(*) FROM page) < ${deliveriesPerPage} OR id < (SELECT max(id) FROM page)
    GROUP BY id
  ), gone AS MATERIALIZED (
    SELECT id FROM judged WHERE is_over AND id <> ALL(ARRAY(
      SELECT event_id FROM svc.outbox WHERE event_id > $1 AND event_id <= (SELECT max(id) FROM judged)))
  ), gone_deliveries AS MATERIALIZED (
    SELECT delivery_id AS id FROM page WHERE delivery_id IS NOT NULL AND id IN (SELECT id FROM gone)
  )`;
const judgement = `
  SELECT (SELECT max(id) FROM judged) AS last, coalesce((SELECT bool_or(is_old) FROM page), false) AS "isOld",
    CASE WHEN NOT EXISTS (SELECT FROM judged) THEN (SELECT min(id) FROM page) END AS large,
    (SELECT count(*)::int FROM gone) AS events, (SELECT count(*)::int FROM gone_deliveries) AS deliveries`;

const countText = `WITH ${judgedCtes} ${judgement}`;
const pruneText = `WITH ${judgedCtes}, without_attempts AS (
    DELETE FROM svc.attempts WHERE delivery_id = ANY(ARRAY(SELECT id FROM gone_deliveries))
  ), without_deliveries AS (
    DELETE FROM svc.deliveries WHERE id = ANY(ARRAY(SELECT id FROM gone_deliveries))
  ), without_data AS (
    DELETE FROM svc.event_data WHERE event_id = ANY(ARRAY(SELECT id FROM gone))
  ), without_events AS (
    DELETE FROM svc.events WHERE id = ANY(ARRAY(SELECT id FROM gone))
  ) ${judgement}`;

/** Judges an event with more deliveries than a page has. */
const judgeLargeText = `
  SELECT count(*)::int AS deliveries, coalesce(bool_and(${isOver}), true)
    AND NOT EXISTS (SELECT FROM svc.outbox WHERE event_id = $1) AS "isOver"
  FROM svc.deliveries AS delivery WHERE event_id = $1`;

// The last portion deletes the event too, unless a retry was made meanwhile.
const pruneLargeText = `
  WITH gone AS MATERIALIZED (
    SELECT delivery.id FROM svc.deliveries AS delivery WHERE event_id = $1 AND ${isOver} LIMIT ${deliveriesPerPage}
  ), without_attempts AS (
    DELETE FROM svc.attempts WHERE delivery_id = ANY(ARRAY(SELECT id FROM gone))
  ), without_deliveries AS (
    DELETE FROM svc.deliveries WHERE id = ANY(ARRAY(SELECT id FROM gone))
  ), empty AS MATERIALIZED (
    SELECT $1::bigint AS id WHERE NOT EXISTS (
      SELECT FROM svc.deliveries WHERE event_id = $1 AND id <> ALL(ARRAY(SELECT id FROM gone)))
  ), without_data AS (
    DELETE FROM svc.event_data WHERE event_id = ANY(ARRAY(SELECT id FROM empty))
  ), without_events AS (
    DELETE FROM svc.events WHERE id = ANY(ARRAY(SELECT id FROM empty)) RETURNING 1
  )
  SELECT (SELECT count(*)::int FROM gone) AS deliveries, (SELECT count(*)::int FROM without_events) AS events`;

/**
 * Deletes events older than `olderThanMs`, with their deliveries and attempts. All deliveries must
 * have been finished for that long, and failed ones dead-lettered. Each page of at most 500 events
 * and 2,000 deliveries has its own transaction. So a prune can be stopped at any time, and run
 * beside the service.
 *
 * @param isPlan Whether to count only, without deleting.
 * @param onProgress Called after each page with the totals so far. The next page waits for it.
 */
export async function pruneEvents({
  transact,
  olderThanMs,
  isPlan,
  onProgress,
  mayGoOn,
}: {
  readonly transact: Transact;
  readonly olderThanMs: number;
  readonly isPlan: boolean;
  readonly onProgress: (pruned: Pruned) => void | Promise<void>;
  /**
   * Called in the transaction of each page before it is read. The prune ends when it returns false.
   * Default: the prune runs to the end.
   */
  readonly mayGoOn?: (sql: Sql) => Promise<boolean>;
}): Promise<Pruned> {
  let pruned: Pruned = { events: 0, deliveries: 0 };

  async function note({ events, deliveries }: Pruned): Promise<void> {
    pruned = { events: pruned.events + events, deliveries: pruned.deliveries + deliveries };
    await onProgress(pruned);
  }

  /**
   * Runs the statement of a page in a transaction. Returns undefined when the prune may not go on.
   */
  async function run<R extends QueryResultRow>(text: string, event: string): Promise<R | undefined> {
    return transact(async (sql) => {
      if (mayGoOn !== undefined && !(await mayGoOn(sql))) return undefined;
      if (!isPlan) await sql("SELECT pg_advisory_xact_lock($1)", [pruneLock]);
      return getRow<R>(sql, text, [event, olderThanMs]);
    });
  }

  async function pruneLarge(event: string): Promise<void> {
    const judged = await run<{ isOver: boolean; deliveries: number }>(judgeLargeText, event);
    if (judged?.isOver !== true) return;
    if (isPlan) return note({ events: 1, deliveries: judged.deliveries });
    for (
      let portion: Pruned | undefined;
      portion === undefined || portion.deliveries === deliveriesPerPage;
    ) {
      portion = await run<Pruned>(pruneLargeText, event);
      if (portion === undefined) return;
      await note(portion);
    }
  }

  for (let after = "0"; ;) {
    const page = await run<Page>(isPlan ? countText : pruneText, after);
    // Ids are nearly in the order of time: after a page without old events there are no more.
    if (page?.isOld !== true) return pruned;
    await note(page);
    if (page.large !== null) await pruneLarge(page.large);
    after = page.large ?? page.last ?? after;
  }
}
