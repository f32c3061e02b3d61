import { maxPresentedBytes } from "../broker/message-limit.ts";
import type { JsonObject } from "../http/body.ts";
import { entityTagOf, recordChanged } from "../http/conditional.ts";
import type { Caller } from "../kit/caller.ts";
import { AppError, validationError } from "../kit/errors.ts";
import { callCode } from "../mapping/code-module.ts";
import type { Definition, Field, Row } from "../mapping/definition.ts";
import { mayTouch, ownerFieldOf, ownerFilter, ownerValue } from "./access.ts";
import { parseKey } from "./coerce.ts";
import { dataOf } from "./data.ts";
import { allOf, baseQueryOf } from "./query.ts";
import type { Found, RecordStore, Shape } from "./record-store.ts";
import {
  compileRules,
  createRulesOf,
  updateRulesOf,
  validate,
  type CompiledRules,
  type Lookup,
} from "./rules.ts";

/** How an operation reaches the database: over the pool, or within a transaction. */
export interface Reach {
  readonly store: RecordStore;
  /** Answers the rules `unique` and `exists`. */
  readonly lookup: Lookup;
}

/** An operation of a caller's. */
export interface Request {
  readonly reach: Reach;
  readonly caller: Caller;
}

export interface WriteRequest extends Request {
  /** Whether what was sent, with what the record has already, may make it too large for an event. */
  readonly isLarge: boolean;
}

/** A record by its key as a text, and what it must be like. */
export interface Target {
  readonly id: string;
  /** Throws when the record, of which it gets the entity tag, is not the one that the caller means. */
  readonly check?: ((tag: string) => void) | undefined;
}

/**
 * What is done with single records of one resource.
 *
 * All throw AppError: `record.not_found`, `record.forbidden`, then what `check` throws, `record.changed`, `validation.failed` and what the
 * database refuses.
 */
export interface RecordOperations {
  show(request: Request, id: string): Promise<string>;
  create(request: WriteRequest, body: JsonObject): Promise<{ readonly id: string; readonly json: string }>;
  /** @param readBody Called when the record may be changed. */
  update(request: WriteRequest, target: Target, readBody: () => Promise<JsonObject>): Promise<Updated>;
  remove(request: Request, target: Target): Promise<void>;
}

export interface Updated {
  readonly json: string;
  /** False when nothing was to be changed. */
  readonly isWritten: boolean;
}

/** Compiles what does not depend on the request, once. */
export function createRecordOperations(definition: Definition): RecordOperations {
  const createRules = lazily(() =>
    callCode({ definition, name: "createRules", call: () => compileRules(createRulesOf(definition)) }),
  );
  const updateRules = lazily(() =>
    callCode({ definition, name: "updateRules", call: () => compileRules(updateRulesOf(definition)) }),
  );
  const owner = ownerFieldOf(definition);
  const changeable = definition.fields.filter(({ isKey }) => !isKey);

  return {
    async show(request, id) {
      const { include } = baseQueryOf(definition);
      return (await permitted(definition, request, id, { include })).json();
    },

    async create({ reach, caller, isLarge }, body) {
      const values = await validated(body, { rules: createRules(), fields: definition.fields, reach });
      const own = owner === undefined ? {} : { [owner.name]: ownerValue(owner, caller) };
      return reach.store.create({
        data: { ...values, ...own },
        include: baseQueryOf(definition).include,
        present: (record) => ({
          id: String(record.access[definition.key.name]),
          json: sendable(definition, record, isLarge),
        }),
        isUndone: isLarge,
      });
    },

    async update(request, { id, check }, readBody) {
      const { reach, caller, isLarge } = request;
      const { where, include } = baseQueryOf(definition);
      const key = keyOf(definition, id);
      const version = await permittedVersion(definition, request, { id, check });
      const body = await readBody();
      const data = await validated(body, { rules: updateRules(), fields: changeable, reach, ignoreKey: key });
      if (Object.keys(data).length === 0) {
        const unchanged = await permitted(definition, request, id, { include });
        return { json: unchanged.json(), isWritten: false };
      }
      const own = ownerFilter(definition, caller);
      if (own === "nothing") throw unknownRecord(definition, id);
      const json = await reach.store.update(key, {
        where: allOf([where, own]),
        data,
        include,
        present: (record) => sendable(definition, record, isLarge),
        isUndone: isLarge,
        version,
      });
      if (json === undefined) return refuseWritten(definition, request, { id, version });
      return { json, isWritten: true };
    },

    async remove(request, { id, check }) {
      const { reach, caller } = request;
      const { where } = baseQueryOf(definition);
      const key = keyOf(definition, id);
      // Asked for beforehand only with a condition: one statement for every other delete that succeeds.
      const version = check && (await permittedVersion(definition, request, { id, check }));
      const own = ownerFilter(definition, caller);
      const isRemoved = own !== "nothing" && (await reach.store.remove(key, allOf([where, own]), version));
      if (!isRemoved) await refuseWritten(definition, request, { id, version });
    },
  };
}

