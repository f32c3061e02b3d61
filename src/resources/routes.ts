import type { Sql } from "../db/sql.ts";
import { AppError, validationError } from "../kit/errors.ts";
import { maxPresentedBytes } from "../broker/message-limit.ts";
import { readJsonBody } from "../http/body.ts";
import { answerUnsupported } from "../http/error-body.ts";
import { requireResourceScope } from "../http/scope-check.ts";
import type { ApiContext, ApiRouter } from "../http/state.ts";
import type { UrlOf } from "../http/url-of.ts";
import { mayTouch, ownerFieldOf, ownerFilter, ownerValue } from "./access.ts";
import type { Turns } from "../kit/turns.ts";
import { takingTurns, type ResourceTurns } from "./store-turns.ts";
import { callCode } from "../mapping/code-module.ts";
import { parseKey } from "./coerce.ts";
import { dataOf } from "./data.ts";
import type { Definition, Definitions, Field, Row } from "../mapping/definition.ts";
import { createLookup } from "./lookup.ts";
import { allOf, baseQueryOf } from "./query.ts";
import type { Cursors } from "../querying/cursor.ts";
import { compileRules, createRulesOf, updateRulesOf, validate, type CompiledRules } from "./rules.ts";
import { createListOperation } from "./list-route.ts";
import type { Found, Shape } from "./record-store.ts";
import { createStore, type RecordDatabase } from "./store.ts";
import { createViews } from "./view.ts";

export interface ResourceRoutesOptions {
  readonly definitions: Definitions;
  readonly database: RecordDatabase;
  /** Answers the rules `unique` and `exists`. */
  readonly sql: Sql;
  readonly bodyLimitBytes: number;
  readonly maxPerPage: number;
  /** Of users, at lists of all resources together. */
  readonly listTurns: Turns;
  readonly resourceTurns: ResourceTurns;
  /** For the page links. */
  readonly urlOf: UrlOf;
  readonly cursors: Cursors;
  /** Called after every successful write. */
  readonly onChange: () => void;
}

/** Bytes of a request's body that, with what the record has already, may make it too large for an event. */
const largeBodyBytes = 64 * 1024;

type Operation = (ctx: ApiContext) => Promise<void>;
/** By method; its keys are what `Allow` says. */
type Operations = ReadonlyMap<string, Operation>;

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

  const servedBy = (ctx: ApiContext): { readonly collection: Operations; readonly item: Operations } => {
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
  // All methods: an unknown resource is a 404 also for a method that no resource has.
  router.all("/resources/:name", (ctx) => run(ctx, servedBy(ctx).collection));
  router.all("/resources/:name/:id", (ctx) => run(ctx, servedBy(ctx).item));
}

async function run(ctx: ApiContext, operations: Operations): Promise<void> {
  const operation = operations.get(ctx.method);
  if (operation === undefined) return answerUnsupported(ctx, [...operations.keys()]);
  await operation(ctx);
}

