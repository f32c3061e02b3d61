import type { Actor } from "../kit/actor.ts";
import { createPeriodicWorker, type Worker } from "../kit/worker.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * Deletes tokens before the token that they were made with, because its revocation reaches them
 * through it. Skips the rows that another process deletes.
 */
const pruneText = `
  WITH ${actingCte("$3")}, gone AS (
    DELETE FROM svc.tokens USING acting WHERE id = ANY(ARRAY(
      SELECT id FROM svc.tokens AS token
      WHERE least(revoked_at, expires_at) < now() - $1 * interval '1 millisecond'
        AND NOT EXISTS (SELECT FROM svc.tokens AS made WHERE made.parent_id = token.id)
      ORDER BY least(revoked_at, expires_at) LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM gone`;

export interface TokensPrunerOptions {
  readonly sql: Sql;
  readonly log: Log;
  /** Author of the deletions, for the audit trail. */
  readonly actor: Actor;
  /** Time for which a token is kept after its end. 0: forever. */
  readonly keepForMs: number;
  /** Interval between two turns. */
  readonly intervalMs?: number;
  /** Limit of the rows of one statement. */
  readonly portion?: number;
}

/**
 * Creates a worker that deletes tokens after `keepForMs`. Programs that create a token for each run
 * would otherwise fill the table. The audit trail keeps its entries about them.
 */
export function createTokensPruner({
  sql,
  log,
  actor,
  keepForMs,
  intervalMs = 3_600_000,
  portion = 500,
}: TokensPrunerOptions): Worker {
  return createPeriodicWorker({
    name: "tokens",
    intervalMs,
    async turn(signal) {
      for (let count = 1; keepForMs > 0 && count > 0 && !signal.aborted;) {
        const values = [keepForMs, portion, actorText(actor)];
        const [row] = await sql<{ readonly count: number }>(pruneText, values);
        count = row?.count ?? 0;
      }
    },
    onError: (error) => log.error({ err: error }, "ended tokens not removed; trying again"),
  });
}
