import { EventEmitter, once } from "node:events";
import { randomBytes } from "node:crypto";
import type { Database } from "../../src/db/client.ts";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { createSql, type Sql } from "../../src/db/sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createInTransaction } from "../../src/db/transaction.ts";
import { createApp } from "../../src/http/app.ts";
import { createAnswerPost, type Post } from "../../src/http/idempotency.ts";
import { createMemoryBudget } from "../../src/http/memory-budget.ts";
import { startServer, type HttpServer } from "../../src/http/server.ts";
import { createRouter, type ApiMiddleware } from "../../src/http/state.ts";
import { validationError } from "../../src/kit/errors.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { call, createMemoryLog, type Answer, readWithin } from "../support/http.ts";

const { log } = createMemoryLog();
const secretBox = createSecretBox(randomBytes(32));

/**
 * Authenticates the user whose id is the token; a token that ends in `limited` lacks the scope
 * `admin`.
 */
const authenticate: ApiMiddleware = (ctx, next) => {
  const [id, rest] = ctx.get("Authorization").replace("Bearer ", "").split(" ");
  const caller = { id: Number(id), name: "", email: "", isAdmin: false, claims: {} };
  ctx.state.caller = rest === "limited" ? { ...caller, isLimited: true } : caller;
  return next();
};

/** A point where a request waits, after its write and before its commit. */
interface Gate {
  readonly entered: Promise<void>;
  readonly open: () => void;
}

export interface Scene {
  readonly server: HttpServer;
  readonly sql: Sql;
  clockMs: number;
  /** Makes the next request wait. */
  hold(): Gate;
}

/**
 * `POST /notes` and `PUT /notes` write a row and answer it. `POST /secrets` does the same with a
 * secret answer, and `POST /waits` outside of a transaction. A user may have 20 MB of memory.
 */
export async function startScene(database: Database, isEmbedded: boolean): Promise<Scene> {
  const sql = createSql({ pool: database.pool, isEmbedded });
  await sql("CREATE TABLE notes (id serial PRIMARY KEY, user_id int, text text UNIQUE)");
  const inTransaction = createInTransaction(database.pool, createStatementNames(isEmbedded));
  let held: { readonly enter: () => void; readonly wait: Promise<void> } | undefined;
  const answerPost = createAnswerPost(secretBox, inTransaction, () => scene.clockMs);
  const router = createRouter("/svc-api");
  const handler =
    (kind: Pick<Post, "isSecret" | "longestMs">): ApiMiddleware =>
    async (ctx) => {
      const { text = "" } = await readWithin(ctx, 100_000_000);
      await answerPost(ctx, {
        ...kind,
        async act(transaction) {
          if (text === "bad") throw validationError({ text: ["The text field is bad."] });
          const [row] = await (transaction?.sql ?? sql)<{ id: number }>(
            "INSERT INTO notes (user_id, text) VALUES ($1, $2) RETURNING id",
            [ctx.state.caller.id, text],
          );
          const gate = held;
          held = undefined;
          gate?.enter();
          await gate?.wait;
          const id = row?.id ?? 0;
          const json = JSON.stringify({
            id,
            text,
            ...(text === "long" ? { more: "x".repeat(17_000_000) } : {}),
            ...(String(text).startsWith("large") ? { more: "x".repeat(4_500_000) } : {}),
          });
          return { status: 201, headers: { Location: `/notes/${id}`, ETag: '"1"' }, json };
        },
      });
    };
  router.post("/notes", handler({}));
  router.put("/notes", handler({}));
  router.post("/secrets", handler({ isSecret: true }));
  router.post("/waits", handler({ longestMs: 30_000 }));
  const app = createApp({
    log,
    routePrefix: "/svc-api",
    authenticate,
    router,
    memoryBudget: createMemoryBudget({ limitBytes: 40_000_000 }),
    isUnavailable: (error) => databaseFaultOf(error).kind === "unavailable",
  });
  const server = await startServer(app.callback(), { host: "127.0.0.1", port: 0 });
  const scene: Scene = {
    server,
    sql,
    clockMs: 0,
    hold() {
      const signals = new EventEmitter();
      const entered = once(signals, "entered").then(() => undefined);
      const wait = once(signals, "opened").then(() => undefined);
      held = { enter: () => void signals.emit("entered"), wait };
      return { entered, open: () => void signals.emit("opened") };
    },
  };
  return scene;
}

export function post(
  { server }: Scene,
  body: unknown,
  {
    key = "k",
    user = 7,
    path = "/notes",
    method = "POST",
    isLimited = false,
  }: {
    readonly key?: string;
    readonly user?: number;
    readonly path?: string;
    readonly method?: "POST" | "PUT";
    readonly isLimited?: boolean;
  } = {},
): Promise<Answer> {
  return call(server.port, `/svc-api${path}`, {
    method,
    headers: {
      Authorization: `Bearer ${user}${isLimited ? " limited" : ""}`,
      "Content-Type": "application/json",
      ...(key === "" ? {} : { "Idempotency-Key": key }),
    },
    body: JSON.stringify(body),
  });
}

export const countOf = async ({ sql }: Scene, table: string): Promise<number> => {
  const [row] = await sql<{ count: number }>(`SELECT count(*)::int AS count FROM ${table}`);
  return row?.count ?? -1;
};

export const codeOf = ({ json }: Answer): unknown => (json as { readonly code?: string } | undefined)?.code;
