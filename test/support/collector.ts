import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { until } from "./wait.ts";

export interface CollectedSpan {
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first span of a trace. */
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: "internal" | "server" | "client" | "producer" | "consumer";
  /** In ms since 1970. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly attributes: Attributes;
  readonly isError: boolean;
  /** Attributes of the process that made the span. */
  readonly resource: Attributes;
}

type Attributes = Readonly<Record<string, string | number | boolean>>;

/** An OpenTelemetry collector: receives OTLP over HTTP, and decodes the protobuf. */
export interface TestCollector {
  /** URL for `OTEL_EXPORTER_OTLP_ENDPOINT`. */
  readonly url: string;
  /** Spans in the order of arrival, which is not that of their times. */
  readonly spans: readonly CollectedSpan[];
  /** Headers of every export. */
  readonly requests: readonly Readonly<Record<string, string | string[] | undefined>>[];
  /** Status of later answers to exports; 200 at first. */
  status: number;
  /** Returns the spans that match, once there are `count` of them. */
  waitFor(
    matches: (span: CollectedSpan) => boolean,
    options?: { readonly count?: number; readonly what?: string },
  ): Promise<readonly CollectedSpan[]>;
  close(): Promise<void>;
}

export async function startCollector(): Promise<TestCollector> {
  const spans: CollectedSpan[] = [];
  const requests: TestCollector["requests"][number][] = [];
  const server = createServer((request, response) => {
    const take = async (): Promise<void> => {
      const body = await buffer(request);
      requests.push(request.headers);
      const isTraces = request.method === "POST" && request.url === "/v1/traces";
      if (isTraces && collector.status === 200)
        spans.push(...decodeTraces(request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body));
      response.statusCode = isTraces ? collector.status : 404;
      response.setHeader("Content-Type", "application/x-protobuf");
      response.end();
    };
    take().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const collector: TestCollector = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    status: 200,
    waitFor(matches, { count = 1, what = "spans" } = {}) {
      const find = (): readonly CollectedSpan[] | undefined => {
        const found = spans.filter(matches);
        return found.length >= count ? found : undefined;
      };
      return until(find, { what: `${count} ${what}` });
    },
    close() {
      return new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      });
    },
  };
  return collector;
}

const kinds = ["internal", "internal", "server", "client", "producer", "consumer"] as const;

/** Decodes the used parts of `ExportTraceServiceRequest` of opentelemetry-proto 1.x. */
function decodeTraces(request: Buffer): CollectedSpan[] {
  return fieldsOf(request)
    .all(1)
    .flatMap((bytes) => {
      const resourceSpans = fieldsOf(bytes);
      const resource = attributesOf(resourceSpans.all(1).flatMap((one) => fieldsOf(one).all(1)));
      return resourceSpans
        .all(2)
        .flatMap((scopeSpans) => fieldsOf(scopeSpans).all(2))
        .map((one): CollectedSpan => {
          const span = fieldsOf(one);
          return {
            traceId: span.bytes(1).toString("hex"),
            spanId: span.bytes(2).toString("hex"),
            parentSpanId: span.bytes(4).toString("hex"),
            name: span.bytes(5).toString(),
            kind: kinds[Number(span.number(6))] ?? "internal",
            startedAtMs: Number(span.number(7)) / 1e6,
            durationMs: Number(span.number(8) - span.number(7)) / 1e6,
            attributes: attributesOf(span.all(9)),
            isError: span.all(15).some((status) => fieldsOf(status).number(3) === 2n),
            resource,
          };
        });
    });
}

/** Decodes `KeyValue` messages with scalar values. */
function attributesOf(pairs: readonly Buffer[]): Attributes {
  return Object.fromEntries(
    pairs.map((pair) => {
      const keyValue = fieldsOf(pair);
      const key = keyValue.bytes(1).toString();
      const value = fieldsOf(keyValue.bytes(2));
      const [text] = value.all(1);
      if (text !== undefined) return [key, text.toString()];
      if (value.has(2)) return [key, value.number(2) === 1n];
      if (value.has(3)) return [key, Number(BigInt.asIntN(64, value.number(3)))];
      return [key, value.double(4)];
    }),
  );
}

/** The fields of one protobuf message, by number. */
interface Fields {
  has(field: number): boolean;
  /** Returns every occurrence of a length-delimited field. */
  all(field: number): readonly Buffer[];
  /** Returns the last occurrence; empty, the default of proto3, without one. */
  bytes(field: number): Buffer;
  /** Returns a varint or fixed64; 0 without one. */
  number(field: number): bigint;
  /** Returns the same eight bytes as a double. */
  double(field: number): number;
}

function fieldsOf(message: Buffer): Fields {
  const delimited = new Map<number, Buffer[]>();
  const numbers = new Map<number, bigint>();
  let at = 0;
  const varint = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = message.readUInt8(at++);
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  while (at < message.length) {
    const tag = Number(varint());
    const [field, wireType] = [tag >> 3, tag & 7];
    if (wireType === 0) numbers.set(field, varint());
    else if (wireType === 1) {
      numbers.set(field, message.readBigUInt64LE(at));
      at += 8;
    } else if (wireType === 2) {
      const length = Number(varint());
      delimited.set(field, [...(delimited.get(field) ?? []), message.subarray(at, at + length)]);
      at += length;
    } else if (wireType === 5) at += 4;
    else throw new Error(`Wire type ${wireType} at byte ${at}`);
  }
  return {
    has: (field) => delimited.has(field) || numbers.has(field),
    all: (field) => delimited.get(field) ?? [],
    bytes: (field) => delimited.get(field)?.at(-1) ?? Buffer.alloc(0),
    number: (field) => numbers.get(field) ?? 0n,
    double: (field) => new Float64Array(BigUint64Array.of(numbers.get(field) ?? 0n).buffer)[0] ?? 0,
  };
}
