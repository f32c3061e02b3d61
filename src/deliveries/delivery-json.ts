import { formatDateTime } from "../kit/date-time.ts";
import type { AttemptRow, DeliveryRow } from "./history.ts";

/** Returns the JSON of a delivery (docs/webhooks.md, "Deliveries"). */
export function presentDelivery(delivery: DeliveryRow): Readonly<Record<string, unknown>> {
  return {
    id: Number(delivery.id),
    uuid: delivery.uuid,
    event_id: Number(delivery.eventId),
    event_uuid: delivery.eventUuid,
    subscription_id: delivery.subscriptionId,
    parent_delivery_id: delivery.parentDeliveryId === null ? null : Number(delivery.parentDeliveryId),
    root_delivery_id: Number(delivery.rootDeliveryId),
    trigger_kind: delivery.triggerKind,
    status: delivery.status,
    attempt: delivery.attempt,
    max_attempts: delivery.maxAttempts,
    url: delivery.url,
    next_attempt_at: delivery.nextAttemptAt === null ? null : formatDateTime(delivery.nextAttemptAt),
    last_error: delivery.lastError,
    created_at: formatDateTime(delivery.createdAt),
    updated_at: formatDateTime(delivery.updatedAt),
  };
}

/** Returns the JSON of an attempt. A body that is not UTF-8 gets replacement characters. */
export function presentAttempt(attempt: AttemptRow): Readonly<Record<string, unknown>> {
  return {
    number: attempt.number,
    started_at: formatDateTime(attempt.startedAt),
    duration_ms: attempt.durationMs,
    status_code: attempt.statusCode,
    error: attempt.error,
    response_headers: attempt.responseHeaders,
    response_body: attempt.responseBody === null ? null : attempt.responseBody.toString("utf8"),
    response_truncated: attempt.responseTruncated,
  };
}

/**
 * Parses the id of an event or a delivery: a positive 64-bit integer in plain decimal digits.
 * Returns undefined for anything else.
 */
export function rowIdOf(text: string | undefined): string | undefined {
  if (text === undefined || !/^[1-9]\d{0,18}$/.test(text)) return undefined;
  return BigInt(text) < 2n ** 63n ? text : undefined;
}
