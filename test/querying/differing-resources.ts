import { Decimal } from "@prisma/client/runtime/client";
import type { Pool } from "pg";
import type { Definition, Definitions, Field } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { pick, type Random } from "../support/random.ts";

/** Values of a column, as PostgreSQL reads them, and operands for filters on it. */
interface Domain {
  readonly stored: readonly string[];
  /** In Prisma's types; without any, the field is not filtered. */
  readonly operands: readonly unknown[];
}

const texts = [
  "",
  "Ada",
  "ada",
  "ADA lovelace",
  "100%",
  "snake_case",
  "back\\slash\\",
  "naïve ß İ",
  "日本語 🐘",
  "a'b\"c",
];
const colours = ["red", "green", "deep blue"];
const days = ["2024-02-29", "1969-12-31", "0044-03-15", "9999-12-31"].map(
  (day) => new Date(`${day}T00:00:00Z`),
);
const moments = [
  new Date("2026-03-28T14:30:00.123Z"),
  new Date("2026-03-28T14:30:00.000Z"),
  new Date("0999-01-01T00:00:00.001Z"),
  new Date("1969-12-31T23:59:59.999Z"),
  ...days,
];
const storedMoments = [
  "2026-03-28 14:30:00.123",
  "2026-03-28 14:30:00.123456",
  "2026-03-28 14:30:00",
  "0999-01-01 00:00:00.001",
  "1969-12-31 23:59:59.999",
  "2024-02-29 00:00:00",
];
const uuids = ["00000000-0000-4000-8000-000000000001", "ffffffff-ffff-4fff-bfff-ffffffffffff"];
const documents = [
  "null",
  "true",
  "12345678901234567890",
  "1e400",
  '"text \\u00e9 \\ud83d\\ude00"',
  "[]",
  "{}",
  '{"b": 1, "a": {"10": [1, {"deep": null}], "2": "x"}, "__proto__": 1}',
  '[[1, 2.50], {"$type": "Json", "value": "1"}]',
].filter((text) => text !== "1e400");

const domains: Readonly<Record<string, Domain>> = {
  Int: { stored: ["0", "-1", "7", "2147483647", "-2147483648"], operands: [0, -1, 7, 8, 2147483647] },
  BigInt: {
    stored: ["0", "-1", "9007199254740991", "9007199254740993", "-9223372036854775808"],
    operands: [0, 7n, -1n, 9007199254740993n, -9223372036854775808n],
  },
  Float: {
    stored: ["0", "-0", "1.5", "0.1", "1e300", "-2.5e-300", "NaN", "Infinity", "-Infinity"],
    operands: [0, 1.5, 0.1, 1e300, -7, 3],
  },
  Decimal: {
    stored: ["0", "-0.50", "1.00", "12.345", "123456789012345678901234567890.123456789", "1e-20", "-1e30"],
    operands: [
      new Decimal("1"),
      "12.345",
      0,
      new Decimal("123456789012345678901234567890.123456789"),
      "-0.5",
    ],
  },
  String: { stored: texts, operands: [...texts, "nobody"] },
  Boolean: { stored: ["true", "false"], operands: [true, false] },
  DateTime: { stored: storedMoments, operands: moments },
  Json: { stored: documents, operands: [] },
  Bytes: {
    stored: ["\\x", "\\x00", "\\xdeadbeef00ff"],
    operands: [new Uint8Array(), Buffer.from("deadbeef00ff", "hex")],
  },
  Uuid: { stored: uuids, operands: uuids },
  Enum: { stored: colours, operands: colours },
  // Columns of other types.
  small: { stored: ["0", "-32768", "32767"], operands: [0, 32767, 5] },
  real: { stored: ["0.1", "1.5", "NaN", "-Infinity", "3e38"], operands: [1.5, 0.5, -2] },
  money: {
    stored: ["1.00", "1.5", "1.50", "NaN", "-77777777777.7777777777"],
    operands: ["1.5", new Decimal(1)],
  },
  fixed: { stored: ["1.50", "-20.00"], operands: ["1.5", "-20", new Decimal("0.10")] },
  padded: { stored: ["ab", "abcde", ""], operands: ["ab", "abcde", "ab   "] },
  folded: { stored: ["Ada", "ADA", "bob", "100%"], operands: ["ada", "BOB", "100%"] },
  address: { stored: ["10.0.0.1", "10.0.0.0/8", "::1"], operands: ["10.0.0.1", "::1"] },
  day: { stored: ["2024-02-29", "1969-12-31", "0999-01-01"], operands: days },
  Date: { stored: ["2024-02-29", "1969-12-31", "0999-01-01", "9999-12-31"], operands: days },
  // The Prisma client reads milliseconds.
  Time: {
    stored: ["00:00", "08:30:00.5", "14:30:00.123", "23:59:59.999"],
    operands: ["00:00:00", "08:30:00.500", "14:30:00.123"].map((time) => new Date(`1970-01-01T${time}Z`)),
  },
  early: {
    stored: [
      "0044-03-15 12:00:00 BC",
      "12026-01-01 00:00:00",
      "infinity",
      "-infinity",
      "2026-03-28 14:30:00",
    ],
    operands: [new Date("2026-03-28T14:30:00Z")],
  },
};

