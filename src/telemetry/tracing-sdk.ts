import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes, randomUUID } from "node:crypto";
import { hostname } from "node:os";
import {
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
  type Context,
  type Span as ApiSpan,
} from "@opentelemetry/api";
import { ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { defaultResource, resourceFromAttributes } from "@opentelemetry/resources";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  TraceIdRatioBasedSampler,
  TracerProvider,
  type Sampler,
  type SpanExporter,
} from "@opentelemetry/sdk-trace";
import { messageOf } from "../kit/errors.ts";
import { version } from "../kit/version.ts";
import { endsWithin } from "../kit/worker.ts";
import type { Log } from "./log.ts";
import { formatTraceparent, parseTraceparent, type Span, type Tracing } from "./tracing.ts";
import type { TracingSettings } from "./tracing-settings.ts";

/** Limit of the delay of a stop by a collector that does not answer. */
const closeLimitMs = 3_000;
const warningIntervalMs = 300_000;

const kinds = {
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
} as const;

/**
 * Creates tracing with the OpenTelemetry SDK. Spans are sent in batches, outside the path of a
 * request. A full queue drops spans. Nothing is registered globally, so that tracing that an
 * operator preloads stays separate.
 */
export function createSdkTracing({
  settings,
  log,
}: {
  readonly settings: TracingSettings;
  readonly log: Log;
}): Tracing {
  const exporter = watched(new OTLPTraceExporter({ url: settings.url }), log);
  const provider = new TracerProvider({
    sampler: samplerOf(settings.sampler),
    resource: defaultResource().merge(
      resourceFromAttributes({
        "service.version": version,
        "service.instance.id": randomUUID(),
        "host.name": hostname(),
        "process.pid": process.pid,
        ...settings.resource,
      }),
    ),
    spanProcessors: [new BatchSpanProcessor({ exporter, ...settings.batch })],
  });
  const tracer = provider.getTracer("svc", version);
  const currents = new AsyncLocalStorage<Span>();

  return {
    isOn: true,
    begin({ name, kind, parent, isSampled, attributes = {} }) {
      if (isSampled === false) return toSpan(unsampledSpan());
      return toSpan(
        tracer.startSpan(name, { kind: kinds[kind], attributes: { ...attributes } }, contextOf(parent)),
      );
    },
    run: (span, work) => currents.run(span, work),
    current: () => currents.getStore(),
    async close() {
      // Lost spans have been logged, and must not fail the stop.
      await endsWithin(
        closeLimitMs,
        provider.shutdown().catch(() => undefined),
      );
    },
  };
}

function toSpan(span: ApiSpan): Span {
  const { traceId, spanId, traceFlags } = span.spanContext();
  const isSampled = (traceFlags & TraceFlags.SAMPLED) !== 0;
  return {
    traceparent: formatTraceparent({ traceId, spanId, isSampled }),
    traceId: isSampled ? traceId : undefined,
    rename: (name) => void span.updateName(name),
    set: (attributes) => void span.setAttributes({ ...attributes }),
    end(error) {
      if (error !== undefined) {
        span.setAttribute("error.type", error);
        span.setStatus({ code: SpanStatusCode.ERROR });
      }
      span.end();
    },
  };
}

function contextOf(parent: string | undefined): Context {
  const given = parseTraceparent(parent);
  if (given === undefined) return ROOT_CONTEXT;
  const { traceId, spanId, isSampled } = given;
  const traceFlags = isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE;
  return trace.setSpanContext(ROOT_CONTEXT, { traceId, spanId, traceFlags, isRemote: true });
}

/** Creates a span of a trace of its own, without asking the sampler. */
function unsampledSpan(): ApiSpan {
  const [traceId, spanId] = [randomBytes(16).toString("hex"), randomBytes(8).toString("hex")];
  return trace.wrapSpanContext({ traceId, spanId, traceFlags: TraceFlags.NONE });
}

function samplerOf({ name, ratio }: TracingSettings["sampler"]): Sampler {
  const root = name.endsWith("always_on")
    ? new AlwaysOnSampler()
    : name.endsWith("always_off")
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(ratio);
  return name.startsWith("parentbased_") ? new ParentBasedSampler({ root }) : root;
}

/**
 * Wraps an exporter: logs that spans are lost, at most every five minutes, and that they arrive
 * again.
 */
function watched(exporter: SpanExporter, log: Log): SpanExporter {
  let lost = 0;
  let warnedAt = -warningIntervalMs;
  return {
    export(spans, onResult) {
      exporter.export(spans, (result) => {
        if (result.code === ExportResultCode.SUCCESS) {
          if (lost > 0) log.info({ event: "tracing.recovered", lost }, "traces are sent again");
          lost = 0;
        } else {
          lost += spans.length;
          const now = performance.now();
          if (now - warnedAt >= warningIntervalMs) {
            warnedAt = now;
            // Logs the message only, because the error may contain the collector's answer.
            const reason = result.error === undefined ? "unknown" : messageOf(result.error);
            log.warn({ event: "tracing.lost", lost, reason }, "traces cannot be sent; dropping them");
          }
        }
        onResult(result);
      });
    },
    shutdown: () => exporter.shutdown(),
  };
}
