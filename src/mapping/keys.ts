import type { Definition, Field } from "./definition.ts";

/** Returns whether no two records have the same value of the field. */
export function isUniqueAlone(field: Field, { keys }: Pick<Definition, "keys">): boolean {
  return field.isUnique || (field.isKey && keys.length === 1);
}
