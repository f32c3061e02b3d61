import type { TextSql } from "../db/text-sql.ts";
import { cursorEnvelope, envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { ApiContext } from "../http/state.ts";
import type { UrlOf } from "../http/url-of.ts";
import type { Turns } from "../kit/turns.ts";
import { conditionText, createParameters, type Parameters } from "../querying/condition-text.ts";
import { cursorBinding, cursorPage, openPosition } from "../querying/cursor-page.ts";
import type { Cursors } from "../querying/cursor.ts";
import { fixedShape } from "../querying/fixed-shape.ts";
import { afterText, type Bound } from "../querying/keyset.ts";
import { readListParameters, type ListParameters } from "../querying/list-parameters.ts";
import { orderText, reversed, type OrderItem } from "../querying/order.ts";
import { createProjection } from "../querying/projection.ts";
import { estimateCount } from "../querying/read.ts";
import type { ListShape } from "../querying/shown-paths.ts";

/** A list of the service's own rows. */
interface OwnList {
  /** A cursor is for this list alone. */
  readonly name: string;
  readonly shape: ListShape;
  /** The order without `sort`: by id. */
  readonly direction: OrderItem["direction"];
  /** Writes the SELECT of all its rows, with columns that are named as the shape has them. */
  readonly source: (parameters: Parameters) => string;
}

export const tokenShape = fixedShape([
  { name: "id", type: "Int" },
  { name: "user_id", type: "Int" },
  { name: "name", type: "String" },
  { name: "scopes", type: "String", isList: true },
  { name: "parent_id", type: "Int", isOptional: true },
  { name: "created_at", type: "DateTime" },
  { name: "last_used_at", type: "DateTime", isOptional: true },
  { name: "expires_at", type: "DateTime", isOptional: true },
  { name: "revoked_at", type: "DateTime", isOptional: true },
]);

export const userShape = fixedShape([
  { name: "id", type: "Int" },
  { name: "name", type: "String" },
  { name: "email", type: "String" },
  { name: "is_admin", type: "Boolean" },
  { name: "is_disabled", type: "Boolean" },
  { name: "disabled_at", type: "DateTime", isOptional: true },
  { name: "subject", type: "String", isOptional: true },
  { name: "created_at", type: "DateTime" },
  { name: "updated_at", type: "DateTime" },
]);

/** Returns the list of a user's tokens, newest first, spent ones too. */
export function tokensOf(userId: number): OwnList {
  return {
    name: `tokens of ${userId}`,
    shape: tokenShape,
    direction: "desc",
    source: (parameters) => `SELECT * FROM svc.tokens WHERE user_id = ${parameters.add(userId)}`,
  };
}

export const allUsers: OwnList = {
  name: "users",
  shape: userShape,
  direction: "asc",
  source: () => "SELECT *, disabled_at IS NOT NULL AS is_disabled FROM svc.users",
};

export interface OwnListOptions {
  /** Gives statements no names: clients make many shapes of texts. */
  readonly listText: TextSql;
  /** Turns of users, at lists of all kinds together. */
  readonly listTurns: Turns;
  readonly cursors: Cursors;
  readonly maxPerPage: number;
  readonly urlOf: UrlOf;
}

type Page = Envelope<unknown> | CursorEnvelope<unknown>;

/** Answers a request for a list (docs/lists.md). */
export async function answerOwnList(ctx: ApiContext, list: OwnList, options: OwnListOptions): Promise<Page> {
  const { maxPerPage, listTurns } = options;
  const asked = readListParameters(ctx.querystring, list.shape, { maxPerPage });
  const { id } = ctx.state.caller;
  return listTurns.run(id, () => readPage({ ctx, list, asked, ...options }));
}

interface Reading extends OwnListOptions {
  readonly ctx: ApiContext;
  readonly list: OwnList;
  readonly asked: ListParameters;
}

async function readPage(reading: Reading): Promise<Page> {
  const { ctx, list, asked, cursors, urlOf } = reading;
  const { paging } = asked;
  const url = urlOf(ctx);
  if (paging.kind === "page") {
    const { page, perPage, skip } = paging;
    const [rows, counted] = await Promise.all([
      readRows(reading, { skip, take: perPage + 1 }),
      countRows(reading),
    ]);
    const data = rows.slice(0, perPage).map(({ record }) => record);
    return envelope({ data, ...counted, hasNext: rows.length > perPage, page, perPage, url });
  }
  const { perPage, cursor } = paging;
  const binding = cursorBinding(list.name, ctx.state.caller.id, asked);
  const position = openPosition(cursors, cursor, binding);
  const read = await readRows(reading, { skip: 0, take: perPage + 1 }, position);
  const { rows, next, previous } = cursorPage(read, {
    position,
    take: perPage,
    valuesOf: (row) => row.values,
  });
  const seal = (one: typeof next): string | undefined => one && cursors.seal(one, binding);
  const data = rows.map(({ record }) => record);
  return cursorEnvelope({ data, next: seal(next), previous: seal(previous), perPage, url });
}

interface Row {
  /** As it is shown. */
  readonly record: unknown;
  /** Those of its order. */
  readonly values: Bound["values"];
}

async function readRows(
  { listText, list, asked: { filter, sort = [], fields } }: Reading,
  { skip, take }: { readonly skip: number; readonly take: number },
  position?: Bound & { readonly isBackwards: boolean },
): Promise<readonly Row[]> {
  const { shape, source, direction } = list;
  const key = shape.sortable.paths.get("id");
  const isTotal = key === undefined || sort.some(({ field }) => field.name === "id");
  const last: readonly OrderItem[] = isTotal
    ? []
    : [{ links: [], field: key.field, direction, nulls: "last" }];
  const wanted = [...sort, ...last];
  const order = position?.isBackwards === true ? reversed(wanted) : wanted;
  const parameters = createParameters();
  const text = [
    `SELECT ${[jsonText(shape), ...order.map(({ field }) => `t.${field.column}`)].join(", ")}`,
    `FROM (${source(parameters)}) AS t WHERE (${conditionText(filter, "t", parameters)})`,
    ...(position === undefined ? [] : [`AND (${afterText(order, position, () => "t", parameters)})`]),
    `ORDER BY ${orderText(order, () => "t")} LIMIT ${parameters.add(take)} OFFSET ${parameters.add(skip)}`,
  ].join(" ");
  const project = fields && createProjection(fields, shape.places);
  return (await listText(text, parameters.values)).map(([json, ...values]) => {
    const record: unknown = JSON.parse(json ?? "");
    return { record: project?.(record) ?? record, values };
  });
}

async function countRows({
  listText,
  list,
  asked: { filter, count = "exact" },
}: Reading): Promise<{ readonly total: number | undefined; readonly isEstimate?: boolean }> {
  if (count === "none") return { total: undefined };
  const parameters = createParameters();
  const from = `FROM (${list.source(parameters)}) AS t WHERE ${conditionText(filter, "t", parameters)}`;
  if (count === "estimated") return estimateCount(listText, from, parameters);
  const [row] = await listText(`SELECT count(*) ${from}`, parameters.values);
  return { total: Number(row?.[0]) };
}

/** As `formatDateTime` writes a date. */
const shownTime = `'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'`;

function jsonText({ places }: ListShape): string {
  const pairs = [...(places ?? [])].map(([name, { field }]) => {
    const isTime = field?.type === "DateTime";
    return `'${name}', ${isTime ? `to_char(t.${name} AT TIME ZONE 'UTC', ${shownTime})` : `t.${name}`}`;
  });
  return `json_build_object(${pairs.join(", ")})`;
}
