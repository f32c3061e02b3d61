import { getRow, type Sql } from "../db/sql.ts";
import { countLimit, type OutboxBacklog } from "../telemetry/metrics/backlog-gauges.ts";

// An index or the sequence answers every part, and no part reads more rows than the limit. The
// oldest event is found by id, because ids nearly follow the order of the changes.
const backlogText = `
  SELECT
    (SELECT last_value - CASE WHEN is_called THEN 0 ELSE 1 END FROM svc.events_id_seq)::float8 AS captured,
    (SELECT count(*) FROM (SELECT FROM svc.outbox ORDER BY event_id LIMIT $1) AS counted)::int AS waiting,
    (SELECT extract(epoch FROM clock_timestamp() - occurred_at) * 1000
      FROM svc.events WHERE id = (SELECT event_id FROM svc.outbox ORDER BY event_id LIMIT 1))::float8 AS "oldestMs"`;

/** Reads the number of events in the outbox, and the age of the oldest. The cost is bounded. */
export async function readOutboxBacklog(sql: Sql): Promise<OutboxBacklog> {
  return getRow<OutboxBacklog>(sql, backlogText, [countLimit]);
}
