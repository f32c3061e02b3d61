import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Pool } from "pg";
import { dateOf, envelopeOf, pageOf, positive, refuse, refuseFaults, trimmed, userOf } from "./kit.ts";

interface Note {
  readonly id: number;
  readonly title: string;
  readonly body: string | null;
  readonly user_id: number;
  readonly created_at: Date;
  readonly updated_at: Date;
}

const columns = "id, title, body, user_id, created_at, updated_at";
const path = "/resources/notes";

const findNote = { name: "find_note", text: `SELECT ${columns} FROM notes WHERE id = $1` };
/** An admin sees all notes, other users only their own. */
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
/** Reads one record more than a page, which shows whether another page follows. */
const findFiltered = {
  name: "find_filtered",
  text: `SELECT ${columns} FROM notes WHERE user_id = $1 AND id >= $2 AND title ILIKE $3 AND id < $4 ORDER BY id DESC LIMIT $5`,
};
const insertNotes = {
  name: "insert_notes",
  text: `INSERT INTO notes (title, body, user_id)
    SELECT title, body, $3 FROM unnest($1::text[], $2::text[]) AS given (title, body) RETURNING ${columns}`,
};

function toJson(note: Note): object {
  return { ...note, created_at: dateOf(note.created_at), updated_at: dateOf(note.updated_at) };
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

export function addNotes(
  router: Router,
  { pool, publicUrl }: { readonly pool: Pool; readonly publicUrl: string },
): void {
  router.get(path, async (ctx) => {
    if (ctx.query["cursor"] !== undefined) return listFiltered(ctx, pool);
    const user = userOf(ctx);
    const { page, perPage } = pageOf(ctx);
    const { list, count } = listing[user.is_admin ? "all" : "own"];
    const owner = user.is_admin ? [] : [user.id];
    const [notes, counts] = await Promise.all([
      pool.query<Note>(list, [perPage, (page - 1) * perPage, ...owner]),
      pool.query<{ readonly total: number }>(count, owner),
    ]);
    const total = counts.rows[0]?.total ?? 0;
    ctx.body = envelopeOf(ctx, { data: notes.rows.map(toJson), total, page, perPage, publicUrl });
  });

  router.get(`${path}/:id`, async (ctx) => {
    const id = ctx.params["id"] ?? "";
    const note = /^\d{1,9}$/.test(id) ? (await pool.query<Note>(findNote, [id])).rows[0] : undefined;
    if (note === undefined) return refuse(ctx, 404);
    const user = userOf(ctx);
    if (!user.is_admin && note.user_id !== user.id) return refuse(ctx, 403);
    ctx.body = toJson(note);
  });

  router.post(path, async (ctx) => {
    const body = trimmed(ctx.request.body as Record<string, unknown>);
    if (refuseFaults(ctx, faultsOf(body))) return;
    const inserted = await pool.query<Note>(insertNote, [
      body["title"],
      body["body"] ?? null,
      userOf(ctx).id,
    ]);
    ctx.status = 201;
    ctx.body = inserted.rows.map(toJson)[0];
  });

  router.post(`${path}/batch`, (ctx) => createMany(ctx, pool));
}

/**
 * Reads a page with one filter and one sort, like a typical handwritten server. The first and later
 * pages use a cursor.
 */
async function listFiltered(ctx: Context, pool: Pool): Promise<void> {
  const { query } = ctx;
  const perPage = Math.min(positive(query["per_page"], 15), 100);
  const cursor = String(query["cursor"]);
  const before = cursor === "" ? 2 ** 31 - 1 : Number(Buffer.from(cursor, "base64url").toString());
  const words = String(query["filter[title][contains]"]).replaceAll(/[%_\\]/g, String.raw`\$&`);
  const from = Number(query["filter[id][gte]"]);
  if (query["sort"] !== "-id" || !Number.isInteger(before) || !Number.isInteger(from))
    return refuse(ctx, 422);
  const { rows } = await pool.query<Note>(findFiltered, [
    userOf(ctx).id,
    from,
    `%${words}%`,
    before,
    perPage + 1,
  ]);
  const shown = rows.slice(0, perPage);
  const last = rows.length > perPage ? shown.at(-1) : undefined;
  ctx.body = {
    data: shown.map(toJson),
    per_page: perPage,
    next_cursor: last === undefined ? null : Buffer.from(String(last.id)).toString("base64url"),
  };
}

/** Makes creates only, by one statement. */
async function createMany(ctx: Context, pool: Pool): Promise<void> {
  const { operations } = ctx.request.body as { readonly operations: readonly { readonly data: object }[] };
  const bodies = operations.map(({ data }) => trimmed({ ...data }));
  const errors = bodies.flatMap((body, index) =>
    Object.entries(faultsOf(body)).map(([name, texts]) => [`operations.${index}.data.${name}`, texts]),
  );
  if (refuseFaults(ctx, Object.fromEntries(errors) as Record<string, string[]>)) return;
  const { rows } = await pool.query<Note>(insertNotes, [
    bodies.map(({ title }) => title),
    bodies.map(({ body }) => body ?? null),
    userOf(ctx).id,
  ]);
  ctx.body = { data: rows.map((note) => ({ status: 201, record: toJson(note) })) };
}
