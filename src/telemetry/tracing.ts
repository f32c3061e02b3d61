/** Undefined values are left out. Never secrets, bodies or query strings: spans leave the machine. */
export type Attributes = Readonly<Record<string, string | number | boolean | undefined>>;

export interface SpanStart {
  readonly name: string;
  readonly kind: "server" | "client" | "producer" | "consumer";
  /** The `traceparent` of what this is a part of; undefined begins a trace. */
  readonly parent?: string | undefined;
  /** False: of a trace that nobody records, whatever the sampler would say. */
  readonly isSampled?: false;
  /** The names of the OpenTelemetry semantic conventions, and `svc.*` for what they do not know. */
  readonly attributes?: Attributes;
}

/** One piece of work in a trace. */
export interface Span {
  /**
   * What others continue the trace from, as a W3C `traceparent`. Of the parent when nothing is traced here, so that a
   * trace passes through; undefined when there is neither.
   */
  readonly traceparent: string | undefined;
  /** 32 hexadecimal digits; undefined unless the span is recorded. */
  readonly traceId: string | undefined;
  rename(name: string): void;
  set(attributes: Attributes): void;
  /** @param error The kind of failure, such as `timeout`; undefined when it went well. */
  end(error?: string): void;
}

/** Spans made by hand: one trace leads from a request, or another program's write, to the attempts of its deliveries. */
export interface Tracing {
  readonly isOn: boolean;
  begin(start: SpanStart): Span;
  /** Runs work, and all that it awaits, with the span as the current one. */
  run<T>(span: Span, work: () => T): T;
  /** The span that the caller runs in, recorded or not; undefined when there is none. */
  current(): Span | undefined;
  /** Sends what is left, within 3 s. */
  close(): Promise<void>;
}

/** Traces nothing, and passes on what others trace. Costs some 30 ns a span. */
export const noTracing: Tracing = {
  isOn: false,
  begin: ({ parent }) => (parent === undefined ? noSpan : { ...noSpan, traceparent: parent }),
  run: (_span, work) => work(),
  current: () => undefined,
  close: () => Promise.resolve(),
};

const noSpan: Span = {
  traceparent: undefined,
  traceId: undefined,
  rename() {},
  set() {},
  end() {},
};

/**
 * Stands in a statement for the traceparent of a span that is not recorded: one text for all, since a statement that is new every time
 * is parsed and planned every time. No trace has this id.
 */
export const unsampledTraceparent = `00-${"f".repeat(32)}-${"f".repeat(16)}-00`;

export interface Traceparent {
  readonly traceId: string;
  readonly spanId: string;
  readonly isSampled: boolean;
}

/** Reads a `traceparent` (W3C Trace Context, level 1) from wherever it came; undefined when it is none. */
export function parseTraceparent(given: unknown): Traceparent | undefined {
  if (typeof given !== "string") return undefined;
  const [, version, traceId, spanId, flags, rest] =
    /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/.exec(given) ??
    [];
  // A later version may say more at the end, this one not.
  if (traceId === undefined || spanId === undefined || (version === "00" && rest !== undefined))
    return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags ?? "", 16) & 1) === 1 };
}

/** The `traceparent` of version 00. */
export function formatTraceparent({ traceId, spanId, isSampled }: Traceparent): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The `traceparent` among the headers of a request or a message, in the form of version 00; undefined when it has none. */
export function traceparentOf(headers: Readonly<Record<string, unknown>>): string | undefined {
  const given = parseTraceparent(headers["traceparent"]);
  return given === undefined ? undefined : formatTraceparent(given);
}

/** The id of the trace that something is recorded in; undefined when it is not. */
export function recordedTraceOf(traceparent: string | null): string | undefined {
  const given = parseTraceparent(traceparent);
  return given?.isSampled === true ? given.traceId : undefined;
}