/** A column of a generated table. */
interface Column {
  readonly field: Field;
  readonly native: string;
  readonly domain: Domain;
}

function column(
  name: string,
  type: Field["type"],
  native: string,
  overrides: Partial<Field> & { readonly domain?: string } = {},
): Column {
  const { domain = type, ...rest } = overrides;
  return { field: field(name, type, rest), native, domain: domains[domain] as Domain };
}

/** Returns each type as a required field, an optional one and a list. */
function thrice(
  name: string,
  type: Field["type"],
  native: string,
  rest: Partial<Field> & { readonly domain?: string } = {},
): Column[] {
  return [
    column(name, type, `${native} NOT NULL`, rest),
    column(`${name}_opt`, type, native, { ...rest, isOptional: true, column: `Opt ${name}` }),
    column(`${name}_list`, type, `${native}[]`, { ...rest, isList: true }),
  ];
}

const thingColumns = [
  ...thrice("int", "Int", "integer"),
  ...thrice("big", "BigInt", "bigint"),
  ...thrice("real", "Float", "double precision"),
  ...thrice("dec", "Decimal", "numeric(65,30)"),
  ...thrice("text", "String", "text"),
  ...thrice("flag", "Boolean", "boolean"),
  ...thrice("at", "DateTime", "timestamptz(3)"),
  ...thrice("json", "Json", "jsonb"),
  ...thrice("bytes", "Bytes", "bytea"),
  ...thrice("token", "Uuid", "uuid"),
  ...thrice("colour", "Enum", "text", { values: colours }),
  column("price", "Decimal", "numeric(12,2)", { precision: 12, scale: 2, isOptional: true, domain: "fixed" }),
];

const legacyColumns = [
  ...thrice("small", "Int", "smallint", { domain: "small" }),
  ...thrice("less", "BigInt", "integer", { domain: "small" }),
  ...thrice("single", "Float", "real", { domain: "real" }),
  ...thrice("amount", "Decimal", "numeric", { domain: "money", scale: 2 }),
  ...thrice("code", "String", "char(5)", { domain: "padded", length: 5 }),
  ...thrice("folded", "String", "citext", { domain: "folded" }),
  ...thrice("address", "String", "inet", { domain: "address" }),
  ...thrice("local", "DateTime", "timestamp"),
  ...thrice("micro", "DateTime", "timestamptz"),
  ...thrice("day", "DateTime", "date", { domain: "day" }),
  column("early", "DateTime", "timestamptz", { domain: "early", isOptional: true }),
  ...thrice("plain", "Json", "json"),
  ...thrice("mood", "Enum", "mood", { values: colours, domain: "Enum" }),
  ...thrice("word", "String", "mood", { domain: "Enum" }),
  ...thrice("date", "Date", "date"),
  ...thrice("hour", "Time", "time"),
  ...thrice("host", "String", "inet", { native: "inet", domain: "address" }),
  ...thrice("nick", "String", "citext", { native: "citext", domain: "folded" }),
];

