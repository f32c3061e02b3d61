import { fullGrant, makeCaller } from "../support/callers.ts";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { AppError } from "../../src/kit/errors.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { createApp } from "../../src/http/app.ts";
import type { MemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiMiddleware } from "../../src/http/state.ts";
import { createUrlOf } from "../../src/http/url-of.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { addResourceRoutes } from "../../src/resources/routes.ts";
import { createCursors } from "../../src/querying/cursor.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import { createRecordTurns } from "../../src/resources/store-turns.ts";
import { createFairPlaces } from "../../src/kit/fair-places.ts";
import { createTurns } from "../../src/kit/turns.ts";
import type { Caller } from "../../src/kit/caller.ts";
import { createPosts } from "../support/posts.ts";
import { call, createMemoryLog, type Answer } from "../support/http.ts";
import { definitions, openServedDatabase, type ServedDatabase } from "./serving.ts";

const callers: Readonly<Record<string, Caller>> = {
  ada: makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false }),
  bob: makeCaller({ id: 8, name: "Bob", email: "bob@example.com", isAdmin: false }),
  zoe: makeCaller({ id: 40_000, name: "Zoe", email: "zoe@example.com", isAdmin: false }),
  root: makeCaller({ id: 1, name: "Root", email: "root@example.com", isAdmin: true }),
};

/** Users whose tokens are revoked. */
export const revoked = new Set<string>();

const authenticate: ApiMiddleware = async (ctx, next) => {
  const name = ctx.get("Authorization").replace("Bearer ", "");
  const caller = callers[name];
  if (caller === undefined) throw new AppError("token.missing", "Unauthenticated.");
  ctx.state.caller = caller;
  ctx.state.grant = fullGrant;
  ctx.state.identifiedAt = performance.now();
  ctx.state.identifyAgain = async () => {
    if (revoked.has(name)) throw new AppError("token.revoked", "Unauthenticated.");
  };
  await next();
};

/** The resources of a database behind real HTTP. */
export interface Api {
  readonly server: HttpServer;
  readonly lines: Record<string, unknown>[];
  changes(): number;
}

export async function startApi(
  served: ServedDatabase,
  resources: Definitions = definitions,
  {
    bodyLimitBytes = 10_000,
    batchWaitMs = 20_000,
    memoryBudget,
    userTurns,
  }: {
    readonly bodyLimitBytes?: number;
    readonly batchWaitMs?: number;
    readonly memoryBudget?: MemoryBudget;
    readonly userTurns?: ApiMiddleware;
  } = {},
): Promise<Api> {
  const { log, lines } = createMemoryLog();
  let changes = 0;
  const router = createRouter("/svc-api");
  addResourceRoutes(router, {
    definitions: resources,
    database: served.records,
    maxPerPage: 100,
    recordTurns: createRecordTurns({ places: 10, connections: 16 }),
    ...createPosts(served.database.pool, createSecretBox(Buffer.alloc(32))),
    batchTurns: { users: createTurns(1), all: createFairPlaces(2), waitMs: batchWaitMs },
    urlOf: createUrlOf({ publicUrl: undefined, hosts: [] }),
    access: createAccessConditions(resources),
    cursors: createCursors("a secret of the tests"),
    onChange: () => changes++,
  });
  const app = createApp({
    log,
    routePrefix: "/svc-api",
    authenticate,
    router,
    bodyLimitBytes,
    memoryBudget,
    ...(userTurns === undefined ? {} : { userTurns }),
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  return { server, lines, changes: () => changes };
}

/** Opens a database and serves its resources before the tests of a suite, until their end. */
export function apiOfSuite(
  ...given: Parameters<typeof startApi> extends [ServedDatabase, ...infer Rest] ? Rest : never
): { readonly served: ServedDatabase; readonly api: Api } {
  const [served, api] = [{} as ServedDatabase, {} as Api];
  before(async () => {
    Object.assign(served, await openServedDatabase());
    Object.assign(api, await startApi(served, ...given));
  });
  after(async () => {
    await api.server.close();
    await served.close();
  });
  return { served, api };
}

/**
 * Sends a request by a user to a path under `/svc-api/resources`; an object is sent as JSON, a text
 * unchanged.
 */
export function ask(
  { server }: Api,
  who: string,
  request: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  const [method = "", path = ""] = request.split(" ");
  return call(server.port, `/svc-api/resources${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${who}`,
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
}

/** Returns the status of an answer, and its errors by field. */
export const errorsOf = ({ status, json }: Answer): unknown => [
  status,
  (json as { errors?: unknown }).errors,
];

/** Returns the ids on a page of a list. */
export const idsOf = (answer: Answer): unknown[] =>
  (answer.json as { data: { id: number }[] }).data.map(({ id }) => id);

/**
 * Creates two orders of Ada's (7) and one of Bob's (8), pages of both, a hidden page, and a notice.
 */
export async function seed(served: ServedDatabase): Promise<void> {
  await served.sql("TRUNCATE orders, customers, site_pages, notices RESTART IDENTITY");
  await served.sql("INSERT INTO customers (name) VALUES ('Acme'), ('Bolt')");
  await served.sql(
    `INSERT INTO orders (reference, amount, customer_id, user_id) VALUES
     ('A-1', 10, 1, 7), ('A-2', 20.5, null, 7), ('B-1', 30, 2, 8)`,
  );
  await served.sql(
    `INSERT INTO site_pages (slug, title, author, is_hidden) VALUES
     ('a/b', 'One', '7', false), ('two', 'Two', '8', false), ('gone', 'Gone', '7', true)`,
  );
  await served.sql("INSERT INTO notices (text) VALUES ('hello')");
  served.statements();
}
