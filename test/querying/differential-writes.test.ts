import { always } from "../../src/querying/condition.ts";
import { Decimal, DbNull } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import { AppError } from "../../src/kit/errors.ts";
import type { Definition, Definitions, Row } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { createPrismaStore } from "../../src/resources/prisma-store.ts";
import type { Found, RecordStore } from "../../src/resources/record-store.ts";
import { createStore } from "../../src/resources/store.ts";
import { createViews } from "../../src/resources/record-view.ts";
import { recordDatabaseOf } from "../resources/serving.ts";
import { createTestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { createRandom, pick, upTo, type Random } from "../support/random.ts";

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);
const count = Number(process.env["SVC_TEST_QUERIES"] ?? 600);

const lists = { isList: true };
const optional = { isOptional: true };
const literal = (value: unknown) => ({ default: { kind: "literal", value } as const });

const owners = definition({ name: "owners", fields: [field("name", "String", { isUnique: true })] });
const items = definition({
  name: "items",
  fields: [
    field("sku", "String", { length: 10, isUnique: true }),
    field("int", "Int", literal(7)),
    field("big", "BigInt", { ...optional, ...literal("9007199254740993") }),
    field("bigs", "BigInt", { ...lists, ...literal(["9007199254740993", 1]) }),
    field("real", "Float", { ...optional, ...literal(0.1) }),
    field("price", "Decimal", { precision: 12, scale: 2, ...literal("1.5") }),
    field("free", "Decimal", optional),
    field("prices", "Decimal", lists),
    field("flag", "Boolean", literal(true)),
    field("at", "DateTime", { ...optional, ...literal("2026-03-28T14:30:00+02:00") }),
    field("times", "DateTime", lists),
    field("json", "Json", { ...optional, ...literal({ a: [1] }) }),
    field("jsons", "Json", lists),
    field("bytes", "Bytes", { ...optional, ...literal("3q2+7w==") }),
    field("blobs", "Bytes", lists),
    field("token", "Uuid", optional),
    field("colour", "Enum", { values: ["red", "green"], ...literal("red") }),
    field("notes", "String", { ...optional, column: "Not es" }),
    field("words", "String", { ...lists, ...literal(["a", 'b"c']) }),
    field("strict", "String", optional),
    field("owner_id", "Int", {
      ...optional,
      references: { resource: "owners", field: "id", as: "owner", onDelete: "restrict" },
    }),
    field("parent_id", "Int", {
      ...optional,
      references: { resource: "items", field: "id", as: "parent", onDelete: "restrict" },
    }),
  ],
});

const linked = definitionsOf(owners, items);
/** A record refers to its parent, and not back to its children. */
const definitions: Definitions = new Map(
  [...linked].map(([name, one]): [string, Definition] => [
    name,
    {
      ...one,
      relations: one.relations.map((relation) =>
        relation.kind === "many" && relation.resource === name ? { ...relation, name: "children" } : relation,
      ),
    },
  ]),
);

const tables = `
  CREATE TABLE owners (id serial PRIMARY KEY, name text NOT NULL UNIQUE);
  CREATE TABLE items (
    id serial PRIMARY KEY, sku varchar(10) NOT NULL UNIQUE, int int NOT NULL CHECK (int <> 13), big bigint, bigs bigint[] DEFAULT '{9007199254740993,1}',
    real double precision, price numeric(12,2) NOT NULL, free numeric, prices numeric[], flag boolean NOT NULL,
    at timestamptz(3), times timestamptz[], json jsonb, jsons jsonb[], bytes bytea, blobs bytea[], token uuid,
    colour text NOT NULL CHECK (colour IN ('red', 'green')), "Not es" text, words text[],
    strict text NOT NULL DEFAULT 'x',
    owner_id int REFERENCES owners, parent_id int REFERENCES items
  );
  INSERT INTO owners (name) VALUES ('Ada'), ('Bob')`;

const values: Readonly<Record<string, readonly unknown[]>> = {
  int: [0, -5, 13, 2147483647],
  big: [null, 1n, -9223372036854775808n],
  bigs: [[], [1n, 2n]],
  real: [null, 0, -1.5, 1e21, 1e-7],
  price: ["1.5", new Decimal("20"), "0.005", "99999999999"],
  free: [null, new Decimal("1e-20"), "123456789012345678901234567890.5"],
  prices: [[], ["1.50", new Decimal(2)]],
  flag: [true, false],
  at: [null, new Date("0999-01-01T00:00:00.001Z"), new Date("2026-03-28T14:30:00.123Z")],
  times: [[], [new Date("1969-12-31T23:59:59.999Z")]],
  json: [DbNull, { a: { "10": null, "2": ["x"] } }, [1, 2.5, "é😀"], "text", 7, false, { n: "\u0000" }],
  jsons: [[], [{ a: 1 }, "x", [1]]],
  bytes: [null, new Uint8Array(), Buffer.from("00ff", "hex")],
  blobs: [[], [Buffer.from("00ff", "hex"), new Uint8Array([1])]],
  token: [null, "00000000-0000-4000-8000-00000000000A"],
  colour: ["red", "green", "blue"],
  notes: [null, "", 'a"b\\', "x".repeat(300), "日本語", "a\u0000b"],
  words: [[], ["", "a,b", '"q"', "NULL", "\\"]],
  strict: ["y", "z", null],
  owner_id: [null, 1, 2, 99],
  parent_id: [null, 1, 2, 3, 99],
};

