import { hostOf } from "../admission/admission.ts";
import type { DeliveryInFlight } from "./delivery-in-flight.ts";
import type { Outcome } from "../outcome.ts";
import { recordedTraceOf } from "../../telemetry/tracing.ts";

/**
 * Returns the log line of one attempt. Pure. Shows only the receiver's host, because its path, its
 * query and its answer may hold secrets.
 *
 * @param facts `isWritten` is false when another process has recorded the attempt. `lagMs` is the
 *   time from the event to the end of the attempt.
 */
export function attemptLine(
  delivery: DeliveryInFlight,
  { status, delayMs, result }: Outcome,
  facts: { readonly isWritten: boolean; readonly lagMs: number; readonly bytesOut: number },
): Readonly<Record<string, unknown>> {
  return {
    event: "delivery.attempt",
    delivery: delivery.uuid,
    eventUuid: delivery.eventUuid,
    traceId: recordedTraceOf(delivery.traceparent),
    subscriptionId: delivery.subscriptionId,
    userId: delivery.subscription.user.id,
    resource: delivery.resource,
    receiver: hostOf(delivery.subscription.url),
    attempt: delivery.attempt + 1,
    maxAttempts: delivery.maxAttempts,
    status,
    statusCode: result?.statusCode,
    error: result?.error,
    bytesOut: facts.bytesOut,
    durationMs: result?.durationMs,
    lagMs: Math.round(facts.lagMs),
    retryInMs: delayMs === undefined ? undefined : Math.round(delayMs),
    isWritten: facts.isWritten,
  };
}
