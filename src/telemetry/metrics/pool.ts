import type { Registry } from "prom-client";
import { addLiveGauge, addLiveGauges } from "./live-gauge.ts";

/** The current use of the connections of a process. */
export interface PoolUse {
  readonly active: number;
  readonly idle: number;
  /** Statements that wait for one of the connections of `database.poolSize`. */
  readonly waiting: number;
  /** Limit of the connections that the process opens. */
  readonly limit: number;
}

/** Adds the gauges of a pool, which read its use at each scrape. */
export function addPoolGauges(registry: Registry, use: () => PoolUse): void {
  addLiveGauges({
    registry,
    name: "svc_database_pool_connections",
    help: "Database connections of this process, `active` or `idle`.",
    read() {
      const { active, idle } = use();
      return { active, idle };
    },
  });
  addLiveGauge({
    registry,
    name: "svc_database_pool_waiting",
    help: "Statements that wait for one of the connections of database.poolSize.",
    read: () => use().waiting,
  });
  addLiveGauge({
    registry,
    name: "svc_database_pool_limit",
    help: "Most database connections that this process opens (database.poolSize and those of the relay and the dispatcher).",
    read: () => use().limit,
  });
}
