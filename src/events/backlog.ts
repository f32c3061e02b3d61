import type { Sql } from "../db/sql.ts";
import { countLimit, type OutboxBacklog } from "../telemetry/metrics/backlog-gauges.ts";

// Every part is answered by an index, or by the sequence, and reads no more than the limit. The oldest by id, not by time: ids are given
// out in the order of the changes but for a moment.
const backlogText = `
  SELECT
    (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM svc.events_id_seq)::float8 AS captured,
    (SELECT count(*) FROM (SELECT FROM svc.outbox ORDER BY event_id LIMIT $1) AS counted)::int AS waiting,
    (SELECT extract(epoch FROM clock_timestamp() - occurred_at) * 1000
      FROM svc.events WHERE id = (SELECT event_id FROM svc.outbox ORDER BY event_id LIMIT 1))::float8 AS "oldestMs"`;

/** What waits in the outbox. The cost is bounded, however many events there are. */
export async function readOutboxBacklog(sql: Sql): Promise<OutboxBacklog> {
  const [row] = await sql<Found>(backlogText, [countLimit]);
  if (row === undefined) throw new Error("no answer");
  return { ...row, oldestMs: row.oldestMs ?? undefined };
}

type Found = Omit<OutboxBacklog, "oldestMs"> & { readonly oldestMs: number | null };
