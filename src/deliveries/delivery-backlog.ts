import { getRow, type Sql } from "../db/sql.ts";
import { countLimit, type DeliveryBacklog } from "../telemetry/metrics/backlog-gauges.ts";

// No part reads more rows than the limit. A delivery without a due time waits for a slot, or for
// its subscription or user to be active. The age leaves out deliveries whose receiver fails, or
// whose webhook has a rate limit: an alert on the age must mean that the service itself is late.
// The wait of a due retry starts at its due time.
const backlogText = `
  WITH parked AS MATERIALIZED (
    SELECT delivery_id, subscription_id FROM svc.delivery_queue WHERE due_at IS NULL ORDER BY subscription_id, delivery_id LIMIT $1
  ), parked_for AS MATERIALIZED (
    SELECT of_one.count, of_one.oldest, state.failing_since IS NULL AND subscription.rate_limit IS NULL AS is_late,
      coalesce(subscription.is_active AND subscriber.disabled_at IS NULL, false) AS is_active
    FROM (SELECT subscription_id, count(*), min(delivery_id) AS oldest FROM parked GROUP BY subscription_id) AS of_one
    LEFT JOIN svc.subscriptions AS subscription ON subscription.id = of_one.subscription_id
    LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
    LEFT JOIN svc.subscription_state AS state ON state.subscription_id = of_one.subscription_id
  ), due AS MATERIALIZED (
    SELECT due_at FROM svc.delivery_queue WHERE due_at <= now() ORDER BY due_at LIMIT $1
  )
  SELECT
    least((SELECT count(*) FROM due) + (SELECT coalesce(sum(count), 0) FROM parked_for WHERE is_active), $1)::int AS due,
    (SELECT coalesce(sum(cardinality(delivery_ids)), 0) FROM svc.flights)::int AS "inHand",
    (SELECT count(*) FROM (SELECT FROM svc.delivery_queue WHERE due_at > now() ORDER BY due_at LIMIT $1) AS counted)::int AS scheduled,
    least((SELECT coalesce(sum(count), 0) FROM parked_for WHERE NOT is_active) + (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE held_at IS NOT NULL ORDER BY id LIMIT $1) AS counted), $1)::int AS held,
    (extract(epoch FROM now() - least((SELECT min(due_at) FROM due), (SELECT updated_at FROM svc.deliveries
      WHERE id = (SELECT min(oldest) FROM parked_for WHERE is_active AND is_late)))) * 1000)::float8 AS "oldestDueMs",
    (SELECT count(*) FROM (
      SELECT FROM svc.deliveries WHERE problem = 'failed' AND dead_lettered_at IS NULL ORDER BY id LIMIT $1) AS counted)::int AS "awaitingDeadLetter"`;

/** Counts the unfinished deliveries by the reason for their wait. The cost is bounded. */
export async function readDeliveryBacklog(sql: Sql): Promise<DeliveryBacklog> {
  return getRow<DeliveryBacklog>(sql, backlogText, [countLimit]);
}
