import type { TextSql } from "../db/text-sql.ts";
import { envelope, type CursorEnvelope, type Envelope } from "../http/page.ts";
import type { ApiContext } from "../http/state.ts";
import type { UrlOf } from "../http/url-of.ts";
import type { Turns } from "../kit/turns.ts";
import { conditionText, createParameters, type Parameters } from "./condition-text.ts";
import { countRows, type Total } from "./count.ts";
import { answerByCursor, cursorPage } from "./cursor-page.ts";
import type { Cursors } from "./cursor.ts";
import { afterText, type Bound } from "./keyset.ts";
import { readPage } from "./list-page.ts";
import { readListParameters, type ListParameters } from "./list-parameters.ts";
import { orderText, reversed, type OrderItem } from "./order.ts";
import { createProjection } from "./projection.ts";
import type { ListShape } from "./shown-paths.ts";

/** A list of the service's own rows. */
export interface OwnList {
  /** Name of the list, to which its cursors are bound. */
  readonly name: string;
  readonly shape: ListShape;
  /** The direction of the order by id, for requests without `sort`. */
  readonly direction: OrderItem["direction"];
  /**
   * Writes the SELECT of all rows, with the shape's names of columns. `given` has the parameters
   * that only this list has.
   */
  readonly source: (parameters: Parameters, given: ReadonlyMap<string, string>) => string;
}

/** Dependencies of the lists of all kinds. */
export interface ListsOptions {
  readonly maxPerPage: number;
  /** Turns of users, over all lists of all kinds. */
  readonly listTurns: Turns;
  readonly cursors: Cursors;
  /** Returns URLs, for the page links, and for the `Location` of a new record. */
  readonly urlOf: UrlOf;
}

/** Dependencies of all lists of the service's own rows. */
export interface OwnListOptions extends ListsOptions {
  /** Runs statements without names, because clients create many different texts. */
  readonly listText: TextSql;
}

type Page = Envelope<unknown> | CursorEnvelope<unknown>;

/** Answers a request for a list (docs/lists.md). */
export async function answerOwnList(ctx: ApiContext, list: OwnList, options: OwnListOptions): Promise<Page> {
  const { maxPerPage, listTurns } = options;
  const asked = readListParameters(ctx.querystring, list.shape, { maxPerPage });
  const { id } = ctx.state.caller;
  return listTurns.run(id, () => pageOf({ ctx, list, asked, ...options }));
}

interface Reading extends OwnListOptions {
  readonly ctx: ApiContext;
  readonly list: OwnList;
  readonly asked: ListParameters;
}

async function pageOf(reading: Reading): Promise<Page> {
  const { ctx, list, asked, cursors, urlOf } = reading;
  const { paging } = asked;
  const url = urlOf(ctx);
  if (paging.kind === "page") {
    const { page, perPage, skip } = paging;
    const { count = "exact" } = asked;
    const { records: data, ...counted } = await readPage(
      { skip, take: perPage, count },
      {
        read: async (take) => (await readRows(reading, { skip, take })).map(({ record }) => record),
        count: (mode) => totalOf(reading, mode),
      },
    );
    return envelope({ data, ...counted, page, perPage, url });
  }
  const { id: userId } = ctx.state.caller;
  return answerByCursor(
    { list: list.name, userId, parameters: asked, cursors, url },
    async (position, take) => {
      const read = await readRows(reading, { skip: 0, take: take + 1 }, position);
      const page = cursorPage(read, { position, take, valuesOf: ({ values }) => values });
      return { ...page, rows: page.rows.map(({ record }) => record) };
    },
  );
}

interface Row {
  /** The record as the answer shows it. */
  readonly record: unknown;
  /** Values of the columns of the order. */
  readonly values: Bound["values"];
}

async function readRows(
  { listText, list, asked: { filter, sort = [], fields, given } }: Reading,
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
    `FROM (${source(parameters, given)}) AS t WHERE (${conditionText(filter, "t", parameters)})`,
    ...(position === undefined ? [] : [`AND (${afterText(order, position, () => "t", parameters)})`]),
    `ORDER BY ${orderText(order, () => "t")} LIMIT ${parameters.add(take)} OFFSET ${parameters.add(skip)}`,
  ].join(" ");
  const project = fields && createProjection(fields, shape.places);
  return (await listText(text, parameters.values)).map(([json, ...values]) => {
    const record: unknown = JSON.parse(json ?? "");
    return { record: project?.(record) ?? record, values };
  });
}

function totalOf(
  { listText, list, asked: { filter, given } }: Reading,
  mode: "exact" | "estimated",
): Promise<Total> {
  const parameters = createParameters();
  const from = `FROM (${list.source(parameters, given)}) AS t WHERE ${conditionText(filter, "t", parameters)}`;
  return countRows(listText, mode, { from, parameters });
}

/** Format of times, the same as that of `formatDateTime`. */
const shownTime = `'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"'`;

function jsonText({ places }: ListShape): string {
  const pairs = [...(places ?? [])].map(([name, { field }]) => {
    const isTime = field?.type === "DateTime";
    return `'${name}', ${isTime ? `to_char(t.${name} AT TIME ZONE 'UTC', ${shownTime})` : `t.${name}`}`;
  });
  return `json_build_object(${pairs.join(", ")})`;
}
