import { Counter, Histogram, type Registry } from "prom-client";
import { getOrSet } from "../../kit/group-by.ts";
import { addLiveGauge } from "./live-gauge.ts";

/** Metrics of requests. Looks each series up once, because it is on the hot path. */
export type HttpMetrics = ReturnType<typeof createHttpMetrics>;

/** A request that was answered. */
interface EndedRequest {
  readonly method: string;
  /**
   * The matched pattern, never the path: clients must not decide how many series there are.
   * Undefined when the request was refused before a route was found.
   */
  readonly route: string | undefined;
  readonly status: number;
  readonly durationMs: number;
  /** Whether its user had as many others open as a user may. */
  readonly isOverLimit?: boolean | undefined;
}

const knownMethods = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export function createHttpMetrics(registry: Registry) {
  const registers = [registry];
  const requests = new Counter({
    name: "svc_http_requests_total",
    help: "Requests by method, route pattern and status. Route `unmatched`: no such route, or refused before routing. Status 499: the client left.",
    labelNames: ["method", "route", "status"] as const,
    registers,
  });
  const overLimit = new Counter({
    name: "svc_http_requests_over_limit_total",
    help: "Requests of `svc_http_requests_total` that were answered 503, since their user had `http.concurrencyPerUser` others open.",
    registers,
  });
  const durations = new Histogram({
    name: "svc_http_request_duration_seconds",
    help: "From the head of the request to the end of the answer.",
    labelNames: ["method", "route"] as const,
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    registers,
  });
  let inFlight = 0;
  addLiveGauge({
    registry,
    name: "svc_http_requests_in_flight",
    help: "Requests begun and not answered yet.",
    read: () => inFlight,
  });
  const countOf = new Map<string, Counter.Internal>();
  const durationOf = new Map<string, Histogram.Internal<string>>();

  return {
    started(): void {
      inFlight += 1;
    },
    ended({ method: given, route = "unmatched", status, durationMs, isOverLimit }: EndedRequest): void {
      inFlight -= 1;
      if (isOverLimit === true && status === 503) overLimit.inc();
      const method = knownMethods.has(given) ? given : "other";
      const series = `${method} ${route}`;
      getOrSet(countOf, `${status} ${series}`, () =>
        requests.labels({ method, route, status: String(status) }),
      ).inc();
      getOrSet(durationOf, series, () => durations.labels({ method, route })).observe(durationMs / 1_000);
    },
    /** Counts an answer to a request that did not reach the application. */
    refused(status: number): void {
      requests.labels({ method: "other", route: "unmatched", status: String(status) }).inc();
    },
  };
}
