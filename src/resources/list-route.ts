import { validationError } from "../kit/errors.ts";
import type { LargeAnswer } from "../http/large-answer.ts";
import { cursorEnvelope, envelope, smallerPage } from "../http/page.ts";
import { requireResourceScope } from "../http/scope-check.ts";
import type { ApiContext } from "../http/state.ts";
import type { UrlOf } from "../http/url-of.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { createPageSizes, type PageSizes } from "../querying/page-sizes.ts";
import { cursorBinding, openPosition } from "../querying/cursor-page.ts";
import type { Cursors, Position } from "../querying/cursor.ts";
import { readListParameters, type ListParameters } from "../querying/list-parameters.ts";
import { listShapeOf, type ListShape } from "../querying/shown-paths.ts";
import { isNever } from "../querying/condition.ts";
import type { AccessConditions } from "./access.ts";
import { orderOf } from "../querying/prisma-include.ts";
import { totalOrder } from "../querying/read.ts";
import { baseQueryOf, listQuery } from "./query.ts";
import type { ListQuery, RecordStore } from "./record-store.ts";
import { createRelatedLists } from "./related-lists.ts";
import { pageAnswer } from "./write-page.ts";

/**
 * Bytes reserved for each record of a list before it is read, enough for a small one. The answer
 * shows the actual size.
 */
const memoryPerListedRecord = 4096;

/**
 * Limit in characters. A URL with such a cursor stays below the limits of common proxies, 8 KiB.
 */
const longestCursor = 6_000;

export interface ListOptions {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly store: RecordStore;
  readonly access: AccessConditions;
  readonly maxPerPage: number;
  readonly urlOf: UrlOf;
  readonly cursors: Cursors;
}

interface Context extends ListOptions {
  readonly pageSizes: PageSizes;
  readonly relatedList: ReturnType<typeof createRelatedLists>;
}

/** Answers the list of a resource (docs/lists.md). */
export function createListOperation(options: ListOptions): (ctx: ApiContext) => Promise<void> {
  const { definition, definitions, access, maxPerPage } = options;
  const relatedList = createRelatedLists(definition, definitions, access);
  const context = { ...options, pageSizes: createPageSizes(), relatedList };
  const shapeOf = listShapes(definition, definitions);

  return async (ctx) => {
    const asked = readListParameters(ctx.querystring, shapeOf(), { maxPerPage });
    const { paging } = asked;
    await ctx.state.memory.reserve(paging.perPage * memoryPerListedRecord);
    const query = queryOf(context, ctx, asked);
    ctx.type = "json";
    ctx.body =
      paging.kind === "page"
        ? await pageOf(context, ctx, { asked, query, paging })
        : await cursorPageOf(context, ctx, { asked, query, paging });
  };
}

type Paging = ListParameters["paging"];

interface AskedList<Kind extends Paging["kind"]> {
  readonly asked: ListParameters;
  readonly query: ListQuery | "nothing";
  readonly paging: Extract<Paging, { kind: Kind }>;
}

async function pageOf(
  { definition, store, pageSizes, urlOf }: Context,
  ctx: ApiContext,
  { asked, query, paging }: AskedList<"page">,
): Promise<string | LargeAnswer> {
  const { count = definition.count } = asked;
  const { perPage: take, skip, page } = paging;
  const { id: userId } = ctx.state.caller;
  const part = shownPart(asked);
  const likely = pageSizes.likely(userId, part);
  const found =
    query === "nothing"
      ? {
          records: [],
          size: take,
          total: count === "none" ? undefined : 0,
          isEstimate: false,
          hasNext: false,
        }
      : await store.list(query, { skip, take, likely, count });
  pageSizes.note(userId, { asked: take, size: found.size, part });
  const fitting =
    found.size < take ? smallerPage({ page, perPage: take, skip }, found.size) : { page, perPage: take };
  const records = found.records.slice(0, fitting.perPage);
  const hasNext = found.hasNext || records.length < found.records.length;
  return pageAnswer(userId, records, envelope({ ...found, ...fitting, data: [], hasNext, url: urlOf(ctx) }));
}

