import type { Definition, Field } from "../../src/mapping/definition.ts";
import { definition, field } from "../support/definitions.ts";

/** Returns a plain field `it`, with the given changes. */
export function fieldOf({ name = "it", type, ...given }: Partial<Field> & Pick<Field, "type">): Field {
  return field(name, type, given);
}

/**
 * Returns a resource `orders` with the given keys only; its key is the field that declares it, else
 * the first.
 */
export function definitionOf({
  fields,
  ...given
}: Partial<Definition> & Pick<Definition, "fields">): Definition {
  const key = fields.find(({ isKey }) => isKey) ?? fields[0];
  if (key === undefined) throw new Error("a definition has at least one field");
  return { ...definition({ name: "orders", triggers: [], ...given, fields: [] }), fields, key, keys: [key] };
}
