import type { Pool } from "pg";
import { version } from "../kit/version.ts";
import type { Worker } from "../kit/worker.ts";
import type { Config } from "../config/load.ts";
import type { Definitions } from "../mapping/definition.ts";
import { serviceResource } from "../events/event.ts";
import { queues } from "../broker/topology.ts";
import { createDeliveryHistory } from "../deliveries/history.ts";
import { addOperationRoutes } from "../operations/routes.ts";
import { recordRefusal } from "./configuration-audit.ts";
import type { Configuration, ConfigurationSource } from "./configuration.ts";
import { databaseFaultOf } from "../db/database-fault.ts";
import { createBatchedSql } from "../db/batched-sql.ts";
import type { StatementNames } from "../db/statement-name.ts";
import { createTextSql } from "../db/text-sql.ts";
import { traceComment } from "../db/traceparent.ts";
import { createInTransaction, type InTransaction } from "../db/transaction.ts";
import { createIndexSql, createSql, type Sql } from "../db/sql.ts";
import { createOutbox } from "../events/outbox.ts";
import { isCostly } from "../subscriptions/eligibility.ts";
import { createRelayShares } from "../events/relay-shares.ts";
import { createRelay } from "../events/relay.ts";
import { addEvents } from "./api-events.ts";
import { addUsers } from "./api-users.ts";
import { addWebhooks } from "./api-webhooks.ts";
import { addReplays } from "./api-replays.ts";
import { createEligibilityOf } from "./eligibility.ts";
import { namesOf } from "./statement-names.ts";
import { halfOf, type Infrastructure } from "./infrastructure.ts";
import { createApp } from "../http/app.ts";
import { createConsole, type ConsolePages } from "../http/console.ts";
import { createFailureLimit } from "../http/failure-limit.ts";
import type { Listener } from "../http/in-order.ts";
import { defaultMemoryBudget } from "../http/memory-budget.ts";
import { guardParameters } from "../http/parameter-check.ts";
import { guardRoutes } from "../http/scope-check.ts";
import { createRouter, type ApiContext, type ApiRouter } from "../http/state.ts";
import { createAnswerPost } from "../http/idempotency.ts";
import { createExpiry } from "../http/idempotency-keys.ts";
import { createUrlOf } from "../http/url-of.ts";
import { createEventPresenter, isShownAsCaptured } from "../events/event-presenter.ts";
import { createDocument } from "../openapi/document.ts";
import { addOpenApiRoutes } from "../openapi/routes.ts";
import { createAccessConditions, isAdminFor } from "../resources/access.ts";
import type { OwnListOptions } from "../querying/own-list.ts";
import { createListDatabase } from "../resources/list-database.ts";
import { addResourceRoutes } from "../resources/routes.ts";
import type { RecordDatabase } from "../resources/record-database.ts";
import type { BatchTurns } from "../resources/record-routes.ts";
import { createRecordTurns, type RecordTurns } from "../resources/store-turns.ts";
import type { Assembly } from "./workers.ts";
import { createTurnsOfUsers, type Presence } from "../http/presence.ts";
import { createFairPlaces } from "../kit/fair-places.ts";
import type { Turns } from "../kit/turns.ts";
import { createAuthenticate, createRecheck, type Identifier } from "../users/authenticate.ts";
import type { TokenProvider } from "../users/provider.ts";

/**
 * Creates the parts of `svc api` for one configuration: the REST API, and the relay that publishes
 * captured events. Starts nothing, so that a reload can still be refused.
 */
