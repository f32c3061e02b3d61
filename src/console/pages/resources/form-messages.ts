import { ApiError } from "../../api/api-error.ts";
import type { FormField } from "./form-fields.ts";

/** Returns the server's messages by field: `tags.0` belongs to `tags`. */
export function messagesByField(
  error: unknown,
  fields: readonly FormField[],
): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  if (!(error instanceof ApiError)) return found;
  for (const [path, messages] of Object.entries(error.fields)) {
    const name = path.split(".")[0] ?? path;
    if (fields.some((field) => field.name === name))
      found.set(name, [...(found.get(name) ?? []), ...messages]);
  }
  return found;
}

/** Returns messages that belong to no field of the form. */
export function restOf(
  error: unknown,
  byField: ReadonlyMap<string, readonly string[]>,
  fields: readonly FormField[],
): readonly string[] {
  if (!(error instanceof ApiError)) return [];
  return Object.entries(error.fields)
    .filter(([path]) => byField.size === 0 || !fields.some(({ name }) => name === path.split(".")[0]))
    .flatMap(([path, messages]) => messages.map((message) => `${path}: ${message}`));
}
