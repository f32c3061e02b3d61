import { maxPresentedBytes } from "../broker/message-limit.ts";
import type { TextSql } from "../db/text-sql.ts";
import type { JsonObject } from "../http/body.ts";
import type { Caller } from "../kit/caller.ts";
import { AppError, validationError } from "../kit/errors.ts";
import { inParts } from "../kit/parts.ts";
import { callCode, type RulesKey } from "../mapping/code-module.ts";
import type { Definition, Definitions, Field, Row } from "../mapping/definition.ts";
import { isNever } from "../querying/condition.ts";
import { isAdminFor, ownerFieldOf, ownerValue, type AccessConditions } from "./access.ts";
import { dataOf } from "./data.ts";
import { withIsoDates } from "./iso-dates.ts";
import { baseQueryOf } from "./query.ts";
import {
  keyOf,
  permitted,
  permittedVersion,
  refuseWritten,
  versionToDelete,
  type Target,
} from "./permitted.ts";
import { idOf } from "./record-id.ts";
import { checkReferences } from "./references.ts";
import { forbidden } from "./refusals.ts";
import { areCheckedTogether, areJudgedTogether, refuseEqual } from "./together.ts";
import type { Found, ManyStore, RecordStore } from "./record-store.ts";
import { rulesOf } from "./rules.ts";
import { compileRules, validate, type CompiledRules, type Lookup } from "../validation/validate.ts";

/** Database access of an operation: over the pool, or within a transaction. */
export interface DatabaseAccess {
  readonly store: RecordStore;
  /** Look-up for the rules `unique` and `exists`. */
  readonly lookup: Lookup;
  /** Writes of several records; only within a transaction. */
  readonly together?: Together;
}

/** Creates and deletes several records at a time. */
export interface Together extends ManyStore {
  readonly text: TextSql;
  /** Runs `work`. Returns undefined when it failed, with all its changes undone. */
  attempt<T>(work: () => Promise<T>): Promise<T | undefined>;
}

/** A request of a caller for one operation. */
export interface Request {
  readonly database: DatabaseAccess;
  readonly caller: Caller;
}

/** A request that creates or changes a record. */
export interface WriteRequest extends Request {
  /** Whether the request's body and the existing record together may be too large for an event. */
  readonly isLarge: boolean;
}

/**
 * The operations on single records of one resource.
 *
 * All throw AppError: `record.not_found`, `record.forbidden`, then errors of `check`,
 * `record.changed`, `validation.failed` and refusals of the database.
 */
export interface RecordOperations {
  /** Throws `record.forbidden` for a caller who may not create records, before the body is read. */
  refuseCreate(caller: Caller): void;
  show(request: Request, id: string): Promise<string>;
  create(request: WriteRequest, body: JsonObject): Promise<{ readonly id: string; readonly json: string }>;
  /**
   * Creates records together, where the result is the same.
   *
   * @returns Their JSON. Undefined, with nothing written, when they have to be created one by one,
   *   so that a fault gets its place.
   */
  createMany(request: Request, bodies: readonly JsonObject[]): Promise<readonly string[] | undefined>;
  /**
   * Deletes records together. Returns false, with nothing deleted, when they have to be deleted one
   * by one.
   */
  removeMany(request: Request, ids: readonly string[]): Promise<boolean>;
  /** @param readBody Called once the record may be changed. */
  update(request: WriteRequest, target: Target, readBody: () => Promise<JsonObject>): Promise<Updated>;
  remove(request: Request, target: Target): Promise<void>;
}

/** The record after an update. */
interface Updated {
  readonly json: string;
  /** False when there was nothing to change. */
  readonly isWritten: boolean;
}

interface Resource {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly access: AccessConditions;
}

/** Creates the operations. Compiles everything that does not depend on the request, once. */
export function createRecordOperations(resource: Resource): RecordOperations {
  const { definition, access } = resource;
  const createRules = lazyRules(definition, "createRules");
  const updateRules = lazyRules(definition, "updateRules");
  const settable = definition.fields.filter(({ isGenerated }) => isGenerated !== true);
  const changeable = settable.filter(({ isKey }) => !isKey);

  return {
    show: (request, id) => show(resource, request, id),

    refuseCreate(caller) {
      if (isNever(access.of(definition, ["create"], caller))) throw forbidden();
    },

    async create(request, body) {
      const { database, caller, isLarge } = request;
      const creatable = access.of(definition, ["create"], caller);
      if (isNever(creatable)) throw forbidden();
      const values = await validated(resource, request, body, { rules: createRules(), fields: settable });
      return database.store.create({
        data: { ...values, ...ownerOf(definition, values, caller) },
        userId: caller.id,
        access: creatable,
        include: baseQueryOf(definition).include,
        present: (record) => ({
          id: idOf(definition, record.access),
          json: sendable(definition, record, isLarge),
        }),
        isUndone: isLarge,
      });
    },

    createMany: (request, bodies) =>
      createTogether(resource, request, bodies, { rules: createRules(), fields: settable }),

    removeMany: (request, ids) => removeTogether(resource, request, ids),

    async update(request, { id, check }, readBody) {
      const { database, caller, isLarge } = request;
      const allowed = access.of(definition, ["read", "update"], caller);
      const version = await permittedVersion(definition, request, { id, check, allowed });
      const key = keyOf(definition, id);
      const data = await validated(resource, request, await readBody(), {
        rules: updateRules(),
        fields: changeable,
        ignoreKey: key,
      });
      if (Object.keys(data).length === 0)
        return { json: await show(resource, request, id), isWritten: false };
      const { where = {}, include } = baseQueryOf(definition);
      const json = await database.store.update(key, {
        where,
        access: allowed,
        data,
        userId: caller.id,
        include,
        present: (record) => sendable(definition, record, isLarge),
        isUndone: isLarge,
        version,
      });
      if (json === undefined)
        return refuseWritten(definition, request, { id, version, allowed, done: "change" });
      return { json, isWritten: true };
    },

    async remove(request, { id, check }) {
      const { database, caller } = request;
      const allowed = access.of(definition, ["read", "delete"], caller);
      const key = keyOf(definition, id);
      const version = await versionToDelete(definition, request, { id, check, allowed });
      const { where = {} } = baseQueryOf(definition);
      const conditions = { where, access: allowed, version };
      const isRemoved = !isNever(allowed) && (await database.store.remove(key, conditions));
      if (!isRemoved) await refuseWritten(definition, request, { id, version, allowed, done: "delete" });
    },
  };
}

