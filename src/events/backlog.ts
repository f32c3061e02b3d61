import type { Sql } from "../db/sql.ts";
import { countLimit, type OutboxBacklog } from "../metrics/backlog.ts";

// Every part is answered by the index of a loop that looks at the same rows anyway, or by the sequence, and reads no more than
// the limit. The orders are there for the planner alone: after a backlog has gone, its statistics still promise one, and it would
// read the whole table in search of it. The oldest by id, not by time: ids are given out in the order of the changes but for a moment.
const backlogText = `
  SELECT
    (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM svc.events_id_seq)::float8 AS captured,
    (SELECT count(*) FROM (SELECT FROM svc.events WHERE published_at IS NULL ORDER BY id LIMIT $1) AS counted)::int AS unpublished,
    (SELECT extract(epoch FROM clock_timestamp() - occurred_at) * 1000
      FROM svc.events WHERE published_at IS NULL ORDER BY id LIMIT 1)::float8 AS "oldestUnpublishedMs",
    (SELECT count(*) FROM (
      SELECT FROM svc.events WHERE published_at IS NOT NULL AND fanned_out_at IS NULL ORDER BY claimed_until LIMIT $1) AS counted)::int AS "awaitingFanOut"`;

/** What waits in the outbox. The cost is bounded, however many events there are. */
export async function readOutboxBacklog(sql: Sql): Promise<OutboxBacklog> {
  const [row] = await sql<Found>(backlogText, [countLimit]);
  if (row === undefined) throw new Error("no answer");
  return { ...row, oldestUnpublishedMs: row.oldestUnpublishedMs ?? undefined };
}

type Found = Omit<OutboxBacklog, "oldestUnpublishedMs"> & { readonly oldestUnpublishedMs: number | null };
