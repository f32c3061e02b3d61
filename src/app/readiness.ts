import type { Config } from "../config/load.ts";
import { createHealthListener, type HealthCheck } from "../http/health.ts";
import { startServer, type HttpServer } from "../http/server.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** The parts that `/readyz` checks, in its order. */
type Part = "configuration" | "database" | "migrations" | "broker" | "shutdown";

/** Readiness of a process, from its start on. */
export interface Readiness {
  readonly checks: Readonly<Record<Part, HealthCheck>>;
  /** Marks a part as not ready, since the start waits for it. */
  waitsFor(part: Part, reason: string): void;
  /** Sets the check of a part. */
  watch(part: Part, check: HealthCheck): void;
}

function failing(reason: string): HealthCheck {
  return () => Promise.reject(new Error(reason));
}

/** Creates the readiness of a process that is starting. */
export function createReadiness(): Readiness {
  const current: Record<Part, HealthCheck> = {
    configuration: failing("the program is starting"),
    database: failing("waiting for it"),
    migrations: failing("waiting for the database"),
    broker: failing("waiting for it"),
    shutdown: () => Promise.resolve(undefined),
  };
  const watch: Readiness["watch"] = (part, check) => void (current[part] = check);
  const parts = Object.keys(current) as Part[];
  return {
    checks: Object.fromEntries(parts.map((part) => [part, () => current[part]()])) as typeof current,
    waitsFor: (part, reason) => watch(part, failing(`waiting for it: ${reason}`)),
    watch,
  };
}

/**
 * Serves `/livez`, `/readyz` and `/metrics` on the metrics port, the only paths without a token.
 * Needs neither database nor broker.
 */
export async function startHealth(
  config: Config,
  metrics: Metrics,
  readiness: Readiness,
): Promise<HttpServer> {
  return startServer(createHealthListener(readiness.checks, metrics), {
    host: config.metrics.host,
    port: config.metrics.port,
    settings: {
      // By default its host is that of the API.
      host: config.metrics.host === config.http.host ? "SVC_HOST" : "SVC_METRICS_HOST",
      port: "SVC_METRICS_PORT",
    },
  });
}
