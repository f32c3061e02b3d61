import type { Definition, Field } from "../../src/mapping/definition.ts";
import { definition, field } from "../support/definitions.ts";

/** A field `it`, plain but for what is given. */
export function fieldOf({ name = "it", type, ...given }: Partial<Field> & Pick<Field, "type">): Field {
  return field(name, type, given);
}

/**
 * A resource `orders` that declares nothing but what is given; its key is the field that says so,
 * else the first.
 */
export function definitionOf({
  fields,
  ...given
}: Partial<Definition> & Pick<Definition, "fields">): Definition {
  const key = fields.find(({ isKey }) => isKey) ?? fields[0];
  if (key === undefined) throw new Error("a definition has at least one field");
  return { ...definition({ name: "orders", triggers: [], ...given, fields: [] }), fields, key, keys: [key] };
}
