import type { Pool } from "pg";
import { version } from "../kit/version.ts";
import type { Config } from "../config/load.ts";
import type { JwtSettings } from "../config/jwt-settings.ts";
import { serviceActor } from "../kit/actor.ts";
import type { Definitions } from "../mapping/definition.ts";
import { serviceResource } from "../events/event.ts";
import { isAdminFor } from "../resources/access.ts";
import type { Log } from "../telemetry/log.ts";
import type { Configuration } from "./configuration.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { createDeliveryHistory } from "../deliveries/history.ts";
import { addTestRoute } from "../deliveries/test-route.ts";
import { createTestDeliveries } from "../deliveries/test-delivery.ts";
import { createDeliverySender } from "./delivery-sender.ts";
import { findSubscription } from "../subscriptions/own-subscriptions.ts";
import { openSigning } from "../subscriptions/signing.ts";
import { addDeliveryRoutes } from "../deliveries/routes.ts";
import { createTargetPolicy, perUser } from "../outbound/targets.ts";
import { createBatchedSql } from "../db/batched-sql.ts";
import { createStatementNames, createTextSql, createTextTransact } from "../db/text-sql.ts";
import { traceComment } from "../db/traceparent.ts";
import { createInTransaction } from "../db/transaction.ts";
import { createIndexSql, createSql, createTransact, type Sql } from "../db/sql.ts";
import { createEventFeed, type EventFeedOptions } from "../events/event-feed.ts";
import { createEventHorizon } from "../events/event-horizon.ts";
import { createEventStreams, type EventStreams, type EventStreamsOptions } from "../events/event-streams.ts";
import { addEventRoutes, type FeedRoutesOptions } from "../events/feed-routes.ts";
import { createOutbox } from "../events/outbox.ts";
import { createEligibility, isCostly } from "../subscriptions/eligibility.ts";
import { createReadRight } from "../deliveries/read-right.ts";
import { createRelayShares } from "../events/relay-shares.ts";
import { createRelay, type Relay } from "../events/relay.ts";
import { addReplays } from "./replays.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createApp } from "../http/app.ts";
import { createConsole, type ConsolePages } from "../http/console.ts";
import { createFailureLimit } from "../http/failure-limit.ts";
import { defaultMemoryBudget } from "../http/memory-budget.ts";
import { guardRoutes } from "../http/scope-check.ts";
import { createRouter, type ApiContext, type ApiRouter } from "../http/state.ts";
import { createAnswerPost } from "../http/idempotency.ts";
import { createExpiry } from "../http/idempotency-keys.ts";
import { createUrlOf } from "../http/url-of.ts";
import { createEventPresenter } from "../events/event-presenter.ts";
import { createDocument } from "../openapi/document.ts";
import { addOpenApiRoutes } from "../openapi/routes.ts";
import { createAccessConditions } from "../resources/access.ts";
import { refusalOfWebhook } from "../resources/silent-webhooks.ts";
import { addResourceRoutes } from "../resources/routes.ts";
import type { RecordDatabase } from "../resources/store.ts";
import type { Assembly } from "./workers.ts";
import { createWebhookFilters } from "../subscriptions/filters.ts";
import { addSubscriptionRoutes } from "../subscriptions/routes.ts";
import { createTurns } from "../kit/turns.ts";
import { eventsOf, isService, refusalOfService, withServiceEvents } from "../subscriptions/service-events.ts";
import { createSubscriptionStore } from "../subscriptions/store.ts";
import { createAuthenticate, createRecheck, type Identifier } from "../users/authenticate.ts";
import { createFetchJson } from "../users/fetch-json.ts";
import { createJwtVerifier } from "../users/jwt.ts";
import { createJwtIdentifier } from "../users/jwt-users.ts";
import { createKeySource } from "../users/key-set.ts";
import { createUserStore, type UserStore } from "../users/store.ts";
import type { TokenProvider } from "../users/provider.ts";
import { addTokenRoutes, addUserRoutes, addWhoamiRoute } from "../users/routes.ts";

/**
 * Creates what `svc api` runs on one configuration: the REST API, and the relay that publishes
 * captured events. Starts nothing, so that a reload can still be refused.
 */
