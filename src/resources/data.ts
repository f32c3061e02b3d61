import { validationError } from "../kit/errors.ts";
import type { Steps } from "../kit/parts.ts";
import { coerce } from "./coerce.ts";
import type { Definition, Field, Row } from "../mapping/definition.ts";
import { displayName } from "../validation/values.ts";

/**
 * Returns the values to write, in the form for Prisma: the validated values of fields. Everything
 * else, such as a password confirmation, is dropped here.
 *
 * @param keys The fields of the resource's key. Default: no key.
 * @throws AppError `validation.failed` for values that the field's type cannot hold, and for a key
 *   that no address can contain.
 */
export function* dataOf(
  fields: readonly Field[],
  values: Readonly<Record<string, unknown>>,
  { keys = [], isManaged = true }: Partial<Pick<Definition, "keys" | "isManaged">> = {},
): Steps<Row> {
  const data: Record<string, unknown> = {};
  const errors: Record<string, readonly string[]> = {};
  for (const field of fields) {
    if (!Object.hasOwn(values, field.name)) continue;
    const coerced = yield* coerce(field, values[field.name], isManaged);
    if (coerced.kind === "refused") Object.assign(errors, coerced.errors);
    else if (keys.length === 1 && keys[0]?.name === field.name && isLost(coerced.value))
      errors[field.name] = [
        `The ${displayName(field.name)} field must not be empty, "." or "..": a record with such a key has no address.`,
      ];
    else data[field.name] = coerced.value;
  }
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return data;
}

/**
 * Returns whether a key cannot be part of a path. Clients change a path with such a key before they
 * send it, percent-encoded or not.
 */
function isLost(key: unknown): boolean {
  return key === "" || key === "." || key === "..";
}
