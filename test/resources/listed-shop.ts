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

/** A table made by others: types narrower than their field, references without a constraint. */
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

/** Returns the shop with one of its definitions changed. */
export function shopWith(name: string, changes: Partial<Definition>): Definitions {
  return new Map([...shop, [name, { ...(shop.get(name) as Definition), ...changes }]]);
}

/** Creates the tables; see `serving-api.ts` for the users 1, 7 and 8. */
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

export const token = (last: string): string => `00000000-0000-4000-8000-00000000000${last}`;

/** Creates sales A to D of user 7, E of user 8, and F, which the base query leaves out. */
export async function fillShop(served: ServedDatabase): Promise<void> {
  await served.sql(
    `INSERT INTO sales (reference, amount, weight, serial, state, urgent, due, token, tags, sizes, meta, blob, hidden, firm_id, user_id, is_gone)
     VALUES ('A', 10, 1.5, 9007199254740993, 'open', true, '2026-03-28T14:30:00Z', '${token("1")}', '{x,y}', '{1,2}',
       '{"plan": "pro", "deep": {"n": 5, "a.b": 1}, "list": ["p"], "none": null}', '\\x00', 'red', 1, 7, false),
     ('B', 20.5, -0.25, 9007199254740992, 'paid', false, '2026-03-29T00:00:00Z', '${token("2")}', '{y,"a,b"}', '{}',
       '{"plan": "Pro 100%", "deep": {"n": 10}}', NULL, 'green', 2, 7, false),
     ('C', NULL, NULL, NULL, 'open', NULL, NULL, NULL, '{}', '{3}', NULL, NULL, 'blue', NULL, 7, false),
     ('D', 10, 'NaN', -1, 'paid', true, '1969-12-31T23:59:59.999Z', NULL, '{}', '{2}', '[1]', NULL, 'red', 3, 7, false),
     ('E', 99, 1.5, 1, 'open', true, '2026-03-28T14:30:00Z', NULL, '{x}', '{}', NULL, NULL, 'red', 1, 8, false),
     ('F', 99, 1.5, 1, 'open', true, NULL, NULL, '{x}', '{}', NULL, NULL, 'red', 1, 7, true)`,
  );
  await served.sql(
    `INSERT INTO parts (sale_id, sku, quantity, user_id) VALUES
     (1, 'nut', 3, 7), (1, 'bolt', NULL, 7), (1, 'void', 1, 7), (1, 'theirs', 1, 8), (2, 'nut', 9, 7)`,
  );
  await served.sql(
    `INSERT INTO stocks (small, rough, mood, day, firm_id) VALUES (1, 0.1, 'calm', '2026-03-28', 1), (-5, 1.5, 'wild', '2026-03-29', 2)`,
  );
}