export function createApi({
  infrastructure,
  configuration,
  tokens,
}: {
  readonly infrastructure: Infrastructure;
  readonly configuration: Configuration;
  readonly tokens: TokenProvider;
}): Assembly {
  const { log, metrics, tracing, database, sql, cursors, secretBox, isEmbedded } = infrastructure;
  const { config, definitions, models } = configuration;
  const { bodyLimitBytes, maxPerPage, routePrefix } = config.http;
  const lists = { maxPerPage, cursors };
  const listTurns = createTurns(halfOf(database.lists));
  const resourceTurns = {
    records: createTurns<string>(mostOf(database.pool)),
    lists: createTurns<string>(mostOf(database.lists)),
  };
  const names = createStatementNames(isEmbedded);
  const relay = createRelayOf(infrastructure, configuration, names);
  const listSql = createIndexSql(database.lists);
  const policyFor = perUser(config.webhooks, createTargetPolicy);
  const transact = createTransact(database.pool);
  /** What every route with a POST takes. */
  const posts = {
    bodyLimitBytes,
    urlOf: createUrlOf(config.http),
    inTransaction: createInTransaction(database.pool, names),
    answerPost: createAnswerPost({ seal: secretBox }),
  };
  const access = createAccessConditions(definitions);
  const eligibility = withServiceEvents(definitions, createEligibility({ definitions, access, sql, log }));
  const router = createRouter(routePrefix);
  addWhoamiRoute(router);
  addResourceRoutes(router, {
    definitions,
    database: createRecordDatabase(infrastructure, models, names),
    ...posts,
    sql,
    ...lists,
    listTurns,
    resourceTurns,
    batchTurns: { users: createTurns(1), all: createTurns<string>(halfOf(database.pool)) },
    access,
    onChange() {
      relay.wake();
      streams.wake();
    },
  });
  const webhookFilters = createWebhookFilters({ definitions, log });
  addSubscriptionRoutes(router, {
    store: createSubscriptionStore({ ...database, ...config.webhooks, sql, transact, listSql, secretBox }),
    ...posts,
    ...lists,
    triggersOf: (resource) => eventsOf(definitions, resource),
    filterFaults: (filter, of) => webhookFilters.faultsOf(filter, of),
    refusalOfUrl: (url, caller) => policyFor(caller).refusalOfUrl(url),
    refusalOfResource: (name, caller) =>
      isService(definitions, name)
        ? refusalOfService(caller)
        : refusalOfWebhook(definitions.get(name), definitions, caller),
  });
  const sender = createDeliverySender(config.webhooks);
  addTestRoute(router, {
    tests: createTestDeliveries({
      sql,
      send: (post, user) => sender.send(post, user),
      openSigning: (sealed) => openSigning(secretBox, sealed, Date.now()),
      now: () => performance.now(),
    }),
    isOwn: async (id, userId) => (await findSubscription(sql, id, userId)) !== undefined,
    bodyLimitBytes,
  });
  addDeliveryRoutes(router, {
    history: createDeliveryHistory({ sql, listSql, transact, tracing }),
    ...posts,
    ...lists,
    listTurns,
    manualRetryLimit: config.webhooks.manualRetryLimit,
    readRight: createReadRight({ sql, eligibility }),
  });

  const replayed = { ...posts, listTurns, eligibility, filters: webhookFilters, names };
  const replays = addReplays(router, { infrastructure, configuration }, replayed);
  const users = createUserStore({ ...database, actor: serviceActor("api") });
  const jwts = createJwts(config.auth.jwt, { users, sql, log });
  const streams = addEvents(router, infrastructure, configuration, {
    judge: (pairs) => eligibility.judge(pairs),
    recheck: createRecheck({ tokens, jwts }),
    registered: [...definitions.keys()],
    maxPerPage,
    listTurns,
    urlOf: posts.urlOf,
  });
  const userOptions = {
    users,
    tokens,
    resources: [...definitions.keys()],
    issuer: config.auth.jwt?.issuer,
    maxPerPage,
    ...posts,
  };
  addTokenRoutes(router, userOptions);
  addUserRoutes(router, userOptions);
  const openRouter = createRouter(routePrefix);
  const makeDocument = (): unknown => createDocument(configuration);
  addOpenApiRoutes({ audience: config.http.openApi, router, openRouter, makeDocument });
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
      jwts,
      failures: createFailureLimit(config.http.authFailureLimit),
    }),
    router,
    openRouter,
    consolePages: createConsoleOf(config),
    userTurns: { atWork: halfOf(database.pool), limit: config.http.concurrencyPerUser },
    memoryBudgetBytes: config.http.memoryBudgetBytes ?? defaultMemoryBudget(bodyLimitBytes),
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  const expiry = createExpiry({ sql: createIndexSql(database.pool), log });
  return {
    workers: [relay, expiry, streams, replays],
    listener: app.callback(),
    close: () => sender.close(),
  };
}

