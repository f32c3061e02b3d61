import { attempt, type InTransaction } from "../db/transaction.ts";
import { answerUnsupported } from "../http/error-body.ts";
import { refuseParameters } from "../http/parameter-check.ts";
import { requireResourceScope } from "../http/scope-check.ts";
import { paramOf, type ApiContext, type ApiRouter } from "../http/state.ts";
import { AppError } from "../kit/errors.ts";
import type { Definition } from "../mapping/definition.ts";
import type { Cursors } from "../querying/cursor.ts";
import { parseKey } from "./coerce.ts";
import { createListOperation } from "./list-route.ts";
import { createLookup } from "./lookup.ts";
import type { Together } from "./record-operations.ts";
import { createRecordHandlers, type Handler, type RecordRoutesOptions } from "./record-routes.ts";
import { takingTurns, type RecordTurns } from "./store-turns.ts";
import { databaseWithin, type RecordDatabase } from "./record-database.ts";
import { createStore } from "./store.ts";
import { createViews } from "./record-view.ts";

interface ResourceRoutesOptions extends Omit<
  RecordRoutesOptions,
  "definition" | "databaseFor" | "inTransactionFor"
> {
  readonly database: RecordDatabase;
  readonly maxPerPage: number;
  readonly inTransaction: InTransaction;
  readonly recordTurns: RecordTurns;
  readonly cursors: Cursors;
}

/** Handlers by method. The methods are those of the header `Allow`. */
type Operations = ReadonlyMap<string, Handler>;

/**
 * Adds `resources`: the listing, and six operations on each one (docs/api.md, "Lists" and "Single
 * records and writes").
 */
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
    requireResourceScope(ctx, name);
    return found;
  };

  router.get("/resources", (ctx) => {
    ctx.body = { data: listing };
  });
  // Handles all methods: an unknown resource is a 404, also for a method that no resource has.
  router.all("/resources/:name", (ctx) => run(ctx, servedBy(ctx).collection));
  router.all("/resources/:name/:id", (ctx) => {
    const { item, batch } = servedBy(ctx);
    // A record may have the key `batch`, but a POST is never about a record.
    return run(ctx, paramOf(ctx, "id") === "batch" ? batch : item);
  });
}

async function run(ctx: ApiContext, operations: Operations): Promise<void> {
  const operation = operations.get(ctx.method);
  if (operation === undefined) return answerUnsupported(ctx, [...operations.keys()]);
  await operation(ctx);
}

/** The operations on a resource, on a record, and on the path that batches share with a record. */
interface Served {
  readonly collection: Operations;
  readonly item: Operations;
  readonly batch: Operations;
}

/** Creates the operations. Compiles everything that does not depend on the request, once. */
function serve(definition: Definition, options: ResourceRoutesOptions): Served {
  const { definitions, database, recordTurns, access, inTransaction } = options;
  const views = createViews(definition, definitions);
  const storeOver = (over: RecordDatabase): ReturnType<typeof createStore> =>
    createStore({ definition, definitions, views, database: over });
  const store = storeOver(database);
  const hasty = storeOver({ ...database, ...database.hasty });
  const { name } = definition;
  const list = createListOperation({ definition, store, ...options });
  const asking = { own: definition, definitions, access };
  const lookupFor = createLookup({ ...asking, over: database });
  const { show, create, update, remove, batch } = createRecordHandlers({
    ...options,
    definition,
    databaseFor(caller, transaction) {
      if (transaction === undefined) {
        const turns = { name, userId: caller.id, turns: recordTurns };
        return { store: takingTurns(store, hasty, turns), lookup: lookupFor(caller) };
      }
      const { sql, text } = transaction;
      const within = storeOver(databaseWithin(database, transaction));
      const together: Together = { ...within, text, attempt: (work) => attempt(sql, work) };
      return {
        store: within,
        lookup: createLookup({ ...asking, over: { within: transaction } })(caller),
        together,
      };
    },
    inTransactionFor:
      ({ id }) =>
      (work) =>
        recordTurns.runWrite(name, id, (isHasty) =>
          (isHasty ? database.hasty.transact : inTransaction)(work),
        ),
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
    collection: operationsOf({ POST: supportsCreate ? create : undefined }, { GET: list, HEAD: list }),
    item: operationsOf(item),
    batch: operationsOf({
      // A record may have the key `batch` where keys are texts.
      ...(takesBatches && parseKey(definition.key, "batch") === undefined ? {} : item),
      POST: takesBatches ? batch : undefined,
    }),
  };
}

/**
 * Returns the operations by method.
 *
 * @param reading Operations that read the parameters of the request; the others refuse parameters.
 */
function operationsOf(
  byMethod: Readonly<Record<string, Handler | undefined>>,
  reading: Readonly<Record<string, Handler>> = {},
): Operations {
  const others = Object.entries(byMethod).flatMap(([method, operation]): readonly [string, Handler][] => {
    if (operation === undefined) return [];
    const guarded: Handler = (ctx) => {
      refuseParameters(ctx);
      return operation(ctx);
    };
    return [[method, guarded]];
  });
  return new Map([...Object.entries(reading), ...others]);
}
