import type { TestUser } from "../support/service.ts";

/** Mapping files of tables of every kind, and the SQL of the tables that svc does not create. */
export const tableFiles: Readonly<Record<string, string>> = {
  "prices.yaml": `
name: prices
model: Price
fields:
  sku: { type: String, id: true, length: 20 }
  day: { type: Date, id: true }
  amount: { type: Decimal, precision: 10, scale: 2 }
  note: { type: String, optional: true, unique: true }
triggers: [on_create, on_update, on_delete]
`,
  "carts.yaml": `
name: carts
model: Cart
fields:
  id: { type: Int, id: true }
  name: { type: String }
triggers: []
includes: [cart_goods]
`,
  "goods.yaml": `
name: goods
model: Good
fields:
  id: { type: Int, id: true }
  name: { type: String }
triggers: []
`,
  "cart-goods.yaml": `
name: cart-goods
model: CartGood
table: cart_goods
managed: false
fields:
  cart_id: { type: Int, id: true, references: carts.id }
  good_id: { type: Int, id: true, references: goods.id }
  quantity: { type: Int }
triggers: [on_create]
baseQuery: { include: { good: true } }
transform: { cart_id: cart_id, good_id: good_id, quantity: quantity, good: { name: good.name } }
`,
  "shifts.yaml": `
name: shifts
model: Shift
table: staff.shifts
unique: [[place, day]]
indexes: [{ fields: [day], where: "lasts > interval '0'" }]
fields:
  id: { type: Int, id: true }
  place: { type: String, length: 20 }
  day: { type: Date }
  starts: { type: Time, default: "08:30" }
  lasts: { type: Interval, default: PT8H }
  host: { type: String, native: inet, optional: true }
  hosts: { type: String, native: inet, list: true, default: [] }
  spot: { type: String, native: point, optional: true }
  words: { type: String, native: tsvector, optional: true }
  days: { type: Date, list: true, default: [] }
triggers: [on_create, on_update, on_delete]
access: { read: { day: { gte: 2026-01-01 } }, create: everyone }
`,
  "breaks.yaml": `
name: breaks
model: Break
table: staff.breaks
fields:
  id: { type: Int, id: true }
  shift_id: { type: Int, references: shifts.id }
triggers: [on_create]
baseQuery: { include: { shift: true } }
transform: { id: id, shift: { day: shift.day, starts: shift.starts, lasts: shift.lasts, host: shift.host } }
`,
  "totals.yaml": `
name: totals
model: Total
table: old.totals
managed: false
view: true
fields:
  Kind: { type: String, id: true, column: "The Kind" }
  sum: { type: BigInt }
triggers: []
access: { read: everyone }
`,
  "entries.yaml": `
name: entries
model: Entry
table: old.Entries
managed: false
fields:
  id: { type: Int, id: true, column: _id }
  kind: { type: Enum, values: [Big One, "small"], column: "The Kind" }
  kinds: { type: Enum, values: [Big One, "small"], list: true, default: database }
  amount: { type: Int, column: 1st }
  twice: { type: Int, generated: true }
  code: { type: String, default: database, column: "straße" }
  order: { type: Int, default: database, column: select }
triggers: [on_create, on_update, on_delete]
`,
  "readings.yaml": `
name: readings
model: Reading
table: readings
managed: false
fields:
  sensor: { type: Int, id: true }
  region: { type: String, id: true }
  value: { type: Int }
triggers: [on_create, on_update, on_delete]
`,
};

export const tableSql = `
CREATE TABLE cart_goods (cart_id int, good_id int, quantity int NOT NULL, PRIMARY KEY (cart_id, good_id));
CREATE SCHEMA old;
CREATE TYPE old."Kind of" AS ENUM ('Big One', 'small');
CREATE DOMAIN old."Zähler" AS int CHECK (VALUE < 1000);
CREATE DOMAIN old.counter AS old."Zähler";
CREATE TABLE old."Entries" (
  _id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  "The Kind" old."Kind of" NOT NULL,
  kinds old."Kind of"[] NOT NULL DEFAULT '{small}',
  "1st" old.counter NOT NULL,
  twice int GENERATED ALWAYS AS ("1st" * 2) STORED,
  "straße" text NOT NULL DEFAULT md5('1'),
  "select" int NOT NULL DEFAULT 5
);
CREATE VIEW old.totals AS SELECT "The Kind"::text, sum("1st") FROM old."Entries" GROUP BY ROLLUP (1);
CREATE TABLE readings (sensor int, region text, value int, PRIMARY KEY (sensor, region)) PARTITION BY LIST (region);
CREATE TABLE readings_north PARTITION OF readings FOR VALUES IN ('north');
CREATE TABLE readings_south PARTITION OF readings FOR VALUES IN ('south');
`;

/** Reads the keys of the totals page by page, to the last one and back again. */
export async function totalsByPage(user: TestUser, sort: string): Promise<readonly unknown[]> {
  const kinds: unknown[] = [];
  let link: "next_cursor" | "prev_cursor" = "next_cursor";
  for (let cursor: string | null = ""; cursor !== null && kinds.length < 9;) {
    const { body } = await user.request("GET", `/resources/totals?per_page=1&sort=${sort}&cursor=${cursor}`);
    kinds.push(body.data[0]?.Kind);
    if (body.next_cursor === null) link = "prev_cursor";
    cursor = body[link];
  }
  return kinds;
}
