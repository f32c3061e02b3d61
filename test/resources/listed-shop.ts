import type { Definition, Definitions, TransformNode } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { objectOf } from "../support/list-shop.ts";
import type { ServedDatabase } from "./serving.ts";

export type Shape = TransformNode & { readonly kind: "object" };

const firms = definition({
  name: "firms",
  fields: [
    field("name", "String", { isOptional: true }),
    field("secret", "String"),
    field("rank", "Int"),
    field("user_id", "Int"),
  ],
  ownerColumn: "user_id",
});

const parts = definition({
  name: "parts",
  fields: [
    field("sale_id", "Int", {
      isIndexed: true,
      references: { resource: "sales", field: "id", as: "sale", onDelete: "cascade" },
    }),
    field("sku", "String"),
    field("quantity", "Int", { isOptional: true }),
    field("user_id", "Int"),
  ],
  ownerColumn: "user_id",
  baseQuery: { where: { sku: { not: "void" } }, orderBy: [{ sku: "desc" }] },
  transform: objectOf({ part: "sku", number: "quantity" }),
});

const sales = definition({
  name: "sales",
  fields: [
    field("reference", "String"),
    field("amount", "Decimal", { isOptional: true, precision: 12, scale: 2 }),
    field("weight", "Float", { isOptional: true }),
    field("serial", "BigInt", { isOptional: true }),
    field("state", "Enum", { values: ["open", "paid"] }),
    field("urgent", "Boolean", { isOptional: true }),
    field("due", "DateTime", { isOptional: true }),
    field("token", "Uuid", { isOptional: true }),
    field("tags", "String", { isList: true }),
    field("sizes", "Int", { isList: true }),
    field("meta", "Json", { isOptional: true }),
    field("blob", "Bytes", { isOptional: true }),
    field("hidden", "String", { isOptional: true }),
    field("is_gone", "Boolean", { default: { kind: "literal", value: false } }),
    field("firm_id", "Int", {
      isOptional: true,
      references: { resource: "firms", field: "id", as: "firm", onDelete: "restrict" },
    }),
    field("user_id", "Int"),
  ],
  ownerColumn: "user_id",
  searchableColumns: ["reference"],
  includes: ["firm", "parts"],
  baseQuery: {
    where: { is_gone: false },
    include: { firm: true, parts: true },
    orderBy: [{ reference: "asc" }],
  },
  transform: objectOf({
    id: "id",
    reference: "reference",
    amount: "amount",
    weight: "weight",
    serial: "serial",
    state: "state",
    urgent: "urgent",
    due_at: "due",
    token: "token",
    tags: "tags",
    sizes: "sizes",
    meta: "meta",
    blob: "blob",
    kind: { value: "sale" },
    customer: { of: { name: "firm.name", rank: "firm.rank" } },
    skus: "parts.sku",
  }),
});

/** A table of somebody else's: types that take less than their field, references that nothing keeps. */
const stocks = definition({
  name: "stocks",
  isManaged: false,
  fields: [
    field("small", "Int"),
    field("rough", "Float"),
    field("mood", "String"),
    field("day", "DateTime"),
    field("firm_id", "Int", {
      references: { resource: "firms", field: "id", as: "firm", onDelete: "noAction" },
    }),
  ],
  baseQuery: { include: { firm: true } },
  transform: objectOf({
    id: "id",
    small: "small",
    rough: "rough",
    mood: "mood",
    day: "day",
    firm: "firm.name",
    rank: "firm.rank",
  }),
});

export const shop: Definitions = definitionsOf(firms, parts, sales, stocks);

/** The shop with one of its definitions changed. */
export function shopWith(name: string, changes: Partial<Definition>): Definitions {
  return new Map([...shop, [name, { ...(shop.get(name) as Definition), ...changes }]]);
}

/** Makes the tables; see `serving-api.ts` for the users 1, 7 and 8. */
export async function makeShop({ sql }: ServedDatabase): Promise<void> {
  await sql("CREATE TYPE mood AS ENUM ('calm', 'wild')");
  await sql(
    "CREATE TABLE firms (id serial PRIMARY KEY, name text, secret text NOT NULL, rank int NOT NULL, user_id int NOT NULL)",
  );
  await sql(`CREATE TABLE sales (id serial PRIMARY KEY, reference text NOT NULL, amount numeric(12,2), weight float8, serial bigint,
    state text NOT NULL DEFAULT 'open', urgent boolean, due timestamptz(3), token uuid, tags text[] NOT NULL DEFAULT '{}',
    sizes int[] NOT NULL DEFAULT '{}', meta jsonb, blob bytea, hidden text, is_gone boolean NOT NULL DEFAULT false,
    firm_id int REFERENCES firms, user_id int NOT NULL)`);
  await sql(`CREATE TABLE parts (id serial PRIMARY KEY, sale_id int NOT NULL REFERENCES sales ON DELETE CASCADE, sku text NOT NULL,
    quantity int, user_id int NOT NULL)`);
  await sql(
    "CREATE TABLE stocks (id serial PRIMARY KEY, small smallint NOT NULL, rough real NOT NULL, mood mood NOT NULL, day date NOT NULL, firm_id int NOT NULL)",
  );
  await sql(
    "INSERT INTO firms (name, secret, rank, user_id) VALUES ('Acme', 'alpha', 2, 7), ('Bolt', 'beta', 1, 8), (NULL, 'gamma', 3, 7)",
  );
}
