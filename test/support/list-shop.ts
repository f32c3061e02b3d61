import { listShapeOf, type ListShape } from "../../src/querying/shown-paths.ts";
import type { Definition, Definitions, TransformNode } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "./definitions.ts";

/** A transform in the form of a mapping file. */
export type Written =
  | string
  | { readonly value: unknown }
  | { readonly of: Readonly<Record<string, Written>> };

function nodeOf(written: Written): TransformNode {
  if (typeof written === "string") return { kind: "path", path: written.split(".") };
  if ("value" in written) return { kind: "value", value: written.value };
  return objectOf(written.of);
}

export function objectOf(of: Readonly<Record<string, Written>>): TransformNode & { readonly kind: "object" } {
  return { kind: "object", entries: Object.entries(of).map(([key, one]) => [key, nodeOf(one)]) };
}

const customers = definition({
  name: "customers",
  fields: [field("name", "String"), field("secret", "String"), field("vip", "Boolean", { isOptional: true })],
});

const lines = definition({
  name: "lines",
  fields: [
    field("order_id", "Int", {
      references: { resource: "orders", field: "id", as: "order", onDelete: "cascade" },
    }),
    field("sku", "String"),
    field("quantity", "Int", { isOptional: true }),
  ],
});

const orders = definition({
  name: "orders",
  fields: [
    field("reference", "String"),
    field("status", "Enum", { values: ["open", "paid", "shipped"] }),
    field("amount", "Decimal", { isOptional: true }),
    field("weight", "Float", { isOptional: true }),
    field("serial", "BigInt", { isOptional: true }),
    field("is_urgent", "Boolean", { isOptional: true }),
    field("due_at", "DateTime", { isOptional: true, column: "due" }),
    field("token", "Uuid", { isOptional: true }),
    field("tags", "String", { isList: true }),
    field("meta", "Json", { isOptional: true }),
    field("logs", "Json", { isList: true }),
    field("blob", "Bytes", { isOptional: true }),
    field("hidden", "String", { isOptional: true }),
    field("customer_id", "Int", {
      isOptional: true,
      references: { resource: "customers", field: "id", as: "customer", onDelete: "restrict" },
    }),
  ],
  baseQuery: { include: { customer: true, lines: true } },
  transform: objectOf({
    id: "id",
    reference: "reference",
    status: "status",
    amount: "amount",
    weight: "weight",
    serial: "serial",
    urgent: "is_urgent",
    due_at: "due_at",
    token: "token",
    tags: "tags",
    meta: "meta",
    logs: "logs",
    blob: "blob",
    kind: { value: "order" },
    customer: { of: { id: "customer.id", name: "customer.name", more: { of: { vip: "customer.vip" } } } },
    lines: "lines",
  }),
});

/** Returns orders with a customer and lines; `secret` and `hidden` are not shown. */
export function listShop(changes: Partial<Definition> = {}): {
  readonly definitions: Definitions;
  readonly orders: Definition;
  readonly shape: ListShape;
} {
  const definitions = definitionsOf({ ...orders, ...changes }, customers, lines);
  const changed = definitions.get("orders") as Definition;
  return { definitions, orders: changed, shape: listShapeOf(changed, definitions) };
}
