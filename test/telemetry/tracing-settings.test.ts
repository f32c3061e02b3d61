import { expect } from "chai";
import { readTracingSettings, type TracingSettings } from "../../src/telemetry/tracing-settings.ts";

const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://collector:4318" };

function read(
  env: NodeJS.ProcessEnv,
  program = "api",
): { readonly settings: TracingSettings | undefined; readonly faults: readonly string[] } {
  const faults: string[] = [];
  return { settings: readTracingSettings({ env, program, faults }), faults };
}

describe("readTracingSettings", () => {
  const off: Readonly<Record<string, NodeJS.ProcessEnv>> = {
    "no endpoint": { OTEL_SERVICE_NAME: "shop", OTEL_TRACES_SAMPLER: "always_on" },
    "an empty endpoint": { OTEL_EXPORTER_OTLP_ENDPOINT: " " },
    OTEL_SDK_DISABLED: { ...endpoint, OTEL_SDK_DISABLED: "TRUE" },
    "another exporter than OTLP": { ...endpoint, OTEL_TRACES_EXPORTER: "none" },
  };
  for (const [what, env] of Object.entries(off)) {
    it(`is off with ${what}`, () => {
      expect(read(env)).to.deep.equal({ settings: undefined, faults: [] });
    });
  }

  it("has the specification's defaults, and a name for each program", () => {
    expect(read(endpoint)).to.deep.equal({
      faults: [],
      settings: {
        url: "http://collector:4318/v1/traces",
        sampler: { name: "parentbased_always_on", ratio: 1 },
        resource: { "service.name": "svc-api" },
        batch: {
          maxQueueSize: 2048,
          maxExportBatchSize: 512,
          scheduledDelayMillis: 5_000,
          exportTimeoutMillis: 30_000,
        },
      },
    });
    expect(read(endpoint, "all").settings?.resource).to.deep.equal({ "service.name": "svc" });
  });

  const urls: readonly (readonly [NodeJS.ProcessEnv, string])[] = [
    [{ OTEL_EXPORTER_OTLP_ENDPOINT: "https://c.example/otlp/" }, "https://c.example/otlp/v1/traces"],
    [{ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c.example/mine" }, "http://c.example/mine"],
    [{ ...endpoint, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://c.example/mine" }, "http://c.example/mine"],
  ];
  for (const [env, url] of urls) {
    it(`sends to ${url} with ${Object.values(env).join(" and ")}`, () => {
      expect(read(env).settings?.url).to.equal(url);
    });
  }

  it("reads the sampler, the batches and the resource, whose name is OTEL_SERVICE_NAME", () => {
    const { settings, faults } = read({
      ...endpoint,
      OTEL_TRACES_SAMPLER: "parentbased_traceidratio",
      OTEL_TRACES_SAMPLER_ARG: "0.05",
      OTEL_BSP_MAX_QUEUE_SIZE: "100",
      OTEL_BSP_SCHEDULE_DELAY: "250",
      OTEL_RESOURCE_ATTRIBUTES: "service.name=lost, deployment.environment.name=staging,team=a%2Cb",
      OTEL_SERVICE_NAME: "shop",
    });

    expect(faults).to.deep.equal([]);
    expect(settings?.sampler).to.deep.equal({ name: "parentbased_traceidratio", ratio: 0.05 });
    expect(settings?.batch).to.include({
      maxQueueSize: 100,
      maxExportBatchSize: 100,
      scheduledDelayMillis: 250,
    });
    expect(settings?.resource).to.deep.equal({
      "service.name": "shop",
      "deployment.environment.name": "staging",
      team: "a,b",
    });
  });

  const faulty: Readonly<Record<string, string>> = {
    OTEL_EXPORTER_OTLP_ENDPOINT: "collector:4318",
    OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "grpc://collector:4317",
    OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
    OTEL_EXPORTER_OTLP_TIMEOUT: "5s",
    OTEL_EXPORTER_OTLP_COMPRESSION: "GZIP",
    OTEL_EXPORTER_OTLP_HEADERS: "c4n4ry",
    OTEL_EXPORTER_OTLP_CERTIFICATE: "/nowhere/ca.pem",
    OTEL_EXPORTER_OTLP_TRACES_CLIENT_KEY: "/nowhere/key.pem",
    OTEL_SDK_DISABLED: "yes",
    OTEL_TRACES_EXPORTER: "zipkin",
    OTEL_TRACES_SAMPLER: "sometimes",
    OTEL_TRACES_SAMPLER_ARG: "1.5",
    OTEL_RESOURCE_ATTRIBUTES: "team",
    OTEL_BSP_MAX_QUEUE_SIZE: "-1",
    OTEL_BSP_SCHEDULE_DELAY: "5s",
  };
  for (const [variable, value] of Object.entries(faulty)) {
    it(`refuses ${variable}=${value}, without showing the value`, () => {
      const { faults } = read({ ...endpoint, [variable]: value });

      expect(faults).to.have.length(1);
      expect(faults[0])
        .to.match(new RegExp(`^${variable}: expected `))
        .and.not.include(value);
    });
  }

  it("accepts headers whose values have an equals sign, and a readable certificate", () => {
    const { faults } = read({
      ...endpoint,
      OTEL_EXPORTER_OTLP_HEADERS: "authorization=Basic YTpi==, x-team=a",
      OTEL_EXPORTER_OTLP_CERTIFICATE: import.meta.filename,
      OTEL_EXPORTER_OTLP_COMPRESSION: "gzip",
    });

    expect(faults).to.deep.equal([]);
  });

  it("prefers the protocol of traces to that of all signals", () => {
    const { faults } = read({
      ...endpoint,
      OTEL_EXPORTER_OTLP_PROTOCOL: "grpc",
      OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
    });

    expect(faults).to.deep.equal([]);
  });
});
