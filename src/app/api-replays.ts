import type { Configuration } from "./configuration.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createScheduleOf } from "./schedules.ts";
import { createSql } from "../db/sql.ts";
import { createReplayStore } from "../deliveries/replay/replay-store.ts";
import {
  createReplayWorker,
  type ReplayWorker,
  type ReplayWorkerOptions,
} from "../deliveries/replay/replay-worker.ts";
import { addReplayRoutes, type ReplayRoutesOptions } from "../deliveries/replay/routes.ts";
import type { ApiRouter } from "../http/state.ts";
import { isService } from "../subscriptions/service-events.ts";

/** Adds the routes of replays. Returns their worker, which the API runs. */
export function addReplays(
  router: ApiRouter,
  { database, sql, transact, log, isEmbedded }: Infrastructure,
  configuration: Configuration,
  options: Omit<ReplayRoutesOptions, "sql" | "transact" | "isResource" | "onRunning"> &
    Pick<ReplayWorkerOptions, "filters" | "present">,
): ReplayWorker {
  const { config, definitions } = configuration;
  const worker = createReplayWorker({
    ...options,
    sql,
    dataSql: createSql({ pool: database.lists, isEmbedded }),
    store: createReplayStore({ sql, transact }),
    scheduleOf: createScheduleOf(configuration),
    intervalMs: config.webhooks.sweepIntervalMs,
    log,
  });
  addReplayRoutes(router, {
    ...options,
    sql,
    transact,
    isResource: (name) => definitions.has(name) || isService(definitions, name),
    onRunning: () => worker.wake(),
  });
  return worker;
}
