import type { Config } from "../config/load.ts";
import { createHealthListener, type HealthCheck } from "../http/health.ts";
import { startServer, type HttpServer } from "../http/server.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** What `/readyz` asks about, in the order in which it tells. */
type Part = "configuration" | "database" | "migrations" | "broker" | "shutdown";

/** Whether the process can do its work, from the first moment on. */
export interface Readiness {
  readonly checks: Readonly<Record<Part, HealthCheck>>;
  /** Not ready: the part is still waited for. */
  waitsFor(part: Part, reason: string): void;
  /** From now on the part is as the check says. */
  watch(part: Part, check: HealthCheck): void;
}

function failing(reason: string): HealthCheck {
  return () => Promise.reject(new Error(reason));
}

export function createReadiness(): Readiness {
  const current = new Map<Part, HealthCheck>([
    ["configuration", failing("the program is starting")],
    ["database", failing("waiting for it")],
    ["migrations", failing("waiting for the database")],
    ["broker", failing("waiting for it")],
    ["shutdown", () => Promise.resolve(undefined)],
  ]);
  const checkOf =
    (part: Part): HealthCheck =>
    () =>
      (current.get(part) as HealthCheck)();
  return {
    checks: {
      configuration: checkOf("configuration"),
      database: checkOf("database"),
      migrations: checkOf("migrations"),
      broker: checkOf("broker"),
      shutdown: checkOf("shutdown"),
    },
    waitsFor: (part, reason) => void current.set(part, failing(`waiting for it: ${reason}`)),
    watch: (part, check) => void current.set(part, check),
  };
}

/** `/livez`, `/readyz` and `/metrics` on the metrics port, the only paths that take no token. Needs neither database nor broker. */
export async function startHealth({
  config,
  metrics,
  readiness,
}: {
  readonly config: Config;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
}): Promise<HttpServer> {
  return startServer(createHealthListener({ checks: readiness.checks, metrics }), {
    host: config.metrics.host,
    port: config.metrics.port,
    setting: "SVC_METRICS_PORT",
  });
}
