import { getRow, type Sql } from "../db/sql.ts";
import { createPeriodicWorker, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";
import type { KnownAt } from "./known-subscribers.ts";
import { isBeforeSession, sessionCte } from "./session-since.ts";

/**
 * Deletes the changes that a snapshot sees, by index. Skips rows that another process deletes.
 * Returns the current snapshot for the next turn. A snapshot from before a crash sees transaction
 * ids that are assigned again.
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

interface ChangesPrunerOptions {
  readonly sql: Sql;
  readonly log: Log;
  /** Time between two turns: well above the 5 s for which an insert accepts a known answer. */
  readonly intervalMs?: number;
  /** Most rows of one statement. */
  readonly portion?: number;
}

/**
 * Creates the worker that prunes `svc.subscription_changes`, the transactions that have changed
 * subscriptions. It deletes the rows that every known answer includes. These are the rows that a
 * snapshot of a minute ago sees: an answer of the last seconds sees them too. The age of a row is
 * no criterion, because its commit may have come much later.
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
 * @param seen Snapshot of the previous turn; undefined in the first turn, which deletes nothing.
 */
async function prune(
  { sql, portion }: Required<Pick<ChangesPrunerOptions, "sql" | "portion">>,
  seen: KnownAt | undefined,
  signal: AbortSignal,
): Promise<KnownAt | undefined> {
  let first: KnownAt | undefined;
  const values = [seen?.snapshot ?? null, seen?.readAtMs ?? null, portion];
  for (let count = portion; count === portion && !signal.aborted;) {
    const row = await getRow<KnownAt & { readonly count: number }>(sql, pruneChangesText, values);
    first ??= row;
    ({ count } = row);
  }
  return first;
}
