import type { Sql } from "../db/sql.ts";
import { answerUnsupported } from "../http/error-body.ts";
import { cursorEnvelopeText, envelopeText, smallerPage } from "../http/page.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import { AppError, validationError } from "../kit/errors.ts";
import type { Turns } from "../kit/turns.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { createPageSizes } from "../mapping/page-sizes.ts";
import type { Cursors, Position } from "../querying/cursor.ts";
import { readListParameters, type ListParameters } from "../querying/list-parameters.ts";
import { listShapeOf, type ListShape } from "../querying/shown-paths.ts";
import { ownerFilter } from "./access.ts";
import { databaseWithin } from "./database-within.ts";
import { createLookup } from "./lookup.ts";
import { baseQueryOf, listQuery } from "./query.ts";
import { createRecordHandlers, type Handler, type RecordRoutesOptions } from "./record-routes.ts";
import type { ListQuery, RecordStore } from "./record-store.ts";
import { createRelatedLists } from "./related-lists.ts";
import { takingTurns, type ResourceTurns } from "./store-turns.ts";
import { createStore, type RecordDatabase } from "./store.ts";
import { createViews } from "./view.ts";

export interface ResourceRoutesOptions extends Pick<
  RecordRoutesOptions,
  "answerPost" | "batchTurns" | "bodyLimitBytes" | "inTransaction" | "onChange" | "urlOf"
> {
  readonly definitions: Definitions;
  readonly database: RecordDatabase;
  /** Answers the rules `unique` and `exists`. */
  readonly sql: Sql;
  readonly maxPerPage: number;
  /** Of users, at lists of all resources together. */
  readonly listTurns: Turns;
  readonly resourceTurns: ResourceTurns;
  readonly cursors: Cursors;
}

/** Bytes set aside for each record of a list before it is read: of small ones. What they took is known with the answer. */
const memoryPerListedRecord = 4096;

/** A URL with it stays below the limits of common proxies, 8 KiB. */
const longestCursor = 6_000;

/** By method; its keys are what `Allow` says. */
type Operations = ReadonlyMap<string, Handler>;

/** `resources`: the listing, and six operations on each one (specification 4.3 to 4.8). */
export function addResourceRoutes(router: ApiRouter, options: ResourceRoutesOptions): void {
  const listing = [...options.definitions.values()].map(({ name, model, triggers }) => ({
    name,
    model,
    triggers,
  }));
  const served = new Map(
    [...options.definitions.values()].map((definition) => [definition.name, serve(definition, options)]),
  );

  const servedBy = (ctx: ApiContext): Served => {
    const name = paramOf(ctx, "name");
    const found = served.get(name);
    if (found === undefined)
      throw new AppError("resource.not_found", `The resource ${name} could not be found.`);
    ctx.state.resource = name;
    return found;
  };

  router.get("/resources", (ctx) => {
    ctx.body = { data: listing };
  });
  // All methods: an unknown resource is a 404 also for a method that no resource has.
  router.all("/resources/:name", (ctx) => run(ctx, servedBy(ctx).collection));
  router.all("/resources/:name/:id", (ctx) => {
    const { item, batch } = servedBy(ctx);
    // A record may have that key: a POST is about no record.
    return run(ctx, paramOf(ctx, "id") === "batch" ? batch : item);
  });
}

async function run(ctx: ApiContext, operations: Operations): Promise<void> {
  const operation = operations.get(ctx.method);
  if (operation === undefined) return answerUnsupported(ctx, [...operations.keys()]);
  await operation(ctx);
}

/** What a resource answers: on itself, on its records, and on what is a record's path and that of its batches. */
interface Served {
  readonly collection: Operations;
  readonly item: Operations;
  readonly batch: Operations;
}

