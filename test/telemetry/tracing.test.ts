import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect } from "chai";
import { createLog } from "../../src/telemetry/log.ts";
import { startTracing } from "../../src/telemetry/start-tracing.ts";
import {
  formatTraceparent,
  noTracing,
  parseTraceparent,
  recordedTraceOf,
  traceparentOf,
} from "../../src/telemetry/tracing.ts";

const run = promisify(execFile);

const traceId = "0af7651916cd43dd8448eb211c80319c";
const spanId = "b7ad6b7169203331";
const traceparent = `00-${traceId}-${spanId}-01`;

describe("parseTraceparent", () => {
  const cases: readonly (readonly [string, unknown, boolean | undefined])[] = [
    ["a sampled one", traceparent, true],
    ["one that is not sampled", `00-${traceId}-${spanId}-00`, false],
    ["further flags", `00-${traceId}-${spanId}-03`, true],
    ["a later version", `cc-${traceId}-${spanId}-01`, true],
    ["what a later version adds", `cc-${traceId}-${spanId}-01-what-the-future-brings`, true],
    ["an addition to this version", `${traceparent}-more`, undefined],
    ["the forbidden version", `ff-${traceId}-${spanId}-01`, undefined],
    ["a trace of zeros", `00-${"0".repeat(32)}-${spanId}-01`, undefined],
    ["a span of zeros", `00-${traceId}-${"0".repeat(16)}-01`, undefined],
    ["capitals", traceparent.toUpperCase(), undefined],
    ["a short id", `00-${traceId.slice(1)}-${spanId}-01`, undefined],
    ["no text", undefined, undefined],
    ["a list", [traceparent], undefined],
    ["a line more", `${traceparent}\n`, undefined],
    ["nothing", "", undefined],
  ];
  for (const [what, given, isSampled] of cases) {
    it(`${isSampled === undefined ? "refuses" : "reads"} ${what}`, () => {
      const expected = isSampled === undefined ? undefined : { traceId, spanId, isSampled };

      expect(parseTraceparent(given)).to.deep.equal(expected);
    });
  }
});

describe("formatTraceparent", () => {
  it("writes what parseTraceparent reads", () => {
    expect(formatTraceparent({ traceId, spanId, isSampled: true })).to.equal(traceparent);
    expect(formatTraceparent({ traceId, spanId, isSampled: false })).to.equal(`00-${traceId}-${spanId}-00`);
  });
});

describe("traceparentOf", () => {
  it("rewrites a header of a later version as this one, and keeps an invalid one", () => {
    expect(traceparentOf({ traceparent: `cc-${traceId}-${spanId}-ff-more` })).to.equal(traceparent);
    expect(traceparentOf({ traceparent: "'; DROP TABLE users" })).to.equal(undefined);
    expect(traceparentOf({})).to.equal(undefined);
  });
});

describe("recordedTraceOf", () => {
  it("returns the id of a sampled trace only", () => {
    expect(recordedTraceOf(traceparent)).to.equal(traceId);
    expect(recordedTraceOf(`00-${traceId}-${spanId}-00`)).to.equal(undefined);
    expect(recordedTraceOf(null)).to.equal(undefined);
  });
});

describe("noTracing", () => {
  it("passes on the trace that work is part of, and begins none", () => {
    const start = { name: "work", kind: "client" } as const;

    expect(noTracing.begin({ ...start, parent: traceparent }).traceparent).to.equal(traceparent);
    expect(noTracing.begin(start).traceparent).to.equal(undefined);
  });

  it("runs work without a current span", () => {
    const span = noTracing.begin({ name: "work", kind: "client", parent: traceparent });

    expect(noTracing.run(span, () => noTracing.current())).to.equal(undefined);
  });
});

describe("startTracing", () => {
  it("is noTracing without settings", async () => {
    const tracing = await startTracing(undefined, createLog({ level: "silent" }));

    expect(tracing).to.equal(noTracing);
  });

  for (const isOn of [false, true]) {
    it(`loads ${isOn ? "the OpenTelemetry packages when it is on" : "no OpenTelemetry package when it is off"}`, async () => {
      const env = isOn ? { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" } : {};
      const program = `
        import { createRequire } from "node:module";
        import { loadConfig } from ${JSON.stringify(new URL("../../src/config/load.ts", import.meta.url).href)};
        import { startTracing } from ${JSON.stringify(new URL("../../src/telemetry/start-tracing.ts", import.meta.url).href)};
        // All modules of the programs.
        await import(${JSON.stringify(new URL("../../src/app/service.ts", import.meta.url).href)});
        const { tracing: settings } = loadConfig({ env: ${JSON.stringify(env)}, cwd: process.cwd(), program: "all" });
        await startTracing(settings, undefined);
        const { cache } = createRequire(import.meta.url);
        console.log(Object.keys(cache).join("\\n"));
        process.exit();`;

      const { stdout } = await run(process.execPath, [
        "--import",
        "tsx",
        "--input-type=module",
        "-e",
        program,
      ]);

      const packages = new Set([...stdout.matchAll(/@opentelemetry\/([a-z-]+)/g)].map(([, name]) => name));
      // prom-client loads it for its exemplars; without an SDK it has no effect.
      packages.delete("api");
      if (isOn) expect([...packages]).to.include.members(["sdk-trace", "exporter-trace-otlp-proto"]);
      else expect([...packages]).to.deep.equal([]);
    });
  }
});