const priceColumns = [
  column("amount", "Decimal", "numeric(12,2)", { precision: 12, scale: 2, domain: "fixed" }),
  column("since", "Time", "time(3)", { isOptional: true }),
  column("until", "Date", "date", { isOptional: true }),
];

const reference = (resource: string, as: string, fieldName = "id"): Partial<Field> => ({
  references: { resource, field: fieldName, as, onDelete: "noAction" },
});

const countries = definition({
  name: "countries",
  fields: [field("code", "String", { isKey: true, length: 5 }), field("size", "Int", { isOptional: true })],
});
const people = definition({
  name: "people",
  fields: [
    field("name", "String", { isOptional: true }),
    field("country_code", "String", {
      isOptional: true,
      length: 5,
      ...reference("countries", "country", "code"),
    }),
    field("boss_id", "Int", { isOptional: true, ...reference("people", "boss") }),
  ],
});
const passports = definition({
  name: "passports",
  fields: [
    field("number", "BigInt"),
    field("person_id", "Int", { isOptional: true, isUnique: true, ...reference("people", "person") }),
  ],
});
const things = definition({
  name: "things",
  fields: [
    keyField("id", { column: "thing id" }),
    ...thingColumns.map((one) => one.field),
    field("owner_id", "Int", { ...reference("people", "owner") }),
    field("maker_id", "Int", { isOptional: true, ...reference("people", "maker") }),
  ],
});
const legacy = definition({
  name: "legacy",
  isManaged: false,
  fields: [
    field("id", "BigInt", { isKey: true }),
    ...legacyColumns.map((one) => one.field),
    field("thing_id", "Int", { isOptional: true, ...reference("things", "thing") }),
  ],
});
const prices = definition({
  name: "prices",
  fields: [
    field("sku", "String", { isKey: true, length: 5 }),
    field("day", "Date", { isKey: true, column: "The day" }),
    field("lane", "Int", { isKey: true }),
    ...priceColumns.map((one) => one.field),
    field("thing_id", "Int", { isOptional: true, ...reference("things", "thing") }),
    field("country_code", "String", { length: 5, ...reference("countries", "country", "code") }),
  ],
});

/**
 * Names the inverse of a reference after the resource: a second one to the same needs another name.
 */
function withInverses(definitions: Definitions): Definitions {
  return new Map(
    [...definitions].map(([name, one]): [string, Definition] => {
      const seen = new Set<string>();
      const relations = one.relations.map((relation) => {
        const free = seen.has(relation.name) || (relation.kind === "many" && relation.resource === name);
        const renamed = free
          ? { ...relation, name: `${relation.name}_by_${relation.foreignField}` }
          : relation;
        seen.add(renamed.name);
        return renamed;
      });
      return [name, { ...one, relations }];
    }),
  );
}

export const differing: Definitions = withInverses(
  definitionsOf(countries, people, passports, things, legacy, prices),
);

const columnsOf: Readonly<Record<string, readonly Column[]>> = {
  things: thingColumns,
  legacy: legacyColumns,
  prices: priceColumns,
};
const personNames = ["Ada", "Bob", "Cy", null, "Éva", "100%"];

/** Returns operands for a filter on the field. */
export function operandsOf(resource: string, { name, type, isList }: Field): readonly unknown[] {
  const found = columnsOf[resource]?.find((one) => one.field.name === name);
  // Prisma finds no lists of Bytes. It writes the items of a list of times as dates.
  const isLost = isList && (type === "Bytes" || type === "Time");
  if (found !== undefined) return isLost ? [] : found.domain.operands;
  if (resource === "people" && name === "name") return personNames.filter((one) => one !== null);
  if (resource === "countries" && name === "code") return ["se", "it"];
  if (type === "String") return ["se", "it", "dk"];
  if (type === "Date") return days;
  return [1, 2, 3, 7];
}

