import { readFileSync } from "node:fs";
import { parseUrl } from "../kit/parse-url.ts";

const samplers = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;
type SamplerName = (typeof samplers)[number];

/**
 * Settings of tracing: the collector and the selection of traces. The exporter itself reads
 * `OTEL_EXPORTER_OTLP_HEADERS`, `_TIMEOUT`, `_COMPRESSION` and the certificates. The headers are
 * secrets, which are only checked here.
 */
export interface TracingSettings {
  /** URL of the collector, which accepts OTLP over HTTP, in protobuf. */
  readonly url: string;
  readonly sampler: { readonly name: SamplerName; readonly ratio: number };
  /** Attributes of the resource, `service.name` among them. */
  readonly resource: Readonly<Record<string, string>>;
  readonly batch: {
    /** Limit of the spans that wait to be sent; more are dropped. */
    readonly maxQueueSize: number;
    readonly maxExportBatchSize: number;
    readonly scheduledDelayMillis: number;
    readonly exportTimeoutMillis: number;
  };
}

/**
 * Reads the variables of the OpenTelemetry specification. A bad value is a fault, as for every
 * setting; the SDK would only warn, and traces would be missing.
 *
 * @param program Names the service, unless a variable does.
 * @param faults The list to which faults are added, without the values.
 * @returns Undefined when tracing is off, as it is without an endpoint.
 */
export function readTracingSettings({
  env,
  program,
  faults,
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly program: string;
  readonly faults: string[];
}): TracingSettings | undefined {
  const read = <T>(
    variable: string,
    expected: string,
    parse: (text: string) => T | undefined,
  ): T | undefined => {
    const text = env[variable]?.trim();
    if (!text) return undefined;
    const value = parse(text);
    if (value === undefined) faults.push(`${variable}: expected ${expected}`);
    return value;
  };
  const word = <const T extends string>(variable: string, ...words: readonly T[]): T | undefined =>
    read(variable, `one of ${words.join(", ")}`, (text) =>
      words.find((known) => known === text.toLowerCase()),
    );
  const count = (variable: string): number | undefined =>
    read(variable, "a whole number above 0", (text) =>
      /^[1-9]\d{0,8}$/.test(text) ? Number(text) : undefined,
    );

  if (word("OTEL_SDK_DISABLED", "true", "false") === "true") return undefined;
  if (word("OTEL_TRACES_EXPORTER", "otlp", "none") === "none") return undefined;
  const url =
    read("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", webUrl, (text) => urlOf(text)) ??
    read("OTEL_EXPORTER_OTLP_ENDPOINT", webUrl, (text) => urlOf(text, "v1/traces"));
  if (url === undefined) return undefined;
  const ofTraces = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL";
  word(env[ofTraces] ? ofTraces : "OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf");

  for (const signal of ["", "TRACES_"]) {
    const name = `OTEL_EXPORTER_OTLP_${signal}`;
    count(`${name}TIMEOUT`);
    // The exporter accepts these words in lower case only.
    read(`${name}COMPRESSION`, "gzip or none", (text) => (/^(gzip|none)$/.test(text) ? text : undefined));
    read(`${name}HEADERS`, "a list such as key1=value1,key2=value2", headersOf);
    for (const file of ["CERTIFICATE", "CLIENT_KEY", "CLIENT_CERTIFICATE"])
      read(`${name}${file}`, "the path of a file that can be read", contentOf);
  }

  const maxQueueSize = count("OTEL_BSP_MAX_QUEUE_SIZE") ?? 2048;
  const name = read("OTEL_SERVICE_NAME", "a name", (text) => text);
  return {
    url,
    sampler: {
      name: word("OTEL_TRACES_SAMPLER", ...samplers) ?? "parentbased_always_on",
      ratio: read("OTEL_TRACES_SAMPLER_ARG", "a number from 0 to 1", ratioOf) ?? 1,
    },
    resource: {
      "service.name": program === "all" ? "svc" : `svc-${program}`,
      ...read(
        "OTEL_RESOURCE_ATTRIBUTES",
        "a list such as key1=value1,key2=value2, percent-encoded",
        attributesOf,
      ),
      ...(name === undefined ? {} : { "service.name": name }),
    },
    batch: {
      maxQueueSize,
      maxExportBatchSize: Math.min(count("OTEL_BSP_MAX_EXPORT_BATCH_SIZE") ?? 512, maxQueueSize),
      scheduledDelayMillis: count("OTEL_BSP_SCHEDULE_DELAY") ?? 5_000,
      exportTimeoutMillis: count("OTEL_BSP_EXPORT_TIMEOUT") ?? 30_000,
    },
  };
}

const webUrl = "a URL that begins with http:// or https://";

function urlOf(text: string, path = ""): string | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  const whole = path === "" || text.endsWith("/") ? text + path : `${text}/${path}`;
  return parseUrl(whole) === undefined ? undefined : whole;
}

function headersOf(text: string): string | undefined {
  return text.split(",").every((pair) => /^\s*[^=\s][^=]*=|^\s*$/.test(pair)) ? text : undefined;
}

function contentOf(path: string): string | undefined {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return undefined;
  }
}

function ratioOf(text: string): number | undefined {
  return /^(0|1|[01]?\.\d+)$/.test(text) && Number(text) <= 1 ? Number(text) : undefined;
}

function attributesOf(text: string): Readonly<Record<string, string>> | undefined {
  try {
    const pairs = text
      .split(",")
      .filter((pair) => pair.trim() !== "")
      .map((pair) => pair.split("=").map((part) => decodeURIComponent(part.trim())));
    const isFine = pairs.every((pair) => pair.length === 2 && pair[0] !== "");
    return isFine ? (Object.fromEntries(pairs) as Record<string, string>) : undefined;
  } catch {
    return undefined;
  }
}
