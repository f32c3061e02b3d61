import { randomUUID } from "node:crypto";
import type { Sql } from "../db/sql.ts";
import { findDelivery, type DeliveryRow } from "./delivery-row.ts";
import { keepFromPruning } from "./prune.ts";

export type RetryAnswer =
  | { readonly kind: "created"; readonly delivery: DeliveryRow }
  | { readonly kind: "refused"; readonly reason: string };

// Locks the root's row: two retries of one chain at the same time would both find room under the
// limit. The next statement sees what the earlier retry has written.
const lockChainText = `
  SELECT FROM svc.deliveries
  WHERE id = (SELECT root_delivery_id FROM svc.deliveries WHERE id = $1) FOR NO KEY UPDATE`;

const retryText = `
  WITH failed AS MATERIALIZED (
    SELECT delivery.*, subscription.url AS "urlNow",
      (SELECT count(*) FROM svc.deliveries AS other
        WHERE other.root_delivery_id = delivery.root_delivery_id AND other.trigger_kind = 'manual') AS retries
    FROM svc.deliveries AS delivery LEFT JOIN svc.subscriptions AS subscription ON subscription.id = delivery.subscription_id
    WHERE delivery.id = $1
  ), made AS (
    INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, parent_delivery_id, root_delivery_id,
      trigger_kind, max_attempts, url, traceparent)
    SELECT $3::uuid, event_id, event_uuid, subscription_id, user_id, resource, id, root_delivery_id, 'manual', max_attempts, "urlNow",
      coalesce($4, traceparent)
    FROM failed WHERE status = 'failed' AND "urlNow" IS NOT NULL AND retries < $2
    RETURNING id, subscription_id, user_id
  ), queued AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry)
    SELECT id, subscription_id, user_id, date_trunc('milliseconds', now()), false FROM made
  )
  SELECT failed.status AS "statusBefore", failed."urlNow", made.id FROM failed LEFT JOIN made ON true`;

interface RetriedRow extends Record<string, unknown> {
  readonly statusBefore: string;
  readonly urlNow: string | null;
  /** The new delivery. */
  readonly id: string | null;
}

/**
 * Makes a new delivery of a failed one, in a transaction: see `DeliveryHistory.retry`.
 *
 * @param traceparent Of the request; default: that of the failed delivery.
 */
export async function retryDelivery(
  sql: Sql,
  {
    id,
    limit,
    traceparent,
  }: { readonly id: string; readonly limit: number; readonly traceparent: string | undefined },
): Promise<RetryAnswer> {
  await keepFromPruning(sql);
  await sql(lockChainText, [id]);
  const [row] = await sql<RetriedRow>(retryText, [id, limit, randomUUID(), traceparent ?? null]);
  if (row === undefined) return refused("This delivery was deleted.");
  const { id: madeId, statusBefore, urlNow } = row;
  const made = madeId === null ? undefined : await findDelivery(sql, madeId);
  if (made !== undefined) return { kind: "created", delivery: made };
  if (statusBefore !== "failed")
    return refused(`Only a failed delivery can be retried; this one is ${statusBefore}.`);
  if (urlNow === null) return refused("The subscription of this delivery was deleted.");
  return refused(`The manual retry limit of ${limit} for this delivery has been reached.`);
}

function refused(reason: string): RetryAnswer {
  return { kind: "refused", reason };
}