const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`;

function createText(table: string, key: string, columns: readonly Column[], rest: string): string {
  const lines = columns.map(({ field: { column: name }, native }) => `${quote(name)} ${native}`);
  return `CREATE TABLE ${table} (${[key, ...lines, rest].join(", ")})`;
}

export const tables = [
  "CREATE EXTENSION IF NOT EXISTS citext",
  `CREATE TYPE mood AS ENUM ('red', 'green', 'deep blue')`,
  "CREATE TABLE countries (code varchar(5) PRIMARY KEY, size int)",
  `CREATE TABLE people (id serial PRIMARY KEY, name text, country_code varchar(5) REFERENCES countries, boss_id int REFERENCES people)`,
  `CREATE TABLE passports (id serial PRIMARY KEY, number bigint NOT NULL, person_id int UNIQUE REFERENCES people)`,
  createText(
    "things",
    '"thing id" serial PRIMARY KEY',
    thingColumns,
    "owner_id int NOT NULL REFERENCES people, maker_id int REFERENCES people",
  ),
  createText("legacy", "id bigint PRIMARY KEY", legacyColumns, "thing_id int REFERENCES things"),
  createText(
    "prices",
    'sku varchar(5), "The day" date, lane int',
    priceColumns,
    `thing_id int REFERENCES things, country_code varchar(5) NOT NULL REFERENCES countries, PRIMARY KEY ("The day", lane, sku)`,
  ),
].join(";\n");

/** Fills the tables with values of every kind, NULL and empty lists included. */
export async function fill(pool: Pool, random: Random): Promise<void> {
  await pool.query("INSERT INTO countries VALUES ('se', 7), ('it', NULL), ('dk', 2)");
  for (let id = 1; id <= 8; id += 1)
    await pool.query("INSERT INTO people (name, country_code, boss_id) VALUES ($1, $2, $3)", [
      pick(random, personNames),
      // One boss has a country, with any seed.
      pick(random, id === 1 ? ["se", "it", "dk"] : ["se", "it", "dk", null]),
      id === 1 ? null : pick(random, id === 2 ? [1] : [1, Math.ceil(id / 2), null]),
    ]);
  await pool.query(
    "INSERT INTO passports (number, person_id) VALUES (10, 1), (9007199254740993, 3), (11, NULL)",
  );
  for (let id = 1; id <= 60; id += 1)
    await insert(pool, "things", thingColumns, random, [
      ["owner_id", pick(random, [1, 2, 3, 4, 5])],
      ["maker_id", pick(random, [null, 2, 6])],
    ]);
  for (let id = 1; id <= 40; id += 1)
    await insert(pool, "legacy", legacyColumns, random, [
      ["id", id],
      ["thing_id", pick(random, [null, 1, 2, 3, 20])],
    ]);
  for (let at = 0; at < 45; at += 1)
    await insert(pool, "prices", priceColumns, random, [
      ["sku", ["se", "it", "dk"][at % 3]],
      ["The day", ["2024-02-29", "1969-12-31", "0044-03-15"][Math.floor(at / 3) % 3]],
      ["lane", Math.floor(at / 9)],
      ["thing_id", pick(random, [null, 1, 2, 3])],
      ["country_code", pick(random, ["se", "it", "dk"])],
    ]);
}

async function insert(
  pool: Pool,
  table: string,
  columns: readonly Column[],
  random: Random,
  others: readonly (readonly [string, unknown])[],
): Promise<void> {
  const all = [...columns.map((one) => [one.field.column, storedValue(one, random)] as const), ...others];
  const names = all.map(([name]) => quote(name)).join(", ");
  const places = all.map((_, index) => `$${index + 1}`).join(", ");
  const values = all.map(([, value]) => value);
  await pool.query(`INSERT INTO ${table} (${names}) VALUES (${places})`, values);
}

function storedValue({ field: { isList, isOptional, type }, domain }: Column, random: Random): unknown {
  const one = (): string => pick(random, domain.stored);
  if (isList) return pick(random, [null, [], [one()], [one(), one(), type === "Json" ? "1" : one()]]);
  return isOptional && random() < 0.3 ? null : one();
}
