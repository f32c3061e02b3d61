import { parseEntityTags, type EntityTags } from "../http/conditional.ts";
import type { JsonObject } from "../http/body.ts";
import { shortened, unknownField } from "../kit/did-you-mean.ts";
import { validationError, type FieldErrors } from "../kit/errors.ts";
import { isObject } from "../kit/is-object.ts";
import { refuseFields } from "../kit/refuse-fields.ts";
import type { Definition } from "../mapping/definition.ts";
import { fill } from "../validation/messages.ts";

/** One operation of a batch, as in the request. */
export type BatchOperation =
  | { readonly method: "create"; readonly data: JsonObject }
  | ({ readonly method: "update"; readonly data: JsonObject } & OfRecord)
  | ({ readonly method: "delete" } & OfRecord);

interface OfRecord {
  readonly id: string;
  readonly ifMatch: EntityTags | undefined;
}

type Method = BatchOperation["method"];

/** Limit of the operations of one batch. */
export const maxOperations = 1000;

const maxFaults = 100;

const keysOf: Readonly<Record<Method, readonly string[]>> = {
  create: ["method", "data"],
  update: ["method", "id", "data", "if_match"],
  delete: ["method", "id", "if_match"],
};
const methods = Object.keys(keysOf) as readonly Method[];

/**
 * Reads the body of a batch. Makes all checks that need neither mapping file, rules nor records.
 *
 * @throws AppError `validation.failed`, its errors by place: `operations.3.method`.
 */
export function readBatch(body: JsonObject): readonly BatchOperation[] {
  const faults = new Map<string, string>();
  const { operations } = body;
  const place = "operations";
  if (operations === undefined || (Array.isArray(operations) && operations.length === 0))
    faults.set(place, fill("The :attribute field is required.", place));
  else if (!Array.isArray(operations)) faults.set(place, fill("The :attribute field must be a list.", place));
  else if (operations.length > maxOperations)
    faults.set(place, fill(`The :attribute field must not have more than ${maxOperations} items.`, place));
  const read =
    faults.size === 0
      ? (operations as readonly unknown[]).map((given, index) => readOperation(given, index, faults))
      : [];
  refuseFields(body, ["operations"], errorsOf(faults));
  return read.filter((operation) => operation !== undefined);
}

/**
 * Refuses operations that the resource does not support. Comes after the kept answer of an
 * `Idempotency-Key`, because a reload may have changed what it supports.
 *
 * @throws AppError `validation.failed`, its errors by place: `operations.3.method`.
 */
export function refuseUnsupported(operations: readonly BatchOperation[], definition: Definition): void {
  const { name, supportsCreate, supportsUpdate, supportsDelete } = definition;
  const supported = { create: supportsCreate, update: supportsUpdate, delete: supportsDelete };
  const faults = operations.flatMap(({ method }, index): readonly (readonly [string, string])[] =>
    supported[method]
      ? []
      : [[`operations.${index}.method`, `The resource ${name} does not support ${method}.`]],
  );
  if (faults.length > 0) throw validationError(errorsOf(faults.slice(0, maxFaults)));
}

function errorsOf(faults: Iterable<readonly [string, string]>): FieldErrors {
  return Object.fromEntries([...faults].map(([at, message]) => [at, [message]]));
}

/** Reads one operation. Returns undefined after a fault, or when there are enough faults. */
function readOperation(
  given: unknown,
  index: number,
  faults: Map<string, string>,
): BatchOperation | undefined {
  if (faults.size >= maxFaults) return undefined;
  const place = `operations.${index}`;
  const refuse = (key: string, message: string): undefined => {
    const at = key === "" ? place : `${place}.${key}`;
    faults.set(at, fill(message, at));
  };
  if (!isObject(given)) return refuse("", "The :attribute field must be an object.");
  const { method, id, data, if_match: ifMatch } = given;
  if (!isMethod(method))
    return refuse("method", "The selected :attribute is invalid; expected create, update or delete.");
  const extra = Object.keys(given).find((key) => !keysOf[method].includes(key));
  // Its name may contain a placeholder, so that the message is not filled.
  if (extra !== undefined) faults.set(`${place}.${shortened(extra)}`, unknownField(extra, keysOf[method]));
  if (method !== "delete" && !isObject(data))
    refuse("data", `The :attribute field ${data === undefined ? "is required" : "must be an object"}.`);
  if (method !== "create" && !isId(id))
    refuse(
      "id",
      `The :attribute field ${id === undefined ? "is required" : "must be a string or an integer"}.`,
    );
  const tags = typeof ifMatch === "string" ? parseEntityTags(ifMatch) : undefined;
  if (ifMatch !== undefined && tags === undefined && method !== "create")
    refuse("if_match", "The :attribute field must be * or entity tags in double quotes, as ETag gives them.");
  if (method === "create") return isObject(data) ? { method, data } : undefined;
  if (!isId(id)) return undefined;
  const ofRecord = { id: String(id), ifMatch: tags };
  if (method === "delete") return { method, ...ofRecord };
  return isObject(data) ? { method, data, ...ofRecord } : undefined;
}

function isMethod(value: unknown): value is Method {
  return methods.some((method) => method === value);
}

/** Returns whether a value can be an id. Keys in JSON are numbers or texts. */
function isId(value: unknown): value is string | number {
  return typeof value === "string" || Number.isSafeInteger(value);
}
