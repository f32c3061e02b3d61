import type { Sql } from "../db/sql.ts";
import { createPeriodicWorker, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";
import type { KnownAt } from "./known-subscribers.ts";
import { isBeforeSession, sessionCte } from "./session-since.ts";

/**
 * Deletes the changes that a snapshot sees, by index. Skips those that another process deletes.
 * Returns the present snapshot for the next turn. A snapshot from before a crash sees transaction
 * numbers that are given out again.
 */
export const pruneChangesText = `
  WITH ${sessionCte}, gone AS (
    DELETE FROM svc.subscription_changes WHERE transaction_id = ANY(ARRAY(
      SELECT transaction_id FROM svc.subscription_changes
      WHERE (SELECT NOT (${isBeforeSession("$2")}) FROM session)
        AND transaction_id < pg_snapshot_xmax($1::pg_snapshot)::text::bigint
        AND transaction_id <> ALL(ARRAY(SELECT pg_snapshot_xip($1::pg_snapshot)::text::bigint))
      ORDER BY transaction_id LIMIT $3 FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT pg_current_snapshot()::text AS snapshot, (extract(epoch FROM now()) * 1000)::float8 AS "readAtMs",
    (SELECT count(*)::int FROM gone) AS count`;

/** What the pruner needs. */
export interface ChangesPrunerOptions {
  readonly sql: Sql;
  readonly log: Log;
  /** Between two turns: well above the 5 s for which an insert believes a known answer. */
  readonly intervalMs?: number;
  /** Most rows of one statement. */
  readonly portion?: number;
}

/**
 * Deletes which transactions have changed subscriptions (`svc.subscription_changes`), when no
 * known answer can lack them any more. Those are the ones that a snapshot of a minute ago sees: an
 * answer of the last seconds sees them too. The age of a row would not do, since the commit may
 * have come long after it.
 */
export function createChangesPruner({
  sql,
  log,
  intervalMs = 60_000,
  portion = 1_000,
}: ChangesPrunerOptions): Worker {
  let seen: KnownAt | undefined;
  return createPeriodicWorker({
    name: "subscription-changes",
    intervalMs,
    async turn(signal) {
      seen = await prune({ sql, portion }, seen, signal);
    },
    onError: (error) => log.error({ err: error }, "changes of subscriptions not pruned; trying again"),
  });
}

/**
 * Returns the snapshot of the turn's first statement.
 *
 * @param seen That of the turn before; undefined in the first, which deletes nothing.
 */
async function prune(
  { sql, portion }: Required<Pick<ChangesPrunerOptions, "sql" | "portion">>,
  seen: KnownAt | undefined,
  signal: AbortSignal,
): Promise<KnownAt | undefined> {
  let first: KnownAt | undefined;
  const values = [seen?.snapshot ?? null, seen?.readAtMs ?? null, portion];
  for (let count = portion; count === portion && !signal.aborted;) {
    const [row] = await sql<KnownAt & { readonly count: number }>(pruneChangesText, values);
    first ??= row;
    count = row?.count ?? 0;
  }
  return first;
}
