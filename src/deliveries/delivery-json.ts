import { formatDateTime } from "../kit/date-time.ts";
import { deliveryBody } from "./attempt/body.ts";
import type { AttemptResult } from "./delivery.ts";
import { signedHeaders } from "./attempt/sign.ts";
import type { DeliveryRow, ExtraHeaders } from "./delivery-row.ts";
import type { AttemptRow } from "./history.ts";
import { maskHeaders } from "../subscriptions/own-headers.ts";
import { parseTraceparent } from "../telemetry/tracing.ts";
import type { Payload } from "../events/present-stored.ts";

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
    resource: delivery.resource,
    event: delivery.event,
    record_id: delivery.recordId,
    occurred_at: delivery.occurredAt,
    status: delivery.status,
    attempt: delivery.attempt,
    max_attempts: delivery.maxAttempts,
    url: delivery.url,
    next_attempt_at: formatDateTime(delivery.nextAttemptAt),
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
    status_code: attempt.statusCode ?? null,
    error: attempt.error ?? null,
    response_headers: attempt.responseHeaders ?? null,
    response_body: attempt.responseBody?.toString("utf8") ?? null,
    response_truncated: attempt.isResponseTruncated,
    trigger: attempt.trigger,
    address: attempt.address ?? null,
    dns_ms: attempt.dnsMs ?? null,
    connect_ms: attempt.connectMs ?? null,
    tls_ms: attempt.tlsMs ?? null,
    first_byte_ms: attempt.firstByteMs ?? null,
  };
}

/** Returns the JSON of the attempt of a test delivery, which is not stored, in the same form. */
export function presentResult(result: AttemptResult): Readonly<Record<string, unknown>> {
  return presentAttempt({ ...result, number: 1, trigger: "test" });
}

/**
 * Returns the JSON of the request of a delivery. It is computed and not stored, since every attempt
 * has the same body. Signatures are masked because a reader could use one to send a request in the
 * service's name. The parts that differ by attempt are masked too.
 *
 * @param payload Undefined when the payload was erased; the request then has no body.
 * @param extraHeaders The receiver's own headers as they are now.
 */
export function presentRequest(
  delivery: DeliveryRow,
  payload: Payload | undefined,
  { headerNames, traceparent }: ExtraHeaders,
): Readonly<Record<string, unknown>> {
  const body = deliveryBody({
    ...delivery,
    data: Buffer.from(payload?.data ?? ""),
    previous: delivery.hasPrevious && payload?.previous ? Buffer.from(payload.previous) : undefined,
    timestamp: delivery.occurredAt,
  });
  const signing = { secrets: [""], headers: {} };
  const headers = signedHeaders({ ...delivery, signing, body: [], sentAt: new Date(0) });
  const shown = Object.entries(headers).map(([name, value]) => [name, isCut(name) ? cut(value) : value]);
  const trace = parseTraceparent(traceparent);
  return {
    headers: {
      ...maskHeaders(headerNames),
      ...Object.fromEntries(shown),
      ...(trace && { traceparent: `00-${trace.traceId}-…` }),
    },
    body: payload === undefined ? null : Buffer.concat(body).toString(),
  };
}

/** Returns whether a header is masked: signatures, and the time of each attempt. */
const isCut = (name: string): boolean => /signature|timestamp/i.test(name);

/** Masks a value except for the prefix that names the kind of signature: `sha256=`, `v1,`. */
function cut(value: string): string {
  return `${/^\w+[=,]/.exec(value)?.[0] ?? ""}…`;
}