/** Compiles what does not depend on the request, once. */
function serve(definition: Definition, options: ResourceRoutesOptions): Served {
  const { definitions, database, sql, maxPerPage, listTurns, resourceTurns, inTransaction } = options;
  const { urlOf, cursors } = options;
  const views = createViews(definition, definitions);
  const storeOver = (over: RecordDatabase): RecordStore =>
    createStore({ definition, definitions, views, database: over });
  const store = takingTurns(storeOver(database), definition.name, resourceTurns);
  const pageSizes = createPageSizes();
  const shape = listShapes(definition, definitions);
  const relatedList = createRelatedLists(definition, definitions);
  const lookup = createLookup({ own: definition, definitions, sql });

  async function list(ctx: ApiContext): Promise<void> {
    const asked = readListParameters(ctx.querystring, shape(), { maxPerPage });
    const { id: userId } = ctx.state.caller;
    const { perPage } = asked.paging;
    await ctx.state.memory.reserve(perPage * memoryPerListedRecord);
    const query = askedOf(ctx, asked);
    const likely = pageSizes.likely(userId);
    const run = <T>(work: () => Promise<T>): Promise<T> => listTurns.run(userId, work);
    ctx.type = "json";
    if (asked.paging.kind === "page") {
      const { skip } = asked.paging;
      const count = asked.count ?? definition.count;
      const found =
        query === "nothing"
          ? { records: [], size: perPage, total: 0, isEstimate: false, hasNext: false }
          : await run(() => store.list(query, { skip, take: perPage, likely, count }));
      pageSizes.note(userId, { asked: perPage, size: found.size });
      const page = found.size < perPage ? smallerPage(asked.paging, found.size) : asked.paging;
      const records = found.records.slice(0, page.perPage);
      ctx.body = envelopeText(records, { ...found, page: page.page, perPage: page.perPage, url: urlOf(ctx) });
      return;
    }
    const binding = bindingOf(ctx, asked);
    const from = positionOf(asked.paging.cursor, binding);
    const found =
      query === "nothing"
        ? { records: [], size: perPage, next: undefined, previous: undefined }
        : await run(() => store.listByCursor(query, { from, take: perPage, likely }));
    pageSizes.note(userId, { asked: perPage, size: found.size });
    const seal = (position: Position | undefined): string | undefined =>
      position && sealed(position, binding);
    ctx.body = cursorEnvelopeText(found.records, {
      next: seal(found.next),
      previous: seal(found.previous),
      perPage,
      url: urlOf(ctx),
    });
  }

  /** "nothing" when the caller can see no record. */
  function askedOf(ctx: ApiContext, asked: ListParameters): ListQuery | "nothing" {
    const query = listQuery({
      definition,
      owner: ownerFilter(definition, ctx.state.caller),
      search: asked.search,
    });
    if (query === "nothing") return query;
    const { filter, sort, fields } = asked;
    return {
      ...query,
      filter,
      sort,
      fields,
      related: asked.include.map((name) => relatedList(name, ctx.state.caller)),
      asked: [...asked.given.keys()].filter((name) => !["page", "per_page", "search"].includes(name)),
    };
  }

  /** A cursor is good for the same list of the same user only. */
  function bindingOf({ state: { caller } }: ApiContext, { given }: ListParameters): string {
    const parts = [...given].filter(([name]) => /^(?:filter\[|sort$|search$)/.test(name)).toSorted();
    return JSON.stringify([definition.name, caller.id, parts]);
  }

  function positionOf(cursor: string, binding: string): Position | undefined {
    if (cursor === "") return undefined;
    const position = cursors.open(cursor, binding);
    if (position !== undefined) return position;
    throw validationError({
      cursor: ["The cursor is not one of this list with this filter, sort and search. Begin without one."],
    });
  }

  function sealed(position: Position, binding: string): string {
    const cursor = cursors.seal(position, binding);
    if (cursor.length <= longestCursor) return cursor;
    throw validationError({
      cursor: ["The values that the list is sorted by are too long for a cursor. Sort by shorter ones."],
    });
  }

  const { show, create, update, remove, batch } = createRecordHandlers({
    ...options,
    definition,
    reachOf(transaction) {
      if (transaction === undefined) return { store, lookup };
      const { sql: sqlWithin, text } = transaction;
      return {
        store: storeOver(databaseWithin(database, text)),
        lookup: createLookup({ own: definition, definitions, sql: sqlWithin, isInTransaction: true }),
      };
    },
    inTransaction: (work) => resourceTurns.records.run(definition.name, () => inTransaction(work)),
  });
  const { supportsCreate, supportsUpdate, supportsDelete } = definition;
  const takesBatches = supportsCreate || supportsUpdate || supportsDelete;
  const item = {
    GET: show,
    HEAD: show,
    PUT: supportsUpdate ? update : undefined,
    PATCH: supportsUpdate ? update : undefined,
    DELETE: supportsDelete ? remove : undefined,
  };
  return {
    collection: operationsOf({ GET: list, HEAD: list, POST: supportsCreate ? create : undefined }),
    item: operationsOf(item),
    batch: operationsOf({ ...item, POST: takesBatches ? batch : undefined }),
  };
}

/** Returns what lists may be asked for. The relations that a base query in code includes are known only when that runs. */
function listShapes(definition: Definition, definitions: Definitions): () => ListShape {
  if (definition.code.baseQuery !== undefined)
    return () => listShapeOf(definition, definitions, baseQueryOf(definition).include);
  const shape = listShapeOf(definition, definitions);
  return () => shape;
}

function operationsOf(byMethod: Readonly<Record<string, Handler | undefined>>): Operations {
  return new Map(
    Object.entries(byMethod).flatMap(([method, operation]) => (operation ? [[method, operation]] : [])),
  );
}

function paramOf(ctx: ApiContext, name: string): string {
  const params = ctx["params"] as Readonly<Record<string, string | undefined>>;
  return params[name] ?? "";
}
