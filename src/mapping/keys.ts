import type { Definition, Field } from "./definition.ts";

/** Returns whether the values of the field alone are unique. */
export function isUniqueAlone(field: Field, { keys }: Pick<Definition, "keys">): boolean {
  return field.isUnique || (field.isKey && keys.length === 1);
}
