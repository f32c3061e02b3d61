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
import type { Eligibility } from "../subscriptions/eligibility.ts";
import { isRegistered } from "../subscriptions/service-events.ts";

/** Adds the routes of replays. Returns their worker, which the API runs. */
export function addReplays(
  router: ApiRouter,
  { database, sql, transact, log, isEmbedded }: Infrastructure,
  configuration: Configuration,
  options: Omit<ReplayRoutesOptions, "sql" | "transact" | "isResource" | "onRunning"> &
    Pick<ReplayWorkerOptions, "filters" | "present">,
): ReplayWorker {
  const { config, definitions } = configuration;
  const isResource = (name: string): boolean => isRegistered(definitions, name);
  // Deliveries of a resource without a mapping file stay with the owners. A replay makes new ones,
  // and the rule may have kept the records from their owners.
  const judge: Eligibility["judge"] = async (pairs, which) => {
    const verdicts = await options.eligibility.judge(pairs, which);
    return pairs.map(({ event }, index) => isResource(event.resource) && verdicts[index]);
  };
  const eligibility = { judge };
  const worker = createReplayWorker({
    ...options,
    eligibility,
    sql,
    dataSql: createSql({ pool: database.lists, isEmbedded }),
    store: createReplayStore({ sql, transact }),
    scheduleOf: createScheduleOf(configuration),
    intervalMs: config.webhooks.sweepIntervalMs,
    log,
  });
  addReplayRoutes(router, {
    ...options,
    eligibility,
    sql,
    transact,
    isResource,
    onRunning: () => worker.wake(),
  });
  return worker;
}