export function createApi({
  infrastructure,
  configuration,
  tokens,
  source,
}: {
  readonly infrastructure: Infrastructure;
  readonly configuration: Configuration;
  readonly tokens: TokenProvider;
  readonly source: ConfigurationSource;
}): Assembly {
  const { log, database, broker, sql, transact, tracing, isEmbedded, secretBox, presence } = infrastructure;
  const { config, definitions } = configuration;
  const { routePrefix } = config.http;
  const lists = createListOptions(infrastructure, config);
  const relay = createRelayOf(infrastructure, configuration);
  const inTransaction = createInTransaction(database.pool, namesOf(isEmbedded, definitions));
  /** Options of every route with a POST. */
  const posts = { answerPost: createAnswerPost(secretBox, inTransaction) };
  const access = createAccessConditions(definitions);
  // Otherwise eight users whose records take long to judge would keep all requests waiting.
  const eligibility = createEligibilityOf(infrastructure, definitions, { atOnce: halfOf(database.pool) });
  const router = createRouter(routePrefix);
  addResourceRoutes(router, {
    definitions,
    database: createRecordDatabase(infrastructure, configuration, { ...lists, inTransaction }),
    ...posts,
    ...lists,
    inTransaction,
    recordTurns: recordTurnsOf(database.pool),
    batchTurns: createBatchTurns(database.pool, presence),
    access,
    onChange: () => streams.wake(),
  });
  const jwts = addUsers(router, infrastructure, configuration, { tokens, ...lists, ...posts });
  const registered = [...definitions.keys()];
  const { streams, feed, present } = addEvents(router, infrastructure, configuration, {
    judge: (pairs, which) => eligibility.judge(pairs, which),
    recheck: createRecheck(tokens, jwts),
    registered,
    ...lists,
  });
  const history = createDeliveryHistory({ sql, listSql: lists.listSql, transact, tracing });
  const { filters, sender } = addWebhooks(router, infrastructure, configuration, {
    ...posts,
    ...lists,
    history,
    eligibility,
    feed,
    registered,
  });
  const replayed = { ...posts, ...lists, eligibility, filters, present };
  const replays = addReplays(router, infrastructure, configuration, replayed);
  addOperationRoutes(router, {
    ...source,
    ...lists,
    ...posts,
    configuration,
    sql,
    history,
    recordRefusal: (refusal) => recordRefusal({ database, ...refusal }),
    deadDepth: () => broker.depth(queues.dead),
  });
  const openRouter = createRouter(routePrefix);
  const makeDocument = (): unknown => createDocument(configuration);
  addOpenApiRoutes({ audience: config.http.openApi, router, openRouter, makeDocument });
  // The middleware added last runs first.
  guardParameters(router, routePrefix);
  guardRoutes(router, { routePrefix, isAdminSomewhere: (ctx) => isAdminSomewhere(ctx, definitions) });

  const listener = createListener(infrastructure, configuration, { router, openRouter, tokens, jwts });
  const expiry = createExpiry({ sql: createIndexSql(database.pool), log });
  return { workers: [relay, expiry, streams, replays], listener, close: () => sender.close() };
}

/** Creates the options of the lists of all kinds. */
function createListOptions(
  { database: { lists }, cursors, presence }: Infrastructure,
  { http }: Config,
): OwnListOptions & { readonly listSql: Sql } {
  return {
    maxPerPage: http.maxPerPage,
    cursors,
    listTurns: createTurnsOfUsers(halfOf(lists), presence),
    urlOf: createUrlOf(http),
    listSql: createIndexSql(lists),
    listText: createTextSql(lists, () => undefined),
  };
}