interface Side {
  readonly database: Database;
  readonly models: ModelsClient;
  readonly store: (name: string) => RecordStore;
  close(): Promise<void>;
}

async function openSide(kind: "compiled" | "prisma"): Promise<Side> {
  const created = await createTestDatabase();
  const database = await openDatabase({ url: created.url, poolSize: 2, isEmbedded: false });
  await database.pool.query(tables);
  const models = await openModelsClient({
    schemaText: prismaSchemaOf(definitions),
    pool: database.pool,
    isEmbedded: false,
  });
  return {
    database,
    models,
    store(name) {
      const found = definitions.get(name) as Definition;
      if (kind === "prisma")
        return createPrismaStore({ definition: found, definitions, models: async () => models });
      const views = createViews(found, definitions);
      return createStore({
        definition: found,
        definitions,
        views,
        database: recordDatabaseOf({ database, models }),
      });
    },
    async close() {
      await models.close();
      await database.close();
      await created.drop();
    },
  };
}

type Act = (store: (name: string) => RecordStore) => Promise<unknown>;

const shown = (record: Found): string => record.json();

async function outcomeOf(act: Act, side: Side): Promise<unknown> {
  try {
    return { answer: await act(side.store) };
  } catch (error) {
    if (error instanceof AppError) return { status: error.status, code: error.code, errors: error.errors };
    return { fault: databaseFaultOf(error).kind };
  }
}

const includes = [
  undefined,
  { owner: true },
  { owner: { include: { items: { orderBy: { id: "asc" } } } }, parent: true },
  { parent: { include: { parent: true, children: { orderBy: { id: "desc" }, take: 2 } } }, children: true },
];

function actOf(random: Random, most: number): readonly [string, Act] {
  const key = upTo(random, most);
  const include = pick(random, includes);
  const where = pick(random, [
    {},
    { flag: true },
    { owner: { name: "Ada" } },
    { OR: [{ int: { gt: 0 } }, { parent: null }] },
  ]);
  const names = Object.keys(values).filter(() => random() < 0.12);
  const data: Row = Object.fromEntries(names.map((name) => [name, pick(random, values[name] ?? [])]));
  const sku = {
    sku: random() < 0.05 ? "taken" : random() < 0.05 ? "x".repeat(11) : `sku ${upTo(random, 400)}`,
  };
  const kind = random();
  if (kind < 0.4) {
    const all = { ...data, ...sku };
    return [
      `create ${JSON.stringify(Object.keys(all))}`,
      (store) =>
        store("items").create({
          data: all,
          include,
          present: shown,
          isUndone: kind < 0.1,
          userId: 1,
          access: always,
        }),
    ];
  }
  if (kind < 0.75 && (names.length > 0 || kind < 0.6)) {
    const change = names.length === 0 ? sku : data;
    return [
      `update ${key} ${JSON.stringify(Object.keys(change))}`,
      (store) =>
        store("items").update(key, {
          where,
          data: change,
          include,
          present: shown,
          isUndone: kind < 0.5,
          userId: 1,
          access: always,
        }),
    ];
  }
  if (kind < 0.9)
    return [
      `find ${key}`,
      async (store) =>
        (await store("items").find(key, { where, shape: { include }, access: always }))?.json(),
    ];
  if (kind < 0.94)
    return [
      "remove an owner",
      (store) =>
        store("owners").remove(
          upTo(() => kind, 2),
          { where: {}, access: always },
        ),
    ];
  return [`remove ${key}`, (store) => store("items").remove(key, { where, access: always })];
}

describe(`writes by the compiler of queries and by the Prisma client, with seed ${seed}`, function () {
  this.timeout(600_000 + count * 100);

  let compiled: Side;
  let prisma: Side;

  before(async () => {
    compiled = await openSide("compiled");
    prisma = await openSide("prisma");
  });

  after(async () => {
    await compiled.close();
    await prisma.close();
  });

  const storedIn = async ({ database }: Side): Promise<readonly string[]> =>
    (
      await database.pool.query<{ row: string }>("SELECT i::text AS row FROM items AS i ORDER BY id")
    ).rows.map(({ row }) => row);

  it(`give the same answer ${count} times, and leave the same rows`, async () => {
    const random = createRandom(seed);
    let answered = 0;
    for (let at = 0; at < count; at += 1) {
      const [what, act] = actOf(random, at + 1);
      const expected = await outcomeOf(act, prisma);
      const found = await outcomeOf(act, compiled);
      expect({ what, outcome: found, rows: at % 20 === 0 ? await storedIn(compiled) : [] }).to.deep.equal({
        what,
        outcome: expected,
        rows: at % 20 === 0 ? await storedIn(prisma) : [],
      });
      if (JSON.stringify(expected).startsWith('{"answer":"')) answered += 1;
      // A create that fails uses a number or none, depending on whether the server reads the value
      // first.
      for (const { database } of [compiled, prisma])
        await database.pool.query("SELECT setval('items_id_seq', $1)", [at + 1]);
    }
    expect(await storedIn(compiled)).to.deep.equal(await storedIn(prisma));
    expect(answered).to.be.above(count / 5);
  });
});
