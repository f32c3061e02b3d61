import type { Definition, Field } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "./definitions.ts";

export const status = field("status", "Enum", {
  values: ["open", "paid"],
  default: { kind: "literal", value: "open" },
});
export const customerId = field("customer_id", "Int", {
  references: { resource: "customers", field: "id", as: "customer", onDelete: "restrict" },
});
export const customers = definition({ name: "customers", fields: [field("name", "String")] });
export const orders = definition({
  name: "orders",
  ownerColumn: "user_id",
  fields: [
    field("reference", "String", { length: 40, isUnique: true }),
    status,
    field("amount", "Decimal", { precision: 12, scale: 2 }),
    field("notes", "String", { isOptional: true }),
    field("user_id", "Int"),
    customerId,
  ],
});
/** Two managed resources: customers, and their orders. */
export const shop = definitionsOf(customers, orders);

/** Returns the definition with other fields beside its key. */
export function withFields(base: Definition, fields: readonly Field[]): Definition {
  return { ...base, fields: [base.key, ...fields] };
}
