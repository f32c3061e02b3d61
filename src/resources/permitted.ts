import { databaseFaultOf } from "../db/database-fault.ts";
import { recordChanged } from "../http/conditional.ts";
import { shortened } from "../kit/did-you-mean.ts";
import { AppError } from "../kit/errors.ts";
import type { Definition } from "../mapping/definition.ts";
import type { Condition } from "../querying/condition.ts";
import { baseQueryOf } from "./query.ts";
import { parseId } from "./record-id.ts";
import type { Found, RecordRead, RecordStore } from "./record-store.ts";
import { forbidden, leftOut } from "./refusals.ts";

/** The id of a record, and the check of its entity tag. */
export interface Target {
  readonly id: string;
  /** Throws when the record with this JSON does not meet the conditions of the request. */
  readonly check?: ((json: string) => void) | undefined;
}

/** The part of a request that these functions use. */
interface ReadRequest {
  readonly database: { readonly store: RecordStore };
}

/** Returns the key of an id; throws `record.not_found` when no record can have it. */
export function keyOf(definition: Definition, id: string): unknown {
  const key = parseId(definition, id);
  if (key === undefined) throw unknownRecord(definition, id);
  return key;
}

/** A record, and the condition under which the caller may use it. */
interface Permission {
  readonly id: string;
  readonly allowed: Condition;
}

/** Reads the record. Throws a 404 without the record, and a 403 when the caller may not use it. */
export async function permitted(
  definition: Definition,
  { database }: ReadRequest,
  { id, allowed }: Permission,
  shape: RecordRead["shape"],
): Promise<Found> {
  const { where } = baseQueryOf(definition);
  const found = await database.store.find(keyOf(definition, id), { where, shape, access: allowed });
  if (found === undefined) throw unknownRecord(definition, id);
  if (!found.isAllowed) throw forbidden();
  return found;
}

/**
 * Checks that the caller may change the record, and that its version meets the conditions.
 *
 * @returns The version for the statement that writes; undefined without a condition.
 */
export async function permittedVersion(
  definition: Definition,
  request: ReadRequest,
  { id, check, allowed }: Permission & Target,
): Promise<string | undefined> {
  if (check === undefined) {
    await permitted(definition, request, { id, allowed }, "access");
    return undefined;
  }
  // Reads the version before the record, so that a change in between results in another version.
  const version = await request.database.store.version(keyOf(definition, id)).catch((error: unknown) => {
    throw databaseFaultOf(error).kind === "bad_value" ? unknownRecord(definition, id) : error;
  });
  const { include } = baseQueryOf(definition);
  check((await permitted(definition, request, { id, allowed }, { include })).json());
  // A record that has just been created has no version yet, and no record matches the empty one.
  return version ?? "";
}

/**
 * Does the same before a delete, but only for a condition or for a key that its column may refuse.
 * Such a key would end the transaction of a batch. Every other successful delete is one statement.
 */
export async function versionToDelete(
  definition: Definition,
  request: ReadRequest,
  target: Permission & Target,
): Promise<string | undefined> {
  const isUnsure = definition.keys.some(({ native }) => native !== undefined);
  if (target.check === undefined && !isUnsure) return undefined;
  return permittedVersion(definition, request, target);
}

/** Throws the reason why a write found nothing to change, or was left out by the table. */
export async function refuseWritten(
  definition: Definition,
  request: ReadRequest,
  {
    id,
    allowed,
    version,
    done,
  }: Permission & { readonly version: string | undefined; readonly done: "change" | "delete" },
): Promise<never> {
  await permitted(definition, request, { id, allowed }, "access");
  const isSame =
    version === undefined || (await request.database.store.version(keyOf(definition, id))) === version;
  throw isSame ? leftOut(definition.table, done) : recordChanged();
}

function unknownRecord({ name }: Definition, id: string): AppError {
  return new AppError("record.not_found", `The ${name} record ${shortened(id)} could not be found.`);
}