async function show({ definition, access }: Resource, request: Request, id: string): Promise<string> {
  const { include } = baseQueryOf(definition);
  const allowed = access.of(definition, ["read"], request.caller);
  return (await permitted(definition, request, { id, allowed }, { include })).json();
}

/** Implements `RecordOperations.createMany`. */
async function createTogether(
  resource: Resource,
  request: Request,
  bodies: readonly JsonObject[],
  checks: { readonly rules: CompiledRules; readonly fields: readonly Field[] },
): Promise<readonly string[] | undefined> {
  const { definition, access } = resource;
  const { caller, database } = request;
  const { together } = database;
  const creatable = access.of(definition, ["create"], caller);
  const own = { own: definition, ...resource };
  const isApart = areCheckedTogether(own, checks.rules, caller);
  if (together === undefined || isNever(creatable) || !isApart) return undefined;
  const judged = { rules: checks.rules, creatable, caller, sql: together.text };
  if (!(await areJudgedTogether(own, judged))) return undefined;
  return together.attempt(async () => {
    const validations = bodies.map(async (body) => validated(resource, request, body, checks));
    // Waits for all of them, because none may query the database after a fault has ended the
    // attempt.
    await Promise.allSettled(validations);
    const many = (await Promise.all(validations)).map((values) => ({
      ...values,
      ...ownerOf(definition, values, caller),
    }));
    refuseEqual(definition, many);
    const { include } = baseQueryOf(definition);
    const present = (record: Found): string => sendable(definition, record, true);
    const made = await together.createMany(many, { access: creatable, include, present });
    if (made === undefined) throw new Error("They are created one by one");
    return made;
  });
}

/** Implements `RecordOperations.removeMany`. */
async function removeTogether(
  { definition, access }: Resource,
  { caller, database: { together } }: Request,
  ids: readonly string[],
): Promise<boolean> {
  const allowed = access.of(definition, ["read", "delete"], caller);
  if (together === undefined || isNever(allowed)) return false;
  const done = await together.attempt(async () => {
    const keys = ids.map((id) => keyOf(definition, id));
    const { where = {} } = baseQueryOf(definition);
    const areRemoved = await together.removeMany(keys, { where, access: allowed });
    if (!areRemoved) throw new Error("Not all of them are there");
    return true;
  });
  return done === true;
}

/**
 * Returns the rules, compiled at the first call. A failure is tried again, and fails a request, not
 * the start.
 */
function lazyRules(definition: Definition, key: RulesKey): () => CompiledRules {
  const compile = (): CompiledRules => {
    const rules = rulesOf(definition, key);
    return callCode(definition, key, () => compileRules(rules));
  };
  let known: CompiledRules | undefined;
  return () => (known ??= compile());
}

async function validated(
  { definition, definitions }: Resource,
  { database: { lookup }, caller: { id: userId } }: Request,
  body: JsonObject,
  {
    rules,
    fields,
    ignoreKey,
  }: { readonly rules: CompiledRules; readonly fields: readonly Field[]; readonly ignoreKey?: unknown },
): Promise<Row> {
  const result = await validate(rules, body, { lookup, ignoreKey, userId });
  if (result.kind === "invalid") throw validationError(result.errors);
  const values = withIsoDates(definition, rules, result.values);
  const data = await inParts(userId, dataOf(fields, values, definition));
  await checkReferences({ definition, definitions, rules, data, lookup });
  return data;
}

/**
 * Returns the owner of a new record. Only an admin may name another owner, where the rules contain
 * the field.
 */
function ownerOf(definition: Definition, values: Row, caller: Caller): Row {
  const owner = ownerFieldOf(definition);
  if (owner === undefined) return {};
  if (Object.hasOwn(values, owner.name) && isAdminFor(definition, caller)) return {};
  return { [owner.name]: ownerValue(owner, caller) };
}

/**
 * Returns a written record as JSON.
 *
 * @throws AppError when its event would be too large for the broker and the error undoes the write.
 */
function sendable({ code, triggers }: Definition, record: Found, isLarge: boolean): string {
  const json = record.json();
  const canRefuse = code.transform !== undefined || isLarge;
  // A character takes at most three bytes, so most texts need not be counted.
  if (!canRefuse || triggers.length === 0 || json.length * 3 <= maxPresentedBytes) return json;
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxPresentedBytes) return json;
  throw new AppError(
    "record.too_large",
    `The record would be ${bytes} bytes of JSON, and one that webhooks report may be ${maxPresentedBytes}. ` +
      "Nothing was written. Send less, or keep large values elsewhere and their address here.",
  );
}
