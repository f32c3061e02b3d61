import { Counter, Gauge, type Registry } from "prom-client";

/**
 * Creates the gauges. The configuration of the start counts as in use, because no process runs
 * without one.
 */
export function createConfigurationMetrics(registry: Registry) {
  const registers = [registry];
  const isGood = new Gauge({
    name: "svc_configuration_reload_success",
    help: "1 when the configuration that was read last is in use, 0 when it was refused and the one before stays.",
    registers,
  });
  const readAt = new Gauge({
    name: "svc_configuration_last_reload_success_timestamp_seconds",
    help: "Unix time at which the configuration in use was read.",
    registers,
  });
  const reloads = new Counter({
    name: "svc_configuration_reloads_total",
    help: "Times that the configuration was read again, by outcome.",
    labelNames: ["outcome"] as const,
    registers,
  });
  isGood.set(1);
  readAt.setToCurrentTime();
  for (const outcome of ["applied", "refused"]) reloads.inc({ outcome }, 0);
  return {
    /** Counts a reload: applied, or refused while the previous configuration stays in use. */
    reloaded(isApplied: boolean): void {
      isGood.set(isApplied ? 1 : 0);
      if (isApplied) readAt.setToCurrentTime();
      reloads.inc({ outcome: isApplied ? "applied" : "refused" });
    },
  };
}
