import type { Configuration } from "./configuration.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createScheduleOf } from "./schedules.ts";
import { createSql } from "../db/sql.ts";
import { createTextSql } from "../db/text-sql.ts";
import { createReplayStore } from "../deliveries/replay/replay-store.ts";
import { createReplayWorker, type ReplayWorker } from "../deliveries/replay/replay-worker.ts";
import { addReplayRoutes, type ReplayRoutesOptions } from "../deliveries/replay/routes.ts";
import { createEventPresenter } from "../events/event-presenter.ts";
import type { ApiRouter } from "../http/state.ts";
import type { WebhookFilters } from "../subscriptions/filters.ts";
import { isService } from "../subscriptions/service-events.ts";

/**
 * Adds the routes of replays. Returns their worker, which the API runs. It presents events that had
 * no delivery as the relay does.
 */
export function addReplays(
  router: ApiRouter,
  {
    infrastructure,
    configuration,
  }: { readonly infrastructure: Infrastructure; readonly configuration: Configuration },
  options: Omit<ReplayRoutesOptions, "sql" | "transact" | "isResource" | "onRunning"> & {
    readonly filters: Pick<WebhookFilters, "passing">;
  },
): ReplayWorker {
  const { database, sql, transact, log, isEmbedded, namesOf } = infrastructure;
  const { config, definitions, models } = configuration;
  const worker = createReplayWorker({
    ...options,
    sql,
    dataSql: createSql({ pool: database.lists, isEmbedded }),
    store: createReplayStore({ sql, transact }),
    scheduleOf: createScheduleOf(configuration),
    present: createEventPresenter({
      definitions,
      delegateOf: (model) => models.listDelegate(model),
      sql: createTextSql(database.lists, namesOf(definitions, "lists")),
    }),
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
