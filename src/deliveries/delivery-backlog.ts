import type { Sql } from "../db/sql.ts";
import { countLimit, type DeliveryBacklog } from "../telemetry/metrics/backlog-gauges.ts";

// No part reads more rows than the limit. A delivery without a due time waits for a slot, or for
// its subscription or user to be active. The age leaves out deliveries whose receiver fails: an
// alert on it is to mean that the service itself is late.
const backlogText = `
  WITH parked AS MATERIALIZED (
    SELECT delivery_id, subscription_id FROM svc.delivery_queue WHERE due_at IS NULL ORDER BY subscription_id, delivery_id LIMIT $1
  ), held AS MATERIALIZED (
    SELECT delivery_id FROM parked
    LEFT JOIN svc.subscriptions AS subscription ON subscription.id = parked.subscription_id
    LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
    WHERE NOT coalesce(subscription.is_active AND subscriber.disabled_at IS NULL, false)
  ), due AS MATERIALIZED (
    SELECT delivery_id FROM svc.delivery_queue WHERE due_at <= now() ORDER BY due_at LIMIT $1
  )
  SELECT
    least((SELECT count(*) FROM due) + (SELECT count(*) FROM parked) - (SELECT count(*) FROM held), $1)::int AS due,
    (SELECT coalesce(sum(cardinality(delivery_ids)), 0) FROM svc.flights)::int AS "inHand",
    (SELECT count(*) FROM (SELECT FROM svc.delivery_queue WHERE due_at > now() ORDER BY due_at LIMIT $1) AS counted)::int AS scheduled,
    least((SELECT count(*) FROM held) + (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE held_at IS NOT NULL ORDER BY id LIMIT $1) AS counted), $1)::int AS held,
    (SELECT extract(epoch FROM now() - delivery.updated_at) * 1000 FROM svc.deliveries AS delivery
      WHERE delivery.id = (SELECT min(delivery_id) FROM (SELECT delivery_id FROM due UNION ALL
        SELECT delivery_id FROM parked LEFT JOIN svc.subscription_state AS state USING (subscription_id)
        WHERE state.failing_since IS NULL AND delivery_id NOT IN (SELECT delivery_id FROM held)) AS waiting))::float8 AS "oldestDueMs",
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE problem = 'failed' AND dead_lettered_at IS NULL ORDER BY id LIMIT $1) AS counted)::int AS "awaitingDeadLetter"`;

/** Reads how many deliveries are unfinished, by what they wait for. The cost is bounded. */
export async function readDeliveryBacklog(sql: Sql): Promise<DeliveryBacklog> {
  const [row] = await sql<BacklogRow>(backlogText, [countLimit]);
  if (row === undefined) throw new Error("The statement returned no row.");
  return { ...row, oldestDueMs: row.oldestDueMs ?? undefined };
}

type BacklogRow = Omit<DeliveryBacklog, "oldestDueMs"> & { readonly oldestDueMs: number | null };
