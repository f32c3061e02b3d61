import { expect } from "chai";
import { readStatement, withClauses, withQuotedSequences } from "../../src/migration/statements.ts";

describe("readStatement", () => {
  it("reports the effect of each clause on each part of the table", () => {
    const { table, clauses } = readStatement(
      `ALTER TABLE "a, b" DROP CONSTRAINT "k",\nDROP COLUMN "x, y",\nALTER COLUMN "z" SET DATA TYPE DECIMAL(5,2),\n` +
        `ALTER COLUMN "z" DROP NOT NULL,\nALTER COLUMN "z" SET DEFAULT 'a, "b''',\nADD COLUMN     "w" TEXT DEFAULT E'it\\'s, ok',\n` +
        `ADD CONSTRAINT "k" PRIMARY KEY ("w", "z")`,
    );

    expect(table).to.equal("a, b");
    expect(clauses.map(({ action, kind, name, part }) => [action, kind, name, part])).to.deep.equal([
      ["drop", "constraint", "k", undefined],
      ["drop", "column", "x, y", undefined],
      ["alter", "column", "z", "type"],
      ["alter", "column", "z", "nullability"],
      ["alter", "column", "z", "default"],
      ["add", "column", "w", undefined],
      ["add", "index", "k", undefined],
    ]);
    expect(clauses.map(({ type }) => type).filter((type) => type !== undefined)).to.deep.equal([
      "DECIMAL(5,2)",
    ]);
  });

  for (const [sql, ...expected] of [
    [
      'ALTER TABLE "a" RENAME CONSTRAINT "b_fk" TO "c TO d_fk"',
      "drop constraint b_fk",
      "add constraint c TO d_fk",
    ],
    ['ALTER TABLE "s"."a" RENAME CONSTRAINT "b" TO "c"', "drop constraint b", "add constraint c"],
    ['ALTER INDEX "b_idx" RENAME TO "c_idx"', "drop index b_idx", "add index c_idx"],
    ['ALTER INDEX "s"."b_idx" RENAME TO "c_idx"', "drop index b_idx", "add index c_idx"],
    ['CREATE UNIQUE INDEX "b_key" ON "s"."a"("b")', "add index b_key"],
    ['DROP INDEX "s"."b_idx"', "drop index b_idx"],
    ['ALTER TABLE "a" ADD CONSTRAINT "b_fk" FOREIGN KEY ("b") REFERENCES "c"("id")', "add constraint b_fk"],
    ['CREATE SEQUENCE "a_id_seq"', "add sequence a_id_seq"],
    ['ALTER SEQUENCE "a_id_seq" OWNED BY "a"."id"', "other sequence a_id_seq"],
    ['DROP SEQUENCE "a_id_seq"', "drop sequence a_id_seq"],
  ] as const)
    it(`reports the objects that ${sql} drops and creates`, () => {
      const { clauses, schema } = readStatement(sql);

      expect(clauses.map(({ action, kind, name }) => `${action} ${kind} ${name}`)).to.deep.equal(expected);
      expect(schema).to.equal(sql.includes('"s".') ? "s" : "public");
    });

  it("refuses an unknown form, since it could change anything", () => {
    for (const sql of [
      'DROP TABLE "a"',
      'ALTER TABLE "a" DISABLE TRIGGER ALL',
      'DROP INDEX "a", "b"',
      "SELECT 1",
    ])
      expect(() => readStatement(sql)).to.throw("of a form that is not known");
  });
});

describe("withClauses", () => {
  it("leaves clauses out, and the statement when none is left", () => {
    const statement = readStatement('ALTER TABLE "a" DROP COLUMN "b",\nADD COLUMN     "c" INTEGER');
    const [, added] = statement.clauses;

    expect(withClauses(statement, added === undefined ? [] : [added])?.sql).to.equal(
      'ALTER TABLE "a" ADD COLUMN     "c" INTEGER',
    );
    expect(withClauses(statement, [])).to.equal(undefined);
    expect(withClauses(statement, statement.clauses)).to.equal(statement);
  });
});

describe("withQuotedSequences", () => {
  it("quotes a sequence in all output of the engine", () => {
    const scripts = [
      "CREATE SEQUENCE it's; a_id_seq",
      `ALTER TABLE "it's; a" ALTER COLUMN "id" SET DEFAULT nextval('it's; a_id_seq')`,
      `ALTER SEQUENCE it's; a_id_seq OWNED BY "it's; a"."id"`,
    ];

    expect(withQuotedSequences(scripts)).to.deep.equal([
      `CREATE SEQUENCE "it's; a_id_seq"`,
      `ALTER TABLE "it's; a" ALTER COLUMN "id" SET DEFAULT nextval('"it''s; a_id_seq"')`,
      `ALTER SEQUENCE "it's; a_id_seq" OWNED BY "it's; a"."id"`,
    ]);
  });
});
