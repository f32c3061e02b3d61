import { randomBytes } from "node:crypto";
import { createIndexSql } from "../../src/db/sql.ts";
import { createDeliveryHistory } from "../../src/deliveries/history.ts";
import { addDeliveryRoutes } from "../../src/deliveries/routes.ts";
import { createApp } from "../../src/http/app.ts";
import { createFailureLimit } from "../../src/http/failure-limit.ts";
import { startServer } from "../../src/http/server.ts";
import { createRouter } from "../../src/http/state.ts";
import { createUrlOf } from "../../src/http/url-of.ts";
import { createTurns } from "../../src/kit/turns.ts";
import { createCursors } from "../../src/querying/cursor.ts";
import { addSubscriptionRoutes } from "../../src/subscriptions/routes.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { createAuthenticate } from "../../src/users/authenticate.ts";
import { createTokenProvider } from "../../src/users/provider.ts";
import { openCoreDatabase, type CoreDatabase } from "./core-database.ts";
import { createPosts } from "./posts.ts";
import { call, createMemoryLog } from "./http.ts";

export interface ListUser {
  readonly id: number;
  readonly token: string;
}

/** An answer to a list: `errors` of a 422, or the envelope. */
export interface ListAnswer {
  readonly status: number;
  readonly data: readonly Readonly<Record<string, unknown>>[];
  readonly errors: Readonly<Record<string, readonly string[]>>;
  readonly json: Readonly<Record<string, unknown>>;
}

export interface ListApi {
  readonly core: CoreDatabase;
  readonly ada: ListUser;
  readonly ben: ListUser;
  /** A user with the admin flag. */
  readonly admin: ListUser;
  get(path: string, user: ListUser): Promise<ListAnswer>;
  close(): Promise<void>;
}

/** Serves the lists of webhooks and deliveries, on a separate database. */
export async function startListApi({
  lookThrough,
}: {
  readonly lookThrough?: number;
} = {}): Promise<ListApi> {
  const core = await openCoreDatabase();
  const { prisma, database, transact } = core;
  const { pool } = database;
  const { log } = createMemoryLog();
  const tokens = createTokenProvider({ ...core, log });
  const router = createRouter("/svc-api");
  const listSql = createIndexSql(pool);
  const cursors = createCursors("secret");
  const urlOf = createUrlOf({ publicUrl: "https://api.example.com", hosts: [] });
  const secretBox = createSecretBox(randomBytes(32));
  const posts = {
    urlOf,
    ...createPosts(pool, secretBox),
  };
  addSubscriptionRoutes(router, {
    store: createSubscriptionStore({ sql: listSql, transact, secretBox, maxPerUser: 50 }),
    sql: listSql,
    listSql,
    ...posts,
    maxPerPage: 100,
    cursors,
    preview: async () => "{}",
    rulesFor: () => ({
      resourceNames: [],
      filterFaults: () => new Map(),
      triggersOf: () => ["on_create"],
      refusalOfUrl: () => undefined,
      refusalOfResource: () => undefined,
    }),
  });
  addDeliveryRoutes(router, {
    history: createDeliveryHistory({
      sql: core.sql,
      listSql,
      transact,
      ...(lookThrough !== undefined && { lookThrough }),
    }),
    ...posts,
    maxPerPage: 100,
    listTurns: createTurns(2),
    cursors,
    readRight: { of: async () => true, ofSubscriber: async () => true },
    manualRetryLimit: 5,
  });
  const failures = createFailureLimit({ count: 100, windowMs: 60_000 });
  const authenticate = createAuthenticate({ tokens, failures });
  const app = createApp({ log, routePrefix: "/svc-api", authenticate, router, isUnavailable: () => false });
  const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  const addUser = async (name: string): Promise<ListUser> => {
    const data = { name, email: `${name}@example.com`, isAdmin: name === "admin" };
    const { id } = await prisma.user.create({ data });
    return { id, token: (await tokens.issue({ userId: id, name: "test" })).token };
  };
  return {
    core,
    ada: await addUser("ada"),
    ben: await addUser("ben"),
    admin: await addUser("admin"),
    async get(path, { token }) {
      const { status, json } = await call(server.port, `/svc-api${path}`, {
        headers: { Authorization: `Bearer ${token}` },
      });
      const answer = json as ListAnswer["json"];
      const { data = [], errors = {} } = answer as Partial<Pick<ListAnswer, "data" | "errors">>;
      return { status, data, errors, json: answer };
    },
    async close() {
      await server.close();
      await core.close();
    },
  };
}
