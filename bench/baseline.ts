/**
 * What the service is measured against, a process of its own: the same three routes as somebody would write them by hand for
 * one table, with Koa and pg. It does the same work: token by hash in one query, ownership, validation, the same
 * statements (prepared), the same JSON; its table has the same capture trigger. It has no relay.
 */
import { createHash } from "node:crypto";
import type { AddressInfo } from "node:net";
import { Router } from "@koa/router";
import Koa, { type Context } from "koa";
import bodyParser from "koa-bodyparser";
import { Pool } from "pg";
import { answerQuestions } from "./peer.ts";

export interface BaselineQuestion {
  readonly databaseUrl: string;
  readonly poolSize: number;
  /** Of the page links. */
  readonly publicUrl: string;
}

export interface BaselineAnswer {
  readonly port: number;
}

interface User {
  readonly id: number;
  readonly is_admin: boolean;
}

interface Note {
  readonly id: number;
  readonly title: string;
  readonly body: string | null;
  readonly user_id: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const columns = "id, title, body, user_id, created_at, updated_at";

const findUser = {
  name: "find_user",
  text: `SELECT u.id, u.name, u.email, u.is_admin FROM svc.tokens t JOIN svc.users u ON u.id = t.user_id
    WHERE t.hash = $1 AND t.revoked_at IS NULL AND u.disabled_at IS NULL AND (t.expires_at IS NULL OR t.expires_at > now())`,
};
const findNote = { name: "find_note", text: `SELECT ${columns} FROM notes WHERE id = $1` };
/** An admin sees all notes, everybody else their own. */
const listing = {
  own: {
    list: {
      name: "list_own",
      text: `SELECT ${columns} FROM notes WHERE user_id = $3 ORDER BY id LIMIT $1 OFFSET $2`,
    },
    count: { name: "count_own", text: `SELECT count(*)::int AS total FROM notes WHERE user_id = $1` },
  },
  all: {
    list: { name: "list_all", text: `SELECT ${columns} FROM notes ORDER BY id LIMIT $1 OFFSET $2` },
    count: { name: "count_all", text: `SELECT count(*)::int AS total FROM notes` },
  },
};
const insertNote = {
  name: "insert_note",
  text: `INSERT INTO notes (title, body, user_id) VALUES ($1, $2, $3) RETURNING ${columns}`,
};

const userOf = (ctx: Context): User => ctx.state["user"] as User;

const dateOf = (date: Date): string => `${date.toISOString().slice(0, -1)}+00:00`;

function toJson(note: Note): object {
  return { ...note, created_at: dateOf(note.created_at), updated_at: dateOf(note.updated_at) };
}

function refuse(ctx: Context, status: number): void {
  ctx.status = status;
  ctx.body = { message: "Refused." };
}

function positive(text: unknown, otherwise: number): number {
  return typeof text === "string" && /^[1-9]\d*$/.test(text) ? Number(text) : otherwise;
}

function trimmed(body: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(body).map(([name, value]) => [name, typeof value === "string" ? value.trim() : value]),
  );
}

function faultsOf({ title, body }: Record<string, unknown>): Record<string, string[]> {
  const faults: Record<string, string[]> = {};
  if (title === undefined || title === null || title === "")
    faults["title"] = ["The title field is required."];
  else if (typeof title !== "string") faults["title"] = ["The title field must be a string."];
  else if (title.length > 200) faults["title"] = ["The title field must not be greater than 200 characters."];
  if (body !== undefined && body !== null && typeof body !== "string")
    faults["body"] = ["The body field must be a string."];
  return faults;
}

function createApp({ databaseUrl, poolSize, publicUrl }: BaselineQuestion): Koa {
  const pool = new Pool({ connectionString: databaseUrl, max: poolSize });
  const router = new Router({ prefix: "/svc-api" });

  router.get("/resources/notes", async (ctx) => {
    const user = userOf(ctx);
    const page = positive(ctx.query["page"], 1);
    const perPage = Math.min(positive(ctx.query["per_page"], 15), 100);
    const { list, count } = listing[user.is_admin ? "all" : "own"];
    const owner = user.is_admin ? [] : [user.id];
    const [notes, counts] = await Promise.all([
      pool.query<Note>(list, [perPage, (page - 1) * perPage, ...owner]),
      pool.query<{ readonly total: number }>(count, owner),
    ]);
    const total = counts.rows[0]?.total ?? 0;
    const lastPage = Math.max(1, Math.ceil(total / perPage));
    const urlOf = (number: number): string => {
      const url = new URL(ctx.originalUrl, publicUrl);
      url.searchParams.set("page", String(number));
      return url.href;
    };
    ctx.body = {
      data: notes.rows.map(toJson),
      current_page: page,
      last_page: lastPage,
      per_page: perPage,
      total,
      next_page_url: page < lastPage ? urlOf(page + 1) : null,
      prev_page_url: page > 1 ? urlOf(Math.min(page - 1, lastPage)) : null,
    };
  });

  router.get("/resources/notes/:id", async (ctx) => {
    const id = ctx.params["id"] ?? "";
    const note = /^\d{1,9}$/.test(id) ? (await pool.query<Note>(findNote, [id])).rows[0] : undefined;
    if (note === undefined) return refuse(ctx, 404);
    const user = userOf(ctx);
    if (!user.is_admin && note.user_id !== user.id) return refuse(ctx, 403);
    ctx.body = toJson(note);
  });

  router.post("/resources/notes", async (ctx) => {
    const body = trimmed(ctx.request.body as Record<string, unknown>);
    const errors = faultsOf(body);
    const [first] = Object.values(errors);
    if (first !== undefined) {
      ctx.status = 422;
      ctx.body = { message: first[0], errors };
      return;
    }
    const inserted = await pool.query<Note>(insertNote, [
      body["title"],
      body["body"] ?? null,
      userOf(ctx).id,
    ]);
    ctx.status = 201;
    ctx.body = inserted.rows.map(toJson)[0];
  });

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
