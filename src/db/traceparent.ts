import { unsampledTraceparent, type Tracing } from "../telemetry/tracing.ts";

/**
 * Returns a comment for the end of a writing statement: the current span's `traceparent`, in the
 * format of sqlcommenter. `svc.statement_traceparent()` copies it into the events of the write. A
 * comment takes no round trip, but a setting of the session would take one for each write. Empty
 * without tracing.
 */
export function traceComment(tracing: Tracing): string {
  const span = tracing.isOn ? tracing.current() : undefined;
  if (span?.traceparent === undefined) return "";
  return span.traceId === undefined ? unsampledComment : commentOf(span.traceparent);
}

function commentOf(traceparent: string): string {
  return ` /*traceparent='${traceparent}'*/`;
}

/**
 * The comment of every span that is not recorded. It is constant, so that statements with it can be
 * prepared.
 */
export const unsampledComment = commentOf(unsampledTraceparent);