/** Adds the routes of events. Returns their streams, which a worker of the API feeds. */
function addEvents(
  router: ApiRouter,
  { database, isEmbedded }: Infrastructure,
  { definitions, models }: Configuration,
  options: Omit<FeedRoutesOptions, "feed" | "streams"> &
    Pick<EventFeedOptions, "judge"> &
    Pick<EventStreamsOptions, "recheck">,
): EventStreams {
  const sql = createSql({ pool: database.lists, isEmbedded });
  const horizon = createEventHorizon({ sql });
  const present = createEventPresenter({
    definitions,
    delegateOf: (model) => models.listDelegate(model),
    sql: createTextSql(database.lists, createStatementNames(isEmbedded)),
  });
  const feed = createEventFeed({ ...options, sql, horizon, present });
  const streams = createEventStreams({ ...options, feed, horizon });
  addEventRoutes(router, { ...options, feed, streams });
  return streams;
}

function createRecordDatabase(
  { metrics, tracing, database: { pool, lists } }: Infrastructure,
  models: Configuration["models"],
  names: (text: string) => string | undefined,
): RecordDatabase {
  return {
    records: createTextSql(pool, names),
    reads: createBatchedSql(pool, names),
    lists: createTextSql(lists, names),
    transact: createTextTransact(pool, names),
    models,
    onFallback: (resource) => metrics.querying.leftToPrisma(resource),
    comment: () => traceComment(tracing),
  };
}

function createRelayOf(
  { log, metrics, tracing, database, broker, seal, isEmbedded }: Infrastructure,
  { config, definitions, models }: Configuration,
  names: (text: string) => string | undefined,
): Relay {
  const sql = createSql({ pool: database.relay, isEmbedded });
  return createRelay({
    outbox: createOutbox({ sql }),
    shares: createRelayShares({ sql, name: database.name }),
    resources: [...new Set([...definitions.keys(), serviceResource])],
    costly: [...definitions.values()].filter(isCostly).map(({ name }) => name),
    present: createEventPresenter({
      definitions,
      delegateOf: (model) => models.relayDelegate(model),
      sql: createTextSql(database.relay, names),
    }),
    broker,
    seal,
    log,
    metrics: metrics.events,
    tracing,
    pollIntervalMs: config.relay.pollIntervalMs,
    batchSize: config.relay.batchSize,
    requeueAfterMs: config.webhooks.requeueAfterMs,
  });
}

/** Undefined: the console is off. */
function createConsoleOf({ console: settings, http, auth: { jwt } }: Config): ConsolePages | undefined {
  if (!settings.enabled) return undefined;
  const { issuer, clientId, audience } = jwt ?? {};
  const canSignIn = issuer !== undefined && clientId !== undefined;
  return createConsole({
    basePath: settings.path,
    apiPath: http.routePrefix,
    docsPath: http.openApi === "off" ? undefined : `${http.routePrefix}/docs`,
    jwt: canSignIn ? { issuer, clientId, audience: audience?.[0] } : undefined,
    version,
  });
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

/**
 * Returns whether the caller's user, with another token, would be an admin of a resource. A rule
 * that throws counts as yes.
 */
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

/** Returns the connections that one resource may use. */
function mostOf(pool: Pool): number {
  return Math.max(1, Math.floor((pool.options.max * 3) / 4));
}

/** Returns the connections that one user may use. */
function halfOf(pool: Pool): number {
  return Math.max(1, Math.floor(pool.options.max / 2));
}
