/**
 * The handwritten server that the service is compared with, in a separate process: the same routes
 * for two tables, with Koa and pg. It does the same work: token by hash in one query, ownership,
 * validation, the same prepared statements, and the same JSON. Its tables have the same capture
 * triggers. It has no relay.
 */
import { createHash } from "node:crypto";
import type { AddressInfo } from "node:net";
import { Router } from "@koa/router";
import Koa from "koa";
import bodyParser from "koa-bodyparser";
import { Pool } from "pg";
import { answerQuestions } from "../peer.ts";
import { refuse, type User } from "./kit.ts";
import { addNotes } from "./notes.ts";
import { addOrders } from "./orders.ts";

export interface BaselineQuestion {
  readonly databaseUrl: string;
  readonly poolSize: number;
  /** Origin of the page links. */
  readonly publicUrl: string;
}

export interface BaselineAnswer {
  readonly port: number;
}

const findUser = {
  name: "find_user",
  text: `SELECT u.id, u.name, u.email, u.is_admin FROM svc.tokens t JOIN svc.users u ON u.id = t.user_id
    WHERE t.hash = $1 AND t.revoked_at IS NULL AND u.disabled_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`,
};

function createApp({ databaseUrl, poolSize, publicUrl }: BaselineQuestion): Koa {
  const pool = new Pool({ connectionString: databaseUrl, max: poolSize });
  const router = new Router({ prefix: "/svc-api" });
  addNotes(router, { pool, publicUrl });
  addOrders(router, { pool, publicUrl });

  const app = new Koa();
  app.use(async (ctx, next) => {
    const [, token] = /^Bearer (svc_\w{40,200})$/.exec(ctx.get("authorization")) ?? [];
    if (token === undefined) return refuse(ctx, 401);
    const hash = createHash("sha256").update(token).digest();
    const { rows } = await pool.query<User>(findUser, [hash]);
    if (rows[0] === undefined) return refuse(ctx, 401);
    ctx.state["user"] = rows[0];
    await next();
  });
  app.use(bodyParser({ enableTypes: ["json"] }));
  app.use(router.routes());
  return app;
}

answerQuestions(async (question: BaselineQuestion): Promise<BaselineAnswer> => {
  const server = createApp(question).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return { port: (server.address() as AddressInfo).port };
});
