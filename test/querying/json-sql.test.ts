import { expect } from "chai";
import { createTextSql, type TextSql } from "../../src/db/text-sql.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { always } from "../../src/querying/condition.ts";
import { readRecords } from "../../src/querying/read.ts";
import { createViews } from "../../src/resources/record-view.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, field, keyField } from "../support/definitions.ts";
import { createRandom } from "../support/random.ts";
import { differing, fill, tables } from "./differing-resources.ts";
import { createGenerator } from "./generated-queries.ts";

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);

describe(`the JSON that PostgreSQL writes, with seed ${seed}`, () => {
  const database = databaseOfSuite({ poolSize: 1 });
  let sql: TextSql;

  before(async () => {
    sql = createTextSql(database.pool, () => undefined);
    await database.pool.query(tables);
    await fill(database.pool, createRandom(seed));
  });

  /** Returns the JSON of all records in both ways; undefined where PostgreSQL writes none. */
  async function bothOf(
    one: Definition,
    include?: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly found: readonly string[]; readonly expected: readonly string[] } | undefined> {
    const definitions = new Map([...differing, [one.name, one]]);
    const view = createViews(one, definitions).of(include);
    if (view?.sql === undefined) return undefined;
    const { statement, sql: record } = view;
    const rows = await readRecords(sql, statement, { condition: always });
    const written = await sql(`SELECT ${record.text} FROM ${statement.from}`, []);
    return {
      found: written.map(([text]) => record.complete(text ?? "")).toSorted(),
      expected: rows.map((raw) => view.json(raw)).toSorted(),
    };
  }

  for (const one of differing.values())
    it(`is that of the process for every field of ${one.name}`, async () => {
      const both = await bothOf(one);

      expect(both?.expected.length).to.be.greaterThan(0);
      expect(both?.found).to.deep.equal(both?.expected);
    });

  it("is that of the process for generated transforms and relations", async () => {
    const generator = createGenerator(differing, createRandom(seed + 1));
    let compared = 0;
    for (let turn = 0; turn < 40; turn += 1)
      for (const one of differing.values()) {
        const transform = generator.transform(one);
        const made = transform === undefined ? one : { ...one, transform };
        const both = await bothOf(made, generator.query(one).include);
        if (both === undefined) continue;
        compared += 1;
        expect(both.found, JSON.stringify(transform)).to.deep.equal(both.expected);
      }

    expect(compared).to.be.greaterThan(100);
  });

  it("has more fields than a function of PostgreSQL has arguments", async () => {
    const names = Array.from({ length: 120 }, (_, index) => `field_${index}`);
    const wide = definition({
      name: "wide",
      fields: [keyField(), ...names.map((name) => field(name, "Int", { isOptional: true }))],
    });
    await database.pool.query(
      `CREATE TABLE wide (id serial PRIMARY KEY, ${names.map((name) => `${name} int`).join(", ")})`,
    );
    await database.pool.query("INSERT INTO wide (field_0, field_119) VALUES (1, 2)");

    const both = await bothOf(wide);

    expect(both?.found).to.deep.equal(both?.expected);
    expect(both?.found).to.have.length(1);
  });

  it("keeps the texts and the keys of the transform unchanged", async () => {
    const odd = "a'b\"c\\d\u0007\u0001é";
    const entries = [
      [odd, { kind: "value", value: [odd, null, { [odd]: 1.5 }] }],
      ["name", { kind: "path", path: ["name"] }],
    ] as const;
    const people = differing.get("people") as Definition;
    await database.pool.query("UPDATE people SET name = $1 WHERE id = 1", [`${odd}\n\t\u007f\u2028`]);

    const both = await bothOf({ ...people, transform: { kind: "object", entries } });

    expect(both?.found).to.deep.equal(both?.expected);
    expect(both?.found.map((text) => JSON.parse(text) as unknown)).to.deep.include({
      [odd]: [odd, null, { [odd]: 1.5 }],
      name: `${odd}\n\t\u007f\u2028`,
    });
  });

  it("uses no function of another schema, and distinguishes an empty composite value from none", async () => {
    await database.pool.query(
      `CREATE FUNCTION concat(citext) RETURNS text LANGUAGE sql AS $$ SELECT 'not this' $$;
       CREATE FUNCTION to_json(varchar) RETURNS json LANGUAGE sql AS $$ SELECT '"nor this"'::json $$;
       CREATE TYPE pair AS (a int, b int);
       CREATE TABLE shadowed (id serial PRIMARY KEY, nick citext, code varchar, pair pair);
       INSERT INTO shadowed (nick, code, pair) VALUES ('Ada', 'x', ROW(NULL, NULL)), (NULL, NULL, NULL)`,
    );
    const shadowed = definition({
      name: "shadowed",
      isManaged: false,
      fields: [
        keyField(),
        field("nick", "String", { isOptional: true, native: "citext" }),
        field("code", "String", { isOptional: true }),
        field("pair", "String", { isOptional: true, native: "pair" }),
      ],
    });

    const both = await bothOf(shadowed);

    expect(both?.found).to.deep.equal(both?.expected);
    expect(both?.found).to.deep.equal([
      '{"id":1,"nick":"Ada","code":"x","pair":"(,)"}',
      '{"id":2,"nick":null,"code":null,"pair":null}',
    ]);
  });

  it("leaves records with relations to many to the process", async () => {
    const withThings = { ...(differing.get("people") as Definition), transform: undefined };
    const path = { kind: "path", path: ["things", "id"] } as const;

    expect(
      await bothOf(
        { ...withThings, transform: { kind: "object", entries: [["ids", path]] } },
        { things: true },
      ),
    ).to.equal(undefined);
  });
});
