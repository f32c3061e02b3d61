import type { Definition, Field } from "../../src/mapping/definition.ts";
import { ownersOnly } from "../support/definitions.ts";

/** A field `it`, plain but for what is given. */
export function fieldOf(given: Partial<Field> & Pick<Field, "type">): Field {
  const name = given.name ?? "it";
  return {
    name,
    column: name,
    isList: false,
    isOptional: false,
    isKey: false,
    isUnique: false,
    isIndexed: false,
    isUpdatedAt: false,
    ...given,
  };
}

/** A resource `orders` that declares nothing but what is given; its key is the field that says so, else the first. */
export function definitionOf(given: Partial<Definition> & Pick<Definition, "fields">): Definition {
  const key = given.fields.find((field) => field.isKey) ?? given.fields[0];
  if (key === undefined) throw new Error("a definition has at least one field");
  return {
    file: "resources/orders.yaml",
    name: "orders",
    model: "Order",
    table: "orders",
    isManaged: true,
    key,
    relations: [],
    triggers: [],
    isAdmin: { kind: "flag" },
    searchableColumns: [],
    includes: [],
    access: ownersOnly,
    count: "exact",
    baseQuery: {},
    supportsCreate: true,
    supportsUpdate: true,
    supportsDelete: true,
    code: {},
    remark: (_path, message) => message,
    ...given,
  };
}