/** Computed when first asked for, and again only after a failure: a fault in a code module costs a request, not the start. */
function lazily<T>(compute: () => T): () => T {
  let known: { readonly value: T } | undefined;
  return () => (known ??= { value: compute() }).value;
}

function keyOf(definition: Definition, id: string): unknown {
  const key = parseKey(definition.key, id);
  if (key === undefined) throw unknownRecord(definition, id);
  return key;
}

/** The record; throws when it is not there (404) or not for the caller (403). */
async function permitted(
  definition: Definition,
  { reach, caller }: Request,
  id: string,
  shape: Shape,
): Promise<Found> {
  const found = await reach.store.find(keyOf(definition, id), baseQueryOf(definition).where, shape);
  if (found === undefined) throw unknownRecord(definition, id);
  if (!mayTouch(definition, caller, found.access))
    throw new AppError("record.forbidden", "This action is unauthorized.");
  return found;
}

/**
 * Makes sure that the caller may change the record, and that it is the one that is meant.
 *
 * @returns Its version, for the statement that writes; undefined without a condition.
 */
async function permittedVersion(
  definition: Definition,
  request: Request,
  { id, check }: Target,
): Promise<string | undefined> {
  if (check === undefined) {
    await permitted(definition, request, id, "access");
    return undefined;
  }
  // Before the record: what changes in between is then of another version.
  const version = await request.reach.store.version(keyOf(definition, id));
  const { include } = baseQueryOf(definition);
  check(entityTagOf((await permitted(definition, request, id, { include })).json()));
  // One that has just been made has no version, and nothing is of that one.
  return version ?? "";
}

/** Says why a write found nothing to change. */
async function refuseWritten(
  definition: Definition,
  request: Request,
  { id, version }: { readonly id: string; readonly version: string | undefined },
): Promise<never> {
  await permitted(definition, request, id, "access");
  throw version === undefined ? unknownRecord(definition, id) : recordChanged();
}

/** The part of a body that may be written. */
async function validated(
  body: JsonObject,
  {
    rules,
    fields,
    reach,
    ignoreKey,
  }: {
    readonly rules: CompiledRules;
    readonly fields: readonly Field[];
    readonly reach: Reach;
    readonly ignoreKey?: unknown;
  },
): Promise<Row> {
  const result = await validate(rules, body, { lookup: reach.lookup, ignoreKey });
  if (result.kind === "invalid") throw validationError(result.errors);
  return dataOf(fields, result.values);
}

/**
 * A written record as JSON.
 *
 * @throws AppError when its event would be too large for the broker and the write is undone by that.
 */
function sendable({ code, triggers }: Definition, record: Found, isLarge: boolean): string {
  const json = record.json();
  const canRefuse = code.transform !== undefined || isLarge;
  // A character takes at most three bytes: most need not be counted.
  if (!canRefuse || triggers.length === 0 || json.length * 3 <= maxPresentedBytes) return json;
  const bytes = Buffer.byteLength(json);
  if (bytes <= maxPresentedBytes) return json;
  throw new AppError(
    "record.too_large",
    `The record would be ${bytes} bytes of JSON, and one that webhooks are told of may be ${maxPresentedBytes}. ` +
      "Nothing was written. Send less, or keep large values elsewhere and their address here.",
  );
}

function unknownRecord({ name }: Definition, id: string): AppError {
  return new AppError("record.not_found", `The ${name} record ${id} could not be found.`);
}
