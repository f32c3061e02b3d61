import { databaseFaultOf } from "./db/prisma-errors.ts";
import { createDeliveryHistory } from "./deliveries/history.ts";
import { addDeliveryRoutes } from "./deliveries/routes.ts";
import { createTargetPolicy } from "./deliveries/targets.ts";
import { createOutbox } from "./events/outbox.ts";
import { createRelay } from "./events/relay.ts";
import type { Foundation } from "./foundation.ts";
import { createApp } from "./http/app.ts";
import { startServer } from "./http/server.ts";
import { createRouter } from "./http/state.ts";
import { createEventPresenter } from "./resources/present.ts";
import { addResourceRoutes } from "./resources/routes.ts";
import { runWorkers, type Running } from "./running.ts";
import { addSubscriptionRoutes } from "./subscriptions/routes.ts";
import { createSubscriptionStore } from "./subscriptions/store.ts";
import { createAuthenticate } from "./users/authenticate.ts";
import { createTokenProvider, type TokenProvider } from "./users/provider.ts";
import { addWhoamiRoute } from "./users/routes.ts";

export interface RunningApi extends Running {
  readonly port: number;
  readonly tokens: TokenProvider;
}

/** `svc api`: serves the REST API, and relays captured events to the broker. */
export async function startApi({
  config,
  log,
  definitions,
  database,
  sql,
  models,
  broker,
  secretBox,
}: Foundation): Promise<RunningApi> {
  const { prisma } = database;
  const { bodyLimitBytes, maxPerPage, publicUrl, routePrefix } = config.http;
  const outbox = createOutbox({ sql });
  // The in-process broker begins empty, so nothing that was believed to be in it is.
  if (config.broker.url === undefined) await outbox.forgetPublished();
  const relay = createRelay({
    outbox,
    present: createEventPresenter({ definitions, models, log }),
    broker,
    log,
    pollIntervalMs: config.relay.pollIntervalMs,
    batchSize: config.relay.batchSize,
    requeueAfterMs: config.webhooks.requeueAfterMs,
  });

  const targets = createTargetPolicy(config.webhooks.allowedNetworks);
  const tokens = createTokenProvider({ prisma, sql, log });
  const router = createRouter(routePrefix);
  addWhoamiRoute(router);
  addResourceRoutes(router, {
    definitions,
    models,
    sql,
    bodyLimitBytes,
    maxPerPage,
    publicUrl,
    onChange: () => relay.wake(),
  });
  addSubscriptionRoutes(router, {
    store: createSubscriptionStore({ prisma, secretBox }),
    bodyLimitBytes,
    triggersOf: (resource) => definitions.get(resource)?.triggers,
    refusalOfUrl: (url) => targets.refusalOfUrl(url),
  });
  addDeliveryRoutes(router, {
    history: createDeliveryHistory({ prisma }),
    maxPerPage,
    publicUrl,
    manualRetryLimit: config.webhooks.manualRetryLimit,
  });

  const app = createApp({
    log,
    routePrefix,
    authenticate: createAuthenticate({ tokens }),
    router,
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  const server = await startServer(app.callback(), { ...config.http, setting: "SVC_PORT" });
  const workers = runWorkers({ workers: [relay], log });
  return {
    port: server.port,
    tokens,
    failed: workers.failed,
    async stop() {
      await server.close();
      await tokens.close();
      await workers.stop();
    },
  };
}
