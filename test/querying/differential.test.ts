import { expect } from "chai";
import { inspect } from "node:util";
import type { ModelsClient } from "../../src/db/models-client.ts";
import { openModelsClient } from "../../src/db/prisma-internals/models-client.ts";
import type { Definition, Row, TransformNode } from "../../src/mapping/definition.ts";
import { prismaSchemaOf } from "../../src/mapping/models.ts";
import { always } from "../../src/querying/condition.ts";
import { createPrismaStore } from "../../src/resources/prisma-store.ts";
import type { RecordStore } from "../../src/resources/record-store.ts";
import { createStore } from "../../src/resources/store.ts";
import { createViews } from "../../src/resources/record-view.ts";
import { recordDatabaseOf } from "../resources/serving.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { createRandom, pick, type Random } from "../support/random.ts";
import { differing, fill, tables } from "./differing-resources.ts";
import { createGenerator, type GeneratedQuery } from "./generated-queries.ts";

type Args = Readonly<Record<string, unknown>>;

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);
const count = Number(process.env["SVC_TEST_QUERIES"] ?? 1000);

const described = (query: unknown): string => inspect(query, { depth: 20, breakLength: 140 });

/** Prisma does not cast these to text before it compares without case. */
const faultsOfPrisma = /operator does not exist: (?:inet|mood) ~~\* text/;

/** Removes the times that no Date can hold: the compiler shows them, and Prisma does not. */
function asOfPrisma(json: string): string {
  const beyond = String.raw`(?:-?infinity|\d{4}-[\d: +.-]+ BC|\d{5}-[\dT:+.-]+)`;
  return json
    .replace(new RegExp(`(\\\\*")${beyond}\\1`, "g"), "null")
    .replace(new RegExp(`'${beyond}'`, "g"), "Invalid Date");
}

async function answerOf(store: RecordStore, { skip, take, ...query }: GeneratedQuery): Promise<unknown> {
  const unasked = {
    access: always,
    filter: always,
    userId: 1,
    sort: undefined,
    fields: undefined,
    related: [],
    asked: [],
  };
  const { records, total } = await store.list({ ...query, ...unasked }, { skip, take, count: "exact" });
  return { records, total };
}

const path = (key: string, to: string): readonly [string, TransformNode] => [
  key,
  { kind: "path", path: to.split(".") },
];

const shown = (row: Row): object => ({
  shown: inspect(row, { depth: 20, sorted: true, maxArrayLength: null, maxStringLength: null }),
});