/** Returns the parameters that decide how large each record of the answer is. */
function shownPart({ given }: ListParameters): string {
  return [given.get("fields"), given.get("include")].join(" ");
}

async function cursorPageOf(
  context: Context,
  ctx: ApiContext,
  { asked, query, paging }: AskedList<"cursor">,
): Promise<string | LargeAnswer> {
  const { store, pageSizes, urlOf, cursors } = context;
  const { perPage: take, cursor } = paging;
  const { id: userId } = ctx.state.caller;
  const binding = bindingOf(context, userId, asked, query === "nothing" ? [] : query.orderBy);
  const from = openPosition(cursors, cursor, binding);
  const part = shownPart(asked);
  const likely = pageSizes.likely(userId, part);
  const found =
    query === "nothing"
      ? { records: [], size: take, next: undefined, previous: undefined }
      : await store.listByCursor(query, { from, take, likely });
  pageSizes.note(userId, { asked: take, size: found.size, part });
  const envelopeOfPage = cursorEnvelope({
    data: [],
    next: found.next && sealed(cursors, found.next, binding),
    previous: found.previous && sealed(cursors, found.previous, binding),
    perPage: take,
    url: urlOf(ctx),
  });
  return pageAnswer(userId, found.records, envelopeOfPage);
}

/**
 * Returns the query of a list, or "nothing" when the caller can see no record.
 *
 * @throws AppError `token.scope` when the token may not read an included resource.
 */
function queryOf(
  { definition, access, relatedList }: Context,
  ctx: ApiContext,
  asked: ListParameters,
): ListQuery | "nothing" {
  const { caller } = ctx.state;
  const related = asked.include.map((name) => relatedList(name, caller));
  for (const { link } of related) requireResourceScope(ctx, link.target.name);
  const readable = access.of(definition, ["read"], caller);
  const query = isNever(readable) ? "nothing" : listQuery(definition, asked.search);
  if (query === "nothing") return query;
  const { filter, sort, fields } = asked;
  return {
    ...query,
    userId: caller.id,
    access: readable,
    filter: access.withinReach(filter, caller),
    sort,
    fields,
    related,
    asked: [...asked.given.keys()].filter((name) => !["page", "per_page", "search"].includes(name)),
  };
}

/**
 * Returns the binding of a cursor: the same list of the same user, in the same order of values of
 * the same types.
 */
function bindingOf(
  { definition, definitions }: ListOptions,
  userId: number,
  asked: ListParameters,
  ownOrder: ListQuery["orderBy"],
): string {
  const order = asked.sort ?? orderOf(definition, definitions, ownOrder);
  const bound =
    order === undefined
      ? ownOrder
      : totalOrder(order, definition).map(({ links, field: { name, type, native }, direction, nulls }) => [
          links.map((link) => link.name),
          name,
          type,
          native,
          direction,
          nulls,
        ]);
  return `${cursorBinding(definition.name, userId, asked)} ${JSON.stringify(bound)}`;
}

function sealed(cursors: Cursors, position: Position, binding: string): string {
  const cursor = cursors.seal(position, binding);
  if (cursor.length <= longestCursor) return cursor;
  throw validationError({
    cursor: ["The values that the list is sorted by are too long for a cursor. Sort by shorter ones."],
  });
}

/**
 * Returns the shape of the lists' parameters. The relations that a base query in code includes are
 * known only at run time.
 */
function listShapes(definition: Definition, definitions: Definitions): () => ListShape {
  if (definition.code.baseQuery !== undefined)
    return () => listShapeOf(definition, definitions, baseQueryOf(definition).include);
  const shape = listShapeOf(definition, definitions);
  return () => shape;
}
