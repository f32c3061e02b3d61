import type { Pool } from "pg";
import type { JwtSettings } from "../config/jwt-settings.ts";
import { serviceActor } from "../kit/actor.ts";
import type { Definitions } from "../mapping/definition.ts";
import { isAdminFor } from "../resources/access.ts";
import type { Log } from "../telemetry/log.ts";
import type { Configuration } from "./configuration.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { createDeliveryHistory } from "../deliveries/history.ts";
import { addDeliveryRoutes } from "../deliveries/routes.ts";
import { createTargetPolicy, perUser } from "../outbound/targets.ts";
import { createStatementNames, createTextSql, createTextTransact } from "../db/text-sql.ts";
import { traceComment } from "../db/traceparent.ts";
import { createIndexSql, createSql, createTransact, type Sql } from "../db/sql.ts";
import { createOutbox } from "../events/outbox.ts";
import { createRelayShares } from "../events/relay-shares.ts";
import { createRelay } from "../events/relay.ts";
import type { Foundation } from "./infrastructure.ts";
import { createApp } from "../http/app.ts";
import { createFailureLimit } from "../http/failure-limit.ts";
import { defaultMemoryBudget } from "../http/memory-budget.ts";
import { guardRoutes } from "../http/scope-check.ts";
import { createRouter, type ApiContext } from "../http/state.ts";
import { createUrlOf } from "../http/url-of.ts";
import { createEventPresenter } from "../events/present.ts";
import { addResourceRoutes } from "../resources/routes.ts";
import type { Assembly } from "./workers.ts";
import { addSubscriptionRoutes } from "../subscriptions/routes.ts";
import { createTurns } from "../kit/turns.ts";
import { createSubscriptionStore } from "../subscriptions/store.ts";
import { createAuthenticate, type Identifier } from "../users/authenticate.ts";
import { createFetchJson } from "../users/fetch-json.ts";
import { createJwtVerifier } from "../users/jwt.ts";
import { createJwtIdentifier } from "../users/jwt-users.ts";
import { createKeySource } from "../users/key-set.ts";
import { createUserStore, type UserStore } from "../users/store.ts";
import type { TokenProvider } from "../users/provider.ts";
import { addTokenRoutes, addUserRoutes, addWhoamiRoute } from "../users/routes.ts";

/**
 * What `svc api` runs on one configuration: the REST API, and the relay that publishes captured events. Made as a whole before any
 * of it is at work, so that a reload can still be refused.
 */
export function createApi({
  foundation: { log, metrics, tracing, database, sql, broker, seal, cursors, secretBox, isEmbedded },
  configuration: { config, definitions, models },
  tokens,
}: {
  readonly foundation: Foundation;
  readonly configuration: Configuration;
  readonly tokens: TokenProvider;
}): Assembly {
  const { prisma } = database;
  const { bodyLimitBytes, maxPerPage, routePrefix } = config.http;
  const urlOf = createUrlOf(config.http);
  const listTurns = createTurns(halfOf(database.lists));
  const resourceTurns = {
    records: createTurns<string>(mostOf(database.pool)),
    lists: createTurns<string>(mostOf(database.lists)),
  };
  const names = createStatementNames(isEmbedded);
  const relaySql = createSql({ pool: database.relay, isEmbedded });
  const relay = createRelay({
    outbox: createOutbox({ sql: relaySql }),
    shares: createRelayShares({ sql: relaySql, name: database.name }),
    resources: [...definitions.values()].map(({ name }) => name),
    present: createEventPresenter({ definitions, models }),
    broker,
    seal,
    log,
    metrics: metrics.events,
    tracing,
    pollIntervalMs: config.relay.pollIntervalMs,
    batchSize: config.relay.batchSize,
    requeueAfterMs: config.webhooks.requeueAfterMs,
  });

  const policyFor = perUser(config.webhooks, createTargetPolicy);
  const router = createRouter(routePrefix);
  addWhoamiRoute(router);
  addResourceRoutes(router, {
    definitions,
    database: {
      records: createTextSql(database.pool, names),
      lists: createTextSql(database.lists, names),
      transact: createTextTransact(database.pool, names),
      models,
      onFallback: (resource) => metrics.querying.leftToPrisma(resource),
      comment: () => traceComment(tracing),
    },
    sql,
    bodyLimitBytes,
    maxPerPage,
    listTurns,
    resourceTurns,
    urlOf,
    cursors,
    onChange: () => relay.wake(),
  });
  addSubscriptionRoutes(router, {
    store: createSubscriptionStore({ prisma, secretBox, maxPerUser: config.webhooks.maxPerUser }),
    bodyLimitBytes,
    triggersOf: (resource) => definitions.get(resource)?.triggers,
    refusalOfUrl: (url, caller) => policyFor(caller).refusalOfUrl(url),
  });
  addDeliveryRoutes(router, {
    history: createDeliveryHistory({
      sql,
      listSql: createIndexSql(database.lists),
      transact: createTransact(database.pool),
      tracing,
    }),
    maxPerPage,
    listTurns,
    urlOf,
    manualRetryLimit: config.webhooks.manualRetryLimit,
  });

  const users = createUserStore({ prisma, actor: serviceActor("api") });
  const userOptions = {
    users,
    tokens,
    resources: [...definitions.keys()],
    issuer: config.auth.jwt?.issuer,
    bodyLimitBytes,
    maxPerPage,
    urlOf,
  };
  addTokenRoutes(router, userOptions);
  addUserRoutes(router, userOptions);
  guardRoutes(router, {
    routePrefix,
    isAdminSomewhere: (ctx) => isAdminSomewhere(ctx, definitions),
  });

  const app = createApp({
    ...config.http,
    log,
    metrics: metrics.http,
    tracing,
    authenticate: createAuthenticate({
      tokens,
      jwts: createJwts(config.auth.jwt, { users, sql, log }),
      failures: createFailureLimit(config.http.authFailureLimit),
    }),
    router,
    userTurns: { atWork: halfOf(database.pool), limit: config.http.concurrencyPerUser },
    memoryBudgetBytes: config.http.memoryBudgetBytes ?? defaultMemoryBudget(bodyLimitBytes),
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  return { workers: [relay], listener: app.callback(), close: () => undefined };
}

/** Undefined: JWTs are not taken. */
function createJwts(
  settings: JwtSettings | undefined,
  { users, sql, log }: { readonly users: UserStore; readonly sql: Sql; readonly log: Log },
): Identifier | undefined {
  if (settings === undefined) return undefined;
  const fetchJson = createFetchJson(settings);
  const keys = createKeySource({ ...settings, fetchJson, log });
  return createJwtIdentifier({ settings, verifier: createJwtVerifier({ ...settings, keys }), users, sql });
}

/** Whether the caller's user, with another token, would be an admin of a resource. A rule that throws counts as yes. */
function isAdminSomewhere(ctx: ApiContext, definitions: Definitions): boolean {
  const { isLimited: _limited, ...caller } = ctx.state.caller;
  return [...definitions.values()].some((definition) => {
    try {
      return isAdminFor(definition, { ...caller, isAdmin: ctx.state.grant.isOfAdmin });
    } catch {
      return true;
    }
  });
}

/** What one resource may have of the connections. */
function mostOf(pool: Pool): number {
  return Math.max(1, Math.floor((pool.options.max * 3) / 4));
}

/** What one user may have of the connections. */
function halfOf(pool: Pool): number {
  return Math.max(1, Math.floor(pool.options.max / 2));
}
