import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect } from "chai";
import { pino } from "pino";
import type { Log } from "../../src/telemetry/log.ts";
import { createSdkTracing } from "../../src/telemetry/tracing-sdk.ts";
import { readTracingSettings, type TracingSettings } from "../../src/telemetry/tracing-settings.ts";
import { formatTraceparent, parseTraceparent, type Span, type Tracing } from "../../src/telemetry/tracing.ts";
import { startCollector, type TestCollector } from "../support/collector.ts";
import { until } from "../support/wait.ts";

type LogLine = Readonly<Record<string, unknown>>;

const parent = { traceId: "0af7651916cd43dd8448eb211c80319c", spanId: "b7ad6b7169203331" };

function spanOf(on: Tracing, given?: { readonly isSampled: boolean }): Span {
  const traceparent = given === undefined ? undefined : formatTraceparent({ ...parent, ...given });
  return on.begin({
    name: "work",
    kind: "client",
    parent: traceparent,
    attributes: { a: 1, b: undefined },
  });
}

describe("createSdkTracing", () => {
  let collector: TestCollector;
  let tracing: Tracing | undefined;
  let lines: LogLine[];
  let log: Log;

  beforeEach(async () => {
    collector = await startCollector();
    lines = [];
    log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line) as LogLine) });
  });

  afterEach(async () => {
    await tracing?.close();
    tracing = undefined;
    await collector.close();
  });

  function warnings(): number {
    return lines.filter(({ event }) => event === "tracing.lost").length;
  }

  /** Sends only when it is closed, unless `env` changes that. */
  function start(env: NodeJS.ProcessEnv = {}): Tracing {
    const faults: string[] = [];
    const settings = readTracingSettings({
      env: { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "60000", ...env },
      program: "api",
      faults,
    });
    expect(faults).to.deep.equal([]);
    return (tracing = createSdkTracing({ settings: settings as TracingSettings, log }));
  }

  it("sends ended spans when it is closed, with their process", async () => {
    const on = start({ OTEL_SERVICE_NAME: "shop", OTEL_RESOURCE_ATTRIBUTES: "team=a" });

    const span = spanOf(on, { isSampled: true });
    span.rename("renamed");
    span.set({ c: true, d: 0.5, e: -3, f: "ž" });
    span.end("timeout");
    await on.close();

    expect(collector.spans).to.have.length(1);
    const [sent] = collector.spans;
    expect(sent).to.deep.include({ traceId: parent.traceId, parentSpanId: parent.spanId, name: "renamed" });
    expect(sent).to.deep.include({ kind: "client", isError: true });
    expect(sent?.attributes).to.deep.equal({ a: 1, c: true, d: 0.5, e: -3, f: "ž", "error.type": "timeout" });
    expect(sent?.resource).to.include({ "service.name": "shop", team: "a", "process.pid": process.pid });
    expect(sent?.resource).to.include.keys("service.version", "service.instance.id", "host.name");
    expect(span.traceparent).to.equal(`00-${parent.traceId}-${sent?.spanId}-01`);
  });

  it("keeps the span current for all awaited work, and for nothing beside it", async () => {
    const on = start();
    const [one, other] = [spanOf(on), spanOf(on)];

    const seen = await Promise.all(
      [one, other].map((span) =>
        on.run(span, async () => {
          await new Promise((resolve) => setImmediate(resolve));
          return on.current();
        }),
      ),
    );

    expect(seen).to.deep.equal([one, other]);
    expect(on.current()).to.equal(undefined);
  });

  const samplers: readonly (readonly [string, "sampled" | "unsampled" | "none", boolean])[] = [
    ["parentbased_always_on", "none", true],
    ["parentbased_always_on", "sampled", true],
    ["parentbased_always_on", "unsampled", false],
    ["parentbased_always_off", "none", false],
    ["parentbased_always_off", "sampled", true],
    ["always_on", "unsampled", true],
    ["always_off", "sampled", false],
    ["traceidratio", "unsampled", true],
    ["parentbased_traceidratio", "none", true],
  ];
  for (const [sampler, given, isRecorded] of samplers) {
    it(`${isRecorded ? "records" : "does not record"} with ${sampler} and ${given === "none" ? "no parent" : `a parent that is ${given}`}`, () => {
      const on = start({ OTEL_TRACES_SAMPLER: sampler });

      const span = spanOf(on, given === "none" ? undefined : { isSampled: given === "sampled" });

      expect(parseTraceparent(span.traceparent)?.isSampled).to.equal(isRecorded);
      expect(span.traceId === undefined).to.equal(!isRecorded);
    });
  }

  it("records the share of traces that the argument says", () => {
    const on = start({ OTEL_TRACES_SAMPLER: "parentbased_traceidratio", OTEL_TRACES_SAMPLER_ARG: "0.25" });

    const recorded = Array.from({ length: 2_000 }, () => spanOf(on)).filter(
      (span) => span.traceId !== undefined,
    );

    expect(recorded.length).to.be.within(350, 650);
  });

  it("begins an unrecorded trace on request, with any sampler", async () => {
    const on = start({ OTEL_TRACES_SAMPLER: "always_on" });

    const [one, other] = [1, 2].map(() => on.begin({ name: "work", kind: "producer", isSampled: false }));

    expect(parseTraceparent(one?.traceparent)?.isSampled).to.equal(false);
    expect(one?.traceparent).not.to.equal(other?.traceparent);
    one?.end();
    await on.close();
    expect(collector.spans).to.deep.equal([]);
  });

  it("warns once when the collector is away, continues, and logs when it is back", async () => {
    collector.status = 400;
    const on = start({ OTEL_BSP_SCHEDULE_DELAY: "10" });

    for (let sent = 1; sent <= 3; sent += 1) {
      spanOf(on).end();
      await until(() => collector.requests.length >= sent, { what: `export ${sent}` });
    }
    await until(() => warnings() > 0, { what: "a warning" });
    collector.status = 200;
    spanOf(on).end();
    const back = await until(() => lines.find(({ event }) => event === "tracing.recovered"), {
      what: "the news",
    });

    expect(warnings()).to.equal(1);
    expect(back["lost"]).to.be.within(2, 3);
    expect(collector.spans.length).to.be.greaterThan(0);
  });

  it("authenticates with OTEL_EXPORTER_OTLP_HEADERS, and logs nothing of it", async () => {
    collector.status = 401;
    process.env["OTEL_EXPORTER_OTLP_HEADERS"] = "authorization=Bearer%20c4n4ry";
    const on = start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url.replace("//", "//user:c4n4ry@") });
    delete process.env["OTEL_EXPORTER_OTLP_HEADERS"];

    spanOf(on).end();
    await on.close();

    expect(collector.requests[0]?.["authorization"]).to.equal("Bearer c4n4ry");
    expect(warnings()).to.equal(1);
    expect(JSON.stringify(lines)).not.to.include("c4n4ry");
  });

  it("gives up when it closes while the collector does not answer, with any number of spans left", async () => {
    const silent = createServer(() => undefined).listen(0, "127.0.0.1");
    await once(silent, "listening");
    // Without a limit of the close, the exporter waits longer than a test may take.
    process.env["OTEL_EXPORTER_OTLP_TIMEOUT"] = "600000";
    try {
      const { port } = silent.address() as AddressInfo;
      const endpoint = `http://127.0.0.1:${port}`;
      const on = start({ OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, OTEL_BSP_EXPORT_TIMEOUT: "600000" });
      for (let count = 0; count < 5_000; count += 1) spanOf(on).end();

      await on.close();
    } finally {
      delete process.env["OTEL_EXPORTER_OTLP_TIMEOUT"];
      silent.close();
      silent.closeAllConnections();
    }
  });
});
