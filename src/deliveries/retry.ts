import { randomUUID } from "node:crypto";
import type { Sql } from "../db/sql.ts";
import type { DeliveryStatus } from "./delivery.ts";
import { findDelivery, type DeliveryRow } from "./delivery-row.ts";
import { blockPruning } from "./prune.ts";

/** Result of a manual retry. The reason of a refusal is a text for people. */
export type RetryAnswer =
  | { readonly kind: "created"; readonly delivery: DeliveryRow }
  /** The delivery itself goes out now; its schedule stays as it is. */
  | { readonly kind: "hurried"; readonly delivery: DeliveryRow }
  | { readonly kind: "refused"; readonly reason: string };

// Locks the root's row: otherwise two simultaneous retries of one chain could both pass the limit.
// The next statement sees the write of the earlier retry.
const lockChainText = `
  SELECT FROM svc.deliveries
  WHERE id = (SELECT root_delivery_id FROM svc.deliveries WHERE id = $1) FOR NO KEY UPDATE`;

const findText = `
  SELECT delivery.status, subscription.url AS "urlNow",
    (SELECT count(*)::int FROM svc.deliveries AS other
      WHERE other.root_delivery_id = delivery.root_delivery_id AND other.trigger_kind = 'manual' AND other.replay_id IS NULL) AS retries,
    EXISTS (SELECT FROM svc.event_data WHERE event_id = delivery.event_id) AS "hasData"
  FROM svc.deliveries AS delivery LEFT JOIN svc.subscriptions AS subscription ON subscription.id = delivery.subscription_id
  WHERE delivery.id = $1`;

interface Found {
  readonly status: DeliveryStatus;
  /** Null when the subscription was deleted. */
  readonly urlNow: string | null;
  /** Manual retries in the chain. */
  readonly retries: number;
  /** False when the record was erased. */
  readonly hasData: boolean;
}

// The row exists only while no process has the delivery in flight.
const hurryText = `
  UPDATE svc.delivery_queue SET due_at = date_trunc('milliseconds', now()), is_hurried = true WHERE delivery_id = $1 RETURNING 1`;

// A delivery without an old row must not need the right to one: an attempt without it is cancelled.
const againText = `
  WITH made AS (
    INSERT INTO svc.deliveries (uuid, event_id, event_uuid, subscription_id, user_id, resource, parent_delivery_id, root_delivery_id,
      trigger_kind, max_attempts, url, traceparent, has_previous)
    SELECT $2::uuid, event_id, event_uuid, subscription_id, user_id, resource, id, root_delivery_id, 'manual', max_attempts, $3,
      coalesce($4, traceparent), nullif(coalesce($5, has_previous) AND (
        SELECT previous IS NOT NULL FROM svc.event_data WHERE event_data.event_id = deliveries.event_id), false)
    FROM svc.deliveries WHERE id = $1
    RETURNING id, subscription_id, user_id
  ), queued AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry)
    SELECT id, subscription_id, user_id, date_trunc('milliseconds', now()), false FROM made
  )
  SELECT id FROM made`;

/**
 * Makes a new delivery of a finished one, or hurries a retrying one: see `DeliveryHistory.retry`.
 * Must run in a transaction.
 *
 * @param traceparent The request's trace. Default: that of the delivery.
 * @param hasPrevious Whether the subscriber may read the old row. Default: as decided for the
 *   original delivery.
 */
export async function retryDelivery(
  sql: Sql,
  {
    id,
    limit,
    traceparent,
    hasPrevious,
  }: {
    readonly id: string;
    readonly limit: number;
    readonly traceparent: string | undefined;
    readonly hasPrevious?: boolean | undefined;
  },
): Promise<RetryAnswer> {
  await blockPruning(sql);
  await sql(lockChainText, [id]);
  const [found] = await sql<Found>(findText, [id]);
  if (found === undefined) return refused("This delivery was deleted.");
  const { status, urlNow, retries, hasData } = found;
  if (urlNow === null) return refused("The subscription of this delivery was deleted.");
  if (status === "pending")
    return refused("This delivery is pending: its first attempt is made without a retry.");
  if (status === "held")
    return refused("This delivery is held: it goes out when its subscription is switched on.");
  if (!hasData) return refused("The record of this delivery was erased.");
  if (status === "retrying") {
    if ((await sql(hurryText, [id])).length === 0)
      return refused("An attempt of this delivery is being made.");
    return answerWith(sql, "hurried", id);
  }
  if (retries >= limit)
    return refused(`The manual retry limit of ${limit} for this delivery has been reached.`);
  const [made] = await sql<{ id: string }>(againText, [
    id,
    randomUUID(),
    urlNow,
    traceparent ?? null,
    hasPrevious ?? null,
  ]);
  return answerWith(sql, "created", made?.id ?? "0");
}

async function answerWith(sql: Sql, kind: "created" | "hurried", id: string): Promise<RetryAnswer> {
  const delivery = await findDelivery(sql, id);
  return delivery === undefined ? refused("This delivery was deleted.") : { kind, delivery };
}

function refused(reason: string): RetryAnswer {
  return { kind: "refused", reason };
}
