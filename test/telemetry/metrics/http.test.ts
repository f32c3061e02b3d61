import { expect } from "chai";
import { Registry } from "prom-client";
import { createHttpMetrics, type HttpMetrics } from "../../../src/telemetry/metrics/http.ts";
import { parseMetrics, valueOf } from "../../support/exposition.ts";

describe("createHttpMetrics", () => {
  let registry: Registry;
  let metrics: HttpMetrics;
  const request = { method: "GET", route: "/svc-api/whoami", status: 200, durationMs: 30 };
  const requests = "svc_http_requests_total";

  beforeEach(() => {
    registry = new Registry();
    metrics = createHttpMetrics(registry);
  });

  const value = async (
    name: string,
    labels?: Readonly<Record<string, string>>,
  ): Promise<number | undefined> => valueOf(parseMetrics(await registry.metrics()), name, labels);

  it("counts requests by method, route and status", async () => {
    for (const status of [200, 200, 404]) metrics.ended({ ...request, status });

    expect(await value(requests, { method: "GET", route: request.route, status: "200" })).to.equal(2);
    expect(await value(requests, { status: "404" })).to.equal(1);
  });

  it("puts made-up methods and paths of clients under one label each", async () => {
    for (const method of ["BREW", "PROPFIND"]) metrics.ended({ ...request, method, route: undefined });

    expect(await value(requests, { method: "other", route: "unmatched" })).to.equal(2);
  });

  it("counts refusals before a request, and not as requests in flight", async () => {
    metrics.refused(431);

    expect(await value(requests, { method: "other", route: "unmatched", status: "431" })).to.equal(1);
    expect(await value("svc_http_requests_in_flight")).to.equal(0);
  });

  it("measures in seconds", async () => {
    metrics.ended(request);

    expect(await value("svc_http_request_duration_seconds_sum")).to.equal(0.03);
    expect(await value("svc_http_request_duration_seconds_bucket", { le: "0.025" })).to.equal(0);
    expect(await value("svc_http_request_duration_seconds_bucket", { le: "0.05" })).to.equal(1);
  });

  it("knows how many are in flight", async () => {
    metrics.started();
    metrics.started();
    metrics.ended(request);

    expect(await value("svc_http_requests_in_flight")).to.equal(1);
  });
});