function createListener(
  { log, metrics, tracing, concurrencyOf, userTurnsOf, memoryBudgetOf }: Infrastructure,
  { config }: Configuration,
  {
    tokens,
    jwts,
    router,
    openRouter,
  }: {
    readonly tokens: TokenProvider;
    readonly jwts: Identifier | undefined;
    readonly router: ApiRouter;
    readonly openRouter: ApiRouter;
  },
): Listener {
  const { http } = config;
  const failures = createFailureLimit(http.authFailureLimit);
  const app = createApp({
    ...http,
    router,
    openRouter,
    consolePages: createConsoleOf(config),
    log,
    metrics: metrics.http,
    tracing,
    authenticate: createAuthenticate({ tokens, jwts, failures }),
    concurrency: concurrencyOf(http.concurrency),
    userTurns: userTurnsOf(http.concurrencyPerUser),
    memoryBudget: memoryBudgetOf(http.memoryBudgetBytes ?? defaultMemoryBudget(http.bodyLimitBytes)),
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  return app.callback();
}

function createRecordDatabase(
  { metrics, tracing, isEmbedded, database: { pool, lists } }: Infrastructure,
  { definitions, models }: Configuration,
  { listTurns, inTransaction }: { readonly listTurns: Turns; readonly inTransaction: InTransaction },
): RecordDatabase {
  const names = namesOf(isEmbedded, definitions);
  const patient = {
    records: createTextSql(pool, names),
    writes: createBatchedSql<number>({ pool, names, keyOf: String, kind: "writes" }),
    transact: inTransaction,
  };
  return {
    ...patient,
    // The embedded database has no locks to wait for.
    hasty: isEmbedded ? patient : createHasty(pool, names, patient),
    reads: createBatchedSql<undefined>({ pool, names, keyOf: () => "", kind: "reads" })(undefined),
    lists: createListDatabase({ pool: lists, names, users: listTurns, places: listPlacesOf(lists) }),
    models: models.get,
    onFallback: (resource) => metrics.querying.leftToPrisma(resource),
    comment: () => traceComment(tracing),
  };
}

/** Limit of a hasty write's wait for each lock. */
const hastyMs = 50;

function createHasty(
  pool: Pool,
  names: StatementNames,
  { writes }: Pick<RecordDatabase, "writes">,
): RecordDatabase["hasty"] {
  return {
    records: createTextSql(pool, names, hastyMs),
    // Writes that may wait share batches with these: a batch gives up as soon.
    writes: (userId) => writes(userId, hastyMs),
    transact: createInTransaction(pool, names, `SET LOCAL lock_timeout = ${hastyMs}`),
  };
}

function createRelayOf(
  { log, metrics, tracing, database, broker, seal, isEmbedded }: Infrastructure,
  { config, definitions, models }: Configuration,
): Worker {
  const sql = createSql({ pool: database.relay, isEmbedded });
  const shownAsCaptured = [...definitions.values()].filter(isShownAsCaptured).map(({ name }) => name);
  const resources = [...new Set([...definitions.keys(), serviceResource])];
  return createRelay({
    outbox: createOutbox({ sql, shownAsCaptured }),
    notices: database.notices,
    shares: createRelayShares({ sql, name: database.name, resources }),
    resources,
    costly: [...definitions.values()].filter(isCostly).map(({ name }) => name),
    present: createEventPresenter({
      definitions,
      delegateOf: async (model) => (await models.get()).relayDelegate(model),
      sql: createTextSql(database.relay, namesOf(isEmbedded, definitions)),
      log,
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

/** Returns undefined when the console is off. */
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

/**
 * Returns whether the caller's user, with another token, would be an admin of a resource, or get
 * operational events. A rule that throws counts as yes.
 */
function isAdminSomewhere(ctx: ApiContext, definitions: Definitions): boolean {
  if (ctx.state.grant.isOfAdmin) return true;
  const { isLimited: _limited, ...caller } = ctx.state.caller;
  return [...definitions.values()].some((definition) => {
    try {
      return isAdminFor(definition, caller);
    } catch {
      return true;
    }
  });
}

/**
 * Returns the connections that one resource may use, or one user while no other user has a request.
 */
function threeQuartersOf(pool: Pool): number {
  return Math.max(1, Math.floor((pool.options.max * 3) / 4));
}

/**
 * Returns the places of lists. A connection is left to lists that end soon, and another one to
 * longer lists of other resources.
 */
function listPlacesOf(pool: Pool): { readonly ofAll: number; readonly ofEach: number } {
  const { max } = pool.options;
  return { ofAll: Math.max(1, max - 1), ofEach: Math.max(1, Math.min(threeQuartersOf(pool), max - 2)) };
}

function recordTurnsOf(pool: Pool): RecordTurns {
  return createRecordTurns({ places: threeQuartersOf(pool), connections: pool.options.max });
}

/**
 * Creates the turns of batches. A single user leaves one turn to a user who comes later, because a
 * batch may take 30 s.
 */
function createBatchTurns(pool: Pool, presence: Presence): BatchTurns {
  const all = halfOf(pool);
  const users = createTurnsOfUsers(Math.max(1, all - 1), presence);
  return { users, all: createFairPlaces(all), waitMs: 20_000 };
}
