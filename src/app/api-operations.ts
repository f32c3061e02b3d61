import { queues } from "../broker/topology.ts";
import { createDeliveryHistory } from "../deliveries/history.ts";
import type { ApiRouter } from "../http/state.ts";
import { addOperationRoutes, type OperationRoutesOptions } from "../operations/routes.ts";
import { recordRefusal } from "./configuration-audit.ts";
import type { Configuration, ConfigurationSource } from "./configuration.ts";
import type { Infrastructure } from "./infrastructure.ts";

/** Adds the routes for operators: figures, audit trail, configuration and reload. */
export function addOperations(
  router: ApiRouter,
  { broker, database, sql, transact }: Infrastructure,
  configuration: Configuration,
  options: ConfigurationSource &
    Omit<OperationRoutesOptions, "configuration" | "sql" | "history" | "recordRefusal" | "deadDepth">,
): void {
  const { listSql } = options;
  addOperationRoutes(router, {
    ...options,
    configuration,
    sql,
    history: createDeliveryHistory({ sql, listSql, transact }),
    recordRefusal: (refusal) => recordRefusal({ database, ...refusal }),
    deadDepth: () => broker.depth(queues.dead),
  });
}
