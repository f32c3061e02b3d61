import { unsampledTraceparent, type Tracing } from "../telemetry/tracing.ts";

/**
 * Returns a comment that ends a statement that writes: the current span's `traceparent`, in the
 * form of sqlcommenter. `svc.statement_traceparent()` gives it to the events that the write makes.
 * A comment takes no round trip, where a setting of the session would take one for each write.
 * Empty without tracing.
 */
export function traceComment(tracing: Tracing): string {
  const span = tracing.isOn ? tracing.current() : undefined;
  if (span?.traceparent === undefined) return "";
  return span.traceId === undefined ? unsampledComment : commentOf(span.traceparent);
}

function commentOf(traceparent: string): string {
  return ` /*traceparent='${traceparent}'*/`;
}

/** The same for every span that is not recorded, so that statements with it can be prepared. */
export const unsampledComment = commentOf(unsampledTraceparent);
