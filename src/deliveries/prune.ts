import type { Sql } from "../db/sql.ts";

/** How much was deleted, or would be. */
export interface Pruned {
  readonly events: number;
  /** Their attempts go with them. */
  readonly deliveries: number;
}

interface Page extends Pruned {
  /** Row id of the last event that was looked at, as a decimal string; null when none was left. */
  readonly last: string | null;
  /** Whether any event of the page is old. */
  readonly isOld: boolean | null;
}

/** In the text and not a parameter: the planner would take a tenth of the table for it, and read the whole of it for every page. */
const pageSize = 1_000;

/**
 * One page of events by id. An event goes only together with its deliveries: with the deliveries alone gone, its message, should
 * the broker hold it twice, would make them anew. It stays while any of them is unfinished, young, or has a dead letter that was not confirmed.
 */
const pageText = (goneDeliveries: string, goneEvents: string): string => `
  WITH page AS (
    SELECT id, occurred_at, fanned_out_at FROM svc.events WHERE id > $1 ORDER BY id LIMIT ${pageSize}
  ), old AS (
    SELECT page.id
    FROM page
    WHERE page.fanned_out_at < now() - $2 * interval '1 millisecond' AND NOT EXISTS (
      SELECT FROM svc.deliveries AS delivery
      WHERE delivery.event_id = page.id AND (delivery.status IN ('pending', 'retrying')
        OR delivery.updated_at >= now() - $2 * interval '1 millisecond'
        OR (delivery.status = 'failed' AND delivery.dead_lettered_at IS NULL)))
  ), gone_deliveries AS (${goneDeliveries}), gone_events AS (${goneEvents})
  SELECT (SELECT max(id) FROM page) AS last,
    (SELECT bool_or(occurred_at < now() - $2 * interval '1 millisecond') FROM page) AS "isOld",
    (SELECT count(*)::int FROM gone_events) AS events, (SELECT count(*)::int FROM gone_deliveries) AS deliveries`;

const pruneText = pageText(
  "DELETE FROM svc.deliveries USING old WHERE event_id = old.id RETURNING 1",
  "DELETE FROM svc.events USING old WHERE events.id = old.id RETURNING 1",
);

const countText = pageText(
  "SELECT FROM svc.deliveries WHERE event_id IN (SELECT id FROM old)",
  "SELECT FROM old",
);

/**
 * Deletes events that were fanned out longer than `olderThanMs` ago, with their deliveries and attempts, when all of those are
 * finished for as long. Pages of 1000 events, each in a transaction of its own: may be ended at any time, and run beside the service.
 *
 * @param isPlan Only counts.
 * @param onProgress Told after each page what is gone so far.
 */
export async function pruneEvents({
  sql,
  olderThanMs,
  isPlan,
  onProgress,
}: {
  readonly sql: Sql;
  readonly olderThanMs: number;
  readonly isPlan: boolean;
  readonly onProgress: (pruned: Pruned) => void;
}): Promise<Pruned> {
  let pruned: Pruned = { events: 0, deliveries: 0 };
  for (let after = "0"; ;) {
    const [page] = await sql<Page>(isPlan ? countText : pruneText, [after, olderThanMs]);
    // Ids are given out in about the order of time, so that behind a page of young events there are no old ones.
    if (page?.last === undefined || page.last === null || page.isOld !== true) return pruned;
    after = page.last;
    pruned = {
      events: pruned.events + page.events,
      deliveries: pruned.deliveries + page.deliveries,
    };
    onProgress(pruned);
  }
}