/** Compiles what does not depend on the request, once. */
function serve(
  definition: Definition,
  options: ResourceRoutesOptions,
): { readonly collection: Operations; readonly item: Operations } {
  const { definitions, database, sql, bodyLimitBytes, resourceTurns, onChange } = options;
  const store = takingTurns(
    createStore({ definition, definitions, views: createViews(definition, definitions), database }),
    definition.name,
    resourceTurns,
  );
  const list = createListOperation({ definition, store, ...options });
  const lookup = createLookup({ own: definition, definitions, sql });
  const createRules = lazily(() =>
    callCode({ definition, name: "createRules", call: () => compileRules(createRulesOf(definition)) }),
  );
  const updateRules = lazily(() =>
    callCode({ definition, name: "updateRules", call: () => compileRules(updateRulesOf(definition)) }),
  );
  const owner = ownerFieldOf(definition);
  const changeable = definition.fields.filter(({ isKey }) => !isKey);
  async function show(ctx: ApiContext): Promise<void> {
    const { include } = baseQueryOf(definition);
    const found = await permitted(ctx, keyOf(ctx), { include });
    ctx.type = "json";
    ctx.body = found.json();
  }

  async function create(ctx: ApiContext): Promise<void> {
    const values = await validated(ctx, { rules: createRules(), fields: definition.fields });
    const own = owner === undefined ? {} : { [owner.name]: ownerValue(owner, ctx.state.caller) };
    const shown = await store.create({
      data: { ...values, ...own },
      include: baseQueryOf(definition).include,
      present(record) {
        ctx.state.recordId = String(record.access[definition.key.name]);
        return sendable(ctx, record);
      },
      isUndone: mayBeTooLarge(ctx),
    });
    onChange();
    ctx.status = 201;
    ctx.type = "json";
    ctx.body = shown;
  }

  async function update(ctx: ApiContext): Promise<void> {
    const key = keyOf(ctx);
    await permitted(ctx, key, "access");
    const data = await validated(ctx, { rules: updateRules(), fields: changeable, ignoreKey: key });
    if (Object.keys(data).length === 0) return show(ctx);
    const { where, include } = baseQueryOf(definition);
    const own = ownerFilter(definition, ctx.state.caller);
    const shown =
      own === "nothing"
        ? undefined
        : await store.update(key, {
            where: allOf([where, own]),
            data,
            include,
            present: (record) => sendable(ctx, record),
            isUndone: mayBeTooLarge(ctx),
          });
    if (shown === undefined) throw unknownRecord(ctx);
    onChange();
    ctx.type = "json";
    ctx.body = shown;
  }

  async function remove(ctx: ApiContext): Promise<void> {
    const key = keyOf(ctx);
    const own = ownerFilter(definition, ctx.state.caller);
    const isRemoved =
      own !== "nothing" && (await store.remove(key, allOf([baseQueryOf(definition).where, own])));
    if (!isRemoved) {
      // Asked for only now: one statement for every delete that succeeds.
      await permitted(ctx, key, "access");
      throw unknownRecord(ctx);
    }
    onChange();
    ctx.status = 204;
  }

  /** A small request adds too little to be worth a transaction: the relay refuses what such a one, or another program, makes too large. */
  function mayBeTooLarge({ request }: ApiContext): boolean {
    return definition.triggers.length > 0 && (request.length ?? Infinity) > largeBodyBytes;
  }

  /**
   * A written record as JSON.
   *
   * @throws AppError when its event would be too large for the broker and the write is undone by that.
   */
  function sendable(ctx: ApiContext, record: Found): string {
    const text = record.json();
    const canRefuse = definition.code.transform !== undefined || mayBeTooLarge(ctx);
    // A character takes at most three bytes: most need not be counted.
    if (!canRefuse || definition.triggers.length === 0 || text.length * 3 <= maxPresentedBytes) return text;
    const bytes = Buffer.byteLength(text);
    if (bytes <= maxPresentedBytes) return text;
    throw new AppError(
      "record.too_large",
      `The record would be ${bytes} bytes of JSON, and one that webhooks are told of may be ${maxPresentedBytes}. ` +
        "Nothing was written. Send less, or keep large values elsewhere and their address here.",
    );
  }

  function keyOf(ctx: ApiContext): unknown {
    const key = parseKey(definition.key, paramOf(ctx, "id"));
    if (key === undefined) throw unknownRecord(ctx);
    ctx.state.recordId = paramOf(ctx, "id");
    return key;
  }

  /** The record; throws when it is not there (404) or not for the caller (403). */
  async function permitted(ctx: ApiContext, key: unknown, shape: Shape): Promise<Found> {
    const found = await store.find(key, baseQueryOf(definition).where, shape);
    if (found === undefined) throw unknownRecord(ctx);
    if (!mayTouch(definition, ctx.state.caller, found.access))
      throw new AppError("record.forbidden", "This action is unauthorized.");
    return found;
  }

  /** The part of the request's body that may be written; throws 400, 413, 415 and 422. */
  async function validated(
    ctx: ApiContext,
    {
      rules,
      fields,
      ignoreKey,
    }: { readonly rules: CompiledRules; readonly fields: readonly Field[]; readonly ignoreKey?: unknown },
  ): Promise<Row> {
    const body = await readJsonBody(ctx, bodyLimitBytes);
    const result = await validate(rules, body, { lookup, ignoreKey });
    if (result.kind === "invalid") throw validationError(result.errors);
    return dataOf(fields, result.values);
  }

  return {
    collection: operationsOf({ GET: list, HEAD: list, POST: definition.supportsCreate ? create : undefined }),
    item: operationsOf({
      GET: show,
      HEAD: show,
      PUT: definition.supportsUpdate ? update : undefined,
      DELETE: definition.supportsDelete ? remove : undefined,
    }),
  };
}

/** Computed when first asked for, and again only after a failure: a fault in a code module costs a request, not the start. */
function lazily<T>(compute: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => (known ??= { value: compute() }).value;
}

function operationsOf(byMethod: Readonly<Record<string, Operation | undefined>>): Operations {
  return new Map(
    Object.entries(byMethod).flatMap(([method, operation]) => (operation ? [[method, operation]] : [])),
  );
}

function paramOf(ctx: ApiContext, name: string): string {
  const params = ctx["params"] as Readonly<Record<string, string | undefined>>;
  return params[name] ?? "";
}

function unknownRecord(ctx: ApiContext): AppError {
  return new AppError(
    "record.not_found",
    `The ${paramOf(ctx, "name")} record ${paramOf(ctx, "id")} could not be found.`,
  );
}