describe(`the compiler of queries and the Prisma client, with seed ${seed}`, function () {
  this.timeout(600_000 + count * 100);

  const database = databaseOfSuite({ poolSize: 4 });
  let models: ModelsClient;
  const fallbacks: string[] = [];
  const onFallback = (name: string): number => fallbacks.push(name);

  before(async () => {
    await database.pool.query(tables);
    await fill(database.pool, createRandom(seed));
    models = await openModelsClient({
      schemaText: prismaSchemaOf(differing),
      pool: database.pool,
      isEmbedded: false,
    });
  });

  after(() => models.close());

  /** A store of each kind for the definition. */
  function pairOf(definition: Definition): { readonly compiled: RecordStore; readonly prisma: RecordStore } {
    const definitions = new Map([...differing, [definition.name, definition]]);
    return {
      compiled: createStore({
        definition,
        definitions,
        views: createViews(definition, definitions),
        database: recordDatabaseOf({ database, models, onFallback }),
      }),
      prisma: createPrismaStore({ definition, definitions, models: async () => models }),
    };
  }

  async function differenceOf(
    definition: Definition,
    stores: ReturnType<typeof pairOf>,
    query: GeneratedQuery,
  ): Promise<string | undefined> {
    const expected = await answerOf(stores.prisma, query);
    const found = await answerOf(stores.compiled, query).catch((error: unknown) => ({
      error: String(error),
    }));
    if (asOfPrisma(JSON.stringify(found)) === JSON.stringify(expected)) return undefined;
    const parts = { resource: definition.name, query, transform: definition.transform };
    return `${described(parts)}\nPrisma:   ${JSON.stringify(expected)}\nCompiler: ${JSON.stringify(found)}`;
  }

  /**
   * Returns the differences between the results of `queries` generated ones. Prisma's own faults,
   * see `faultsOfPrisma`, are skipped.
   */
  async function differencesOf(
    definitions: readonly Definition[],
    queries: number,
    random: Random,
  ): Promise<readonly string[]> {
    const generator = createGenerator(differing, random);
    const pairs = definitions.map((definition) => ({ definition, stores: pairOf(definition) }));
    const differences: string[] = [];
    for (let at = 0; at < queries; at += 1) {
      const { definition, stores } = pick(random, pairs);
      try {
        const difference = await differenceOf(definition, stores, generator.query(definition));
        if (difference !== undefined) differences.push(difference);
      } catch (error) {
        if (!faultsOfPrisma.test(String(error))) throw error;
      }
    }
    return differences;
  }

  it(`give the same JSON of ${count} lists, in the same order`, async () => {
    const random = createRandom(seed + 1);
    const { transform } = createGenerator(differing, random);
    const definitions = [...differing.values()].flatMap((definition) =>
      Array.from({ length: 8 }, () => {
        const made = transform(definition);
        return made === undefined ? definition : { ...definition, transform: made };
      }),
    );
    const differences = await differencesOf(definitions, count, random);

    expect(differences.slice(0, 3)).to.deep.equal([]);
    expect(fallbacks).to.deep.equal([]);
  });

  it("give code modules the same rows, of the same types", async () => {
    const random = createRandom(seed + 2);
    const definitions = [...differing.values()].map((definition) => ({
      ...definition,
      code: { transform: shown },
    }));
    const differences = await differencesOf(definitions, Math.ceil(count / 4), random);

    expect(differences.slice(0, 3)).to.deep.equal([]);
  });

  const day = new Date("2024-02-29T00:00:00Z");

  /** Resource, `where`, and the reason for the case. */
  const cases: readonly (readonly [string, Args, string])[] = [
    ["passports", { person: {} }, "a filter on a related record that asks for nothing"],
    ["passports", { person: { is: {} } }, "a related record that is anything"],
    ["passports", { person: { isNot: {} } }, "a related record that is not there"],
    ["people", { OR: [{ passports: {} }, { id: 2 }] }, "an alternative that asks for nothing"],
    ["people", { OR: [{}] }, "one empty alternative"],
    ["people", { OR: [] }, "no alternatives"],
    ["people", { AND: [] }, "no conditions"],
    ["people", { NOT: [] }, "nothing negated"],
    ["people", { NOT: [{}] }, "an empty negation in a list"],
    ["people", { NOT: {} }, "an empty negation"],
    ["people", { name: { equals: undefined }, id: { in: [1, 2] } }, "an undefined operand"],
    ["people", { name: { not: { gt: "A", lt: "B" } } }, "several parts within not"],
    ["people", { boss: { isNot: { name: "Ada" } } }, "a related record whose value is missing"],
    ["people", { NOT: { boss: { name: "Ada" } } }, "the same within NOT"],
    ["people", { NOT: { NOT: { boss: { isNot: { name: "Ada" } } } } }, "the same within two"],
    ["people", { NOT: { things: { some: { text_opt: "Ada" } } } }, "none of many"],
    ["people", { things: { every: { text_opt: { contains: "a" } } } }, "each of many with missing values"],
    [
      "people",
      { things: { every: { maker: { name: { not: "Ada" } } } } },
      "each of many by what they refer to",
    ],
    ["legacy", { day_list: { has: day } }, "a list of dates"],
    ["legacy", { local_list: { hasSome: [day] } }, "a list of times without zone"],
    ["legacy", { NOT: { local_list: { hasEvery: [] } } }, "a list that is NULL"],
  ];

  for (const [resource, where, what] of cases)
    it(`agree on ${what}: ${described(where)} of ${resource}`, async () => {
      const definition = differing.get(resource) as Definition;
      const query = { where, orderBy: [{ id: "asc" }], include: undefined, skip: 0, take: 100 };
      expect(await differenceOf(definition, pairOf(definition), query)).to.equal(undefined);
    });

  it("show a whole related record and the records beyond it", async () => {
    const transform = {
      kind: "object",
      entries: [path("all", "boss"), path("beyond", "boss.country.code")],
    } as const;
    const definition = { ...(differing.get("people") as Definition), transform };
    const query = { where: {}, orderBy: [{ id: "asc" }], include: { boss: { include: { country: true } } } };
    const page = { ...query, skip: 0, take: 100 };
    expect(await differenceOf(definition, pairOf(definition), page)).to.equal(undefined);
    expect(JSON.stringify(await answerOf(pairOf(definition).compiled, page))).to.contain('beyond\\":\\"');
  });

  for (const [what, args] of [
    ["distinct values of a relation", { include: { things: { distinct: ["int"], orderBy: { id: "asc" } } } }],
    ["a cursor of a relation", { include: { things: { cursor: { id: 1 }, orderBy: { id: "asc" } } } }],
    ["the last of a relation", { include: { things: { take: -1, orderBy: { id: "asc" } } } }],
    ["a part of a relation", { include: { things: { select: { id: true } } } }],
    ["a count of a relation", { include: { _count: true } }],
    ["a relation without a field", { include: { things: { omit: { text: true } } } }],
    ["an order by a count", { orderBy: [{ things: { _count: "desc" } }, { id: "asc" }] }],
    ["a filter on Json", { where: { things: { some: { json: { equals: true } } } } }],
    ["a comparison without case", { where: { name: { equals: "ada", mode: "insensitive" } } }],
  ] as const)
    it(`leave ${what} to the Prisma client, and count that once`, async () => {
      const definition = {
        ...(differing.get("people") as Definition),
        code: { transform: (row: Row) => row },
      };
      fallbacks.splice(0);
      const usual = { where: {}, orderBy: [{ id: "asc" }], include: undefined, skip: 0, take: 100 };
      const query = { ...usual, ...args };
      expect(await differenceOf(definition, pairOf(definition), query)).to.equal(undefined);
      expect(fallbacks.splice(0)).to.deep.equal(["people"]);
    });
});
