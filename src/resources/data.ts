import { validationError } from "../kit/errors.ts";
import { coerce } from "./coerce.ts";
import type { Field, Row } from "../mapping/definition.ts";

/**
 * Returns the values to write, as Prisma wants them: the validated ones that are fields. Everything
 * else in them, such as a password confirmation, stops here.
 *
 * @throws AppError `validation.failed` for values that the field's type cannot hold.
 */
export function dataOf(fields: readonly Field[], values: Readonly<Record<string, unknown>>): Row {
  const data: Record<string, unknown> = {};
  const errors: Record<string, readonly string[]> = {};
  for (const field of fields) {
    if (!Object.hasOwn(values, field.name)) continue;
    const coerced = coerce(field, values[field.name]);
    if (coerced.kind === "ok") data[field.name] = coerced.value;
    else Object.assign(errors, coerced.errors);
  }
  if (Object.keys(errors).length > 0) throw validationError(errors);
  return data;
}
