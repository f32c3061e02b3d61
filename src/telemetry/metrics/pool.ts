import type { Registry } from "prom-client";
import { addLiveGauge, addLiveGauges } from "./live-gauge.ts";

/** The connections of a pool at this moment. */
export interface PoolUse {
  readonly active: number;
  readonly idle: number;
  /** Statements that wait for a connection. */
  readonly waiting: number;
  /** Most connections that it opens. */
  readonly limit: number;
}

export interface PoolMetrics {
  /** Where the numbers are asked for, at each scrape. */
  watch(use: () => PoolUse): void;
}

export function createPoolMetrics(registry: Registry): PoolMetrics {
  let use: (() => PoolUse) | undefined;
  addLiveGauges({
    registry,
    name: "svc_database_pool_connections",
    help: "Database connections of this process, `active` or `idle`.",
    label: "state",
    read() {
      if (use === undefined) return {};
      const { active, idle } = use();
      return { active, idle };
    },
  });
  addLiveGauge({
    registry,
    name: "svc_database_pool_waiting",
    help: "Statements that wait for a connection.",
    read: () => use?.().waiting,
  });
  addLiveGauge({
    registry,
    name: "svc_database_pool_limit",
    help: "Most database connections that this process opens (database.poolSize).",
    read: () => use?.().limit,
  });
  return {
    watch(ask) {
      use = ask;
    },
  };
}
