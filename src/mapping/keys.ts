import type { Definition, Field } from "./definition.ts";

export function isUniqueAlone(field: Field, { keys }: Pick<Definition, "keys">): boolean {
  return field.isUnique || (field.isKey && keys.length === 1);
}
