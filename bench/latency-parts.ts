import { startCollector, type CollectedSpan } from "../test/support/collector.ts";
import { measureSteadyApi, type DeliveryBench } from "./deliveries.ts";
import type { RequestSpec } from "./load.ts";
import { spreadOf, type Spread } from "./numbers.ts";
import { startProgram } from "./program.ts";
import type { BenchContext } from "./requests.ts";

/** Times by part, in the order of a delivery. */
export type LatencyParts = Readonly<Record<string, Spread>>;

interface Times {
  readonly traceId: string;
  /** Time at which the capture trigger ran. */
  readonly capturedAtMs: number;
  /** Time at which the outcome of the attempt was recorded. */
  readonly recordedAtMs: number;
}

const timesText = `
  SELECT substr(event.traceparent, 4, 32) AS "traceId",
    (1000 * extract(epoch FROM event.occurred_at))::float8 AS "capturedAtMs",
    (1000 * extract(epoch FROM delivery.updated_at))::float8 AS "recordedAtMs"
  FROM svc.events AS event JOIN svc.deliveries AS delivery ON delivery.event_id = event.id
  WHERE event.id > $1 AND delivery.status = 'delivered'`;

/**
 * Measures the parts of a delivery's time at 100 changes a second, from the service's spans and the
 * times in its tables. Tracing is on, so each part takes a little longer.
 */
export async function measureLatencyParts({
  context,
  pool,
  receiver,
  userId,
  databaseUrl,
  request,
}: DeliveryBench & {
  readonly context: BenchContext;
  readonly databaseUrl: string;
  readonly request: RequestSpec;
}): Promise<LatencyParts> {
  const { surroundings, generator, scale, atEnd } = context;
  const collector = await startCollector();
  atEnd(() => collector.close());
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_MAX_QUEUE_SIZE: "20000" };
  const api = await startProgram(context, "api", { databaseUrl, env });
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl, env });
  const { token } = surroundings;
  const way = { pool, receiver, userId, generator, request, port: api.port, token, meters: {} };
  await measureSteadyApi({ ...way, ratePerSecond: 100, durationMs: 3_000 });
  const { rows: last } = await pool.query<{ readonly id: string }>("SELECT max(id) AS id FROM svc.events");
  await measureSteadyApi({ ...way, ratePerSecond: 100, durationMs: 10_000 * scale });
  // The remaining spans are sent before the process ends.
  await api.stop();
  await dispatcher.stop();
  const { rows } = await pool.query<Times>(timesText, [last[0]?.id ?? 0]);
  return partsOf(collector.spans, rows);
}

const endOf = ({ startedAtMs, durationMs }: CollectedSpan): number => startedAtMs + durationMs;

function partsOf(spans: readonly CollectedSpan[], times: readonly Times[]): LatencyParts {
  const byTrace = new Map<string, Map<CollectedSpan["kind"], CollectedSpan>>();
  for (const span of spans) {
    const kinds = byTrace.get(span.traceId) ?? new Map<CollectedSpan["kind"], CollectedSpan>();
    kinds.set(span.kind, span);
    byTrace.set(span.traceId, kinds);
  }
  const parts: Record<string, number[]> = {};
  const note = (part: string, ms: number): void => void (parts[part] ??= []).push(ms);
  for (const { traceId, capturedAtMs, recordedAtMs } of times) {
    const of = byTrace.get(traceId);
    const [published, fannedOut, posted] = [of?.get("producer"), of?.get("consumer"), of?.get("client")];
    if (published === undefined || fannedOut === undefined || posted === undefined) continue;
    note(
      "capture to publish: the commit, the relay's read, presenting",
      published.startedAtMs - capturedAtMs,
    );
    note("publish to consume: the broker", fannedOut.startedAtMs - published.startedAtMs);
    note("consume to insert: subscribers, slot, commit", fannedOut.durationMs);
    note("insert to send: body, signature", posted.startedAtMs - endOf(fannedOut));
    note("send to answer: the receiver", posted.durationMs);
    note("answer to record", recordedAtMs - endOf(posted));
    note("capture to answer, all of it", endOf(posted) - capturedAtMs);
    note("publish to confirm (beside the rest)", published.durationMs);
  }
  return Object.fromEntries(Object.entries(parts).map(([name, values]) => [name, spreadOf(values)]));
}
