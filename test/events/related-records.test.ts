import { expect } from "chai";
import { createTextSql, type TextSql } from "../../src/db/text-sql.ts";
import { findRelatedRecords } from "../../src/events/related-records.ts";
import { Decimal } from "../../src/kit/prisma-values.ts";
import type { Definition, FieldType, Relation } from "../../src/mapping/definition.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";

/** Values of a column that refers to a key of the same type in the mapping files. */
interface Link {
  readonly type: FieldType;
  /** Column types of both ends. */
  readonly near: string;
  readonly far: string;
  /** Value in the far table. */
  readonly key: string;
  /** Ids in an event: of the key, and of no record. */
  readonly found: unknown;
  readonly missing: unknown;
}

const links: readonly Link[] = [
  { type: "Boolean", near: "boolean", far: "boolean", key: "true", found: true, missing: false },
  {
    type: "Bytes",
    near: "bytea",
    far: "bytea",
    key: "\\x00ff",
    found: Buffer.from([0, 255]),
    missing: Buffer.from([1]),
  },
  { type: "Int", near: "integer", far: "smallint", key: "5", found: 5, missing: 70_000 },
  { type: "String", near: "text", far: "short", key: "ab", found: "ab", missing: "too long" },
  {
    type: "Decimal",
    near: "numeric",
    far: "numeric(10,2)",
    key: "1.50",
    found: new Decimal("1.5"),
    missing: new Decimal("1.501"),
  },
];

const references = { resource: "lands", field: "code", as: "in", onDelete: "restrict" } as const;

/** Towns refer to the code of a land. */
function relationOf(
  type: FieldType,
  of: "towns" | "lands" = "towns",
  leads = "in",
): Omit<Parameters<typeof findRelatedRecords>[1], "rows"> {
  const definitions = definitionsOf(
    definition({ name: "lands", fields: [field("code", type, { isKey: true })] }),
    definition({ name: "towns", fields: [field("land", type, { isOptional: true, references })] }),
  );
  const from = definitions.get(of) as Definition;
  const relation = from.relations.find(({ name }) => name === leads) as Relation;
  return { definition: from, definitions, relation, args: true };
}

describe("findRelatedRecords", () => {
  const database = databaseOfSuite({ poolSize: 1 });

  before(async () => {
    await database.pool.query("CREATE DOMAIN short AS text CHECK (length(VALUE) < 3)");
  });

  for (const { type, near, far, key, found, missing } of links) {
    it(`finds the ${far} of a ${near}, and nothing of a value that the other end cannot have`, async () => {
      await database.pool.query(`
        DROP TABLE IF EXISTS lands, towns;
        CREATE TABLE lands (code ${far} PRIMARY KEY); INSERT INTO lands VALUES ('${key}');
        CREATE TABLE towns (id integer PRIMARY KEY, land ${near})`);

      const records = await findRelatedRecords(
        createTextSql(database.pool, () => undefined),
        { ...relationOf(type), rows: [found, missing, null, found].map((land, id) => ({ id, land })) },
      );

      const shown = records?.map((record) => JSON.stringify(record && Object.keys(record)));
      expect(shown).to.deep.equal(['["code"]', "null", "null", '["code"]']);
    });
  }

  for (const [table, name, leads] of [
    ["lands", "towns", "in"],
    ["towns", "lands", "towns"],
  ] as const) {
    it(`reads ${table} that have no index once for all rows`, async () => {
      await database.pool.query(`
        DROP TABLE IF EXISTS lands, towns;
        CREATE TABLE lands AS SELECT generate_series(1, 1000) AS code;
        CREATE TABLE towns AS SELECT code AS id, code AS land FROM lands; ANALYZE lands; ANALYZE towns`);
      let plan = "";
      const explain: TextSql = async (text, values) => {
        const options = "(ANALYZE, COSTS OFF, TIMING OFF)";
        const { rows } = await database.pool.query(`EXPLAIN ${options} ${text}`, [...values]);
        plan = rows.map((row) => row["QUERY PLAN"]).join("\n");
        return [];
      };

      const rows = Array.from({ length: 50 }, (_, id) => ({ id, land: id, code: id }));
      await findRelatedRecords(explain, { ...relationOf("Int", name, leads), rows });

      expect(plan).to.match(new RegExp(`Seq Scan on ${table} t \\(actual rows=[\\d.]+ loops=1\\)`));
    });
  }
});
