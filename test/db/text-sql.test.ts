import { expect } from "chai";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { createSql } from "../../src/db/sql.ts";
import { createTextSql } from "../../src/db/text-sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createInTransaction } from "../../src/db/transaction.ts";
import { codeOf } from "../../src/kit/errors.ts";
import { databaseOfSuite } from "../support/own-database.ts";

describe("createTextSql", () => {
  const database = databaseOfSuite({ poolSize: 1 });

  const backend = async (): Promise<unknown> =>
    (await database.pool.query("SELECT pg_backend_pid()")).rows[0];

  before(async () => {
    await database.pool.query("CREATE TABLE things (size int); INSERT INTO things VALUES (5)");
  });

  it("continues over the same connection after a column of a prepared statement has another type", async () => {
    const sql = createTextSql(database.pool, createStatementNames(false));
    const text = "SELECT size FROM things";
    const before = await backend();
    await sql(text, []);
    await database.pool.query("ALTER TABLE things ALTER size TYPE text USING size || ' cm'");

    expect([await sql(text, []), await sql(text, [])]).to.deep.equal([[["5 cm"]], [["5 cm"]]]);
    expect(await backend()).to.deep.equal(before);
  });

  it("requires a retry when that happens in a transaction, which then continues", async () => {
    const inTransaction = createInTransaction(database.pool, createStatementNames(false));
    const read = (): Promise<(string | null)[][]> =>
      inTransaction(({ text }) => text("SELECT width FROM things", []));
    await database.pool.query("ALTER TABLE things ADD COLUMN width int DEFAULT 7");
    await read();
    await database.pool.query("ALTER TABLE things ALTER width TYPE text USING width || ' cm'");

    const error = await read().catch((thrown: unknown) => thrown);

    expect(databaseFaultOf(error)).to.deep.equal({ kind: "unavailable" });
    expect(await read()).to.deep.equal([["7 cm"]]);
  });

  for (const kind of ["text", "sql"] as const)
    it(`does so for a list of values, by ${kind}`, async () => {
      const inTransaction = createInTransaction(database.pool, createStatementNames(false));
      const read = (): Promise<unknown> =>
        inTransaction((transaction) =>
          transaction[kind](`SELECT ${kind}s FROM lists WHERE id = ANY($1::int[])`, [[1]]),
        );
      await database.pool.query(`CREATE TABLE lists (id int, ${kind}s text)`);
      await read();
      await database.pool.query(`ALTER TABLE lists ALTER ${kind}s TYPE varchar(40)`);

      const error = await read().catch((thrown: unknown) => thrown);

      await read();
      await database.pool.query("DROP TABLE lists");
      expect(databaseFaultOf(error)).to.deep.equal({ kind: "unavailable" });
    });

  it("prepares a statement again whose first preparation failed, over the same connection", async () => {
    const inTransaction = createInTransaction(database.pool, createStatementNames(false));
    const read = (): Promise<(string | null)[][]> =>
      inTransaction(({ text }) => text("SELECT name FROM later", []));
    const error = await read().catch((thrown: unknown) => thrown);
    await database.pool.query("CREATE TABLE later (name text); INSERT INTO later VALUES ('a')");

    expect(error).to.have.property("code", "42P01");
    expect([await read(), await read()]).to.deep.equal([[["a"]], [["a"]]]);
  });

  it("keeps the connection of a transaction that the server or the caller refuses", async () => {
    const inTransaction = createInTransaction(database.pool, createStatementNames(false));
    const before = await backend();

    await inTransaction(({ text }) => text("SELECT 1 / 0", [])).catch(() => undefined);
    await inTransaction(() => Promise.reject(new Error("refused"))).catch(() => undefined);

    expect(await backend()).to.deep.equal(before);
  });

  it("keeps the thousand last used statements prepared, whoever sends others", async () => {
    const sql = createTextSql(database.pool, createStatementNames(false));
    const kept = async (): Promise<Readonly<Record<string, Date>>> =>
      Object.fromEntries(
        (
          await database.pool.query<{ statement: string; prepare_time: Date }>(
            "SELECT statement, prepare_time FROM pg_prepared_statements",
          )
        ).rows.map((row) => [row.statement, row.prepare_time]),
      );
    for (let index = 0; index < 1_200; index += 1) await sql(`SELECT ${index}`, []);
    await sql("SELECT 'used'", []);
    const before = await kept();

    for (let index = 2_000; index < 3_200; index += 1) {
      await sql(`SELECT ${index}`, []);
      if (index % 500 === 0) await sql("SELECT 'used'", []);
    }

    const after = await kept();
    expect(Object.keys(after)).to.have.length(1_000);
    expect(after["SELECT 'used'"]).to.be.a("date").that.deep.equals(before["SELECT 'used'"]);
    expect(await sql("SELECT 0", [])).to.deep.equal([["0"]]);
  });

  it("keeps half a million characters of texts prepared, and a text of a tenth of that unnamed", async () => {
    const names = createStatementNames(false);
    const sql = createTextSql(database.pool, names);
    for (let index = 0; index < 20; index += 1) await sql(`SELECT ${index}${" ".repeat(40_000)}`, []);

    const { rows } = await database.pool.query(
      "SELECT sum(length(statement))::int AS characters FROM pg_prepared_statements",
    );

    expect(rows).to.have.nested.property("[0].characters").within(460_000, 500_000);
    expect(names(" ".repeat(50_001))).to.equal(undefined);
    expect(await sql(`SELECT 1${" ".repeat(600_000)}`, [])).to.deep.equal([["1"]]);
  });

  it("keeps its connection and prepared statements when the server refuses a statement", async () => {
    const names = createStatementNames(false);
    const [sql, own] = [
      createTextSql(database.pool, names),
      createSql({ pool: database.pool, isEmbedded: false }),
    ];
    const prepared = async (): Promise<unknown> =>
      (
        await database.pool.query(
          "SELECT pg_backend_pid(), prepare_time FROM pg_prepared_statements WHERE name = $1",
          [names("SELECT 7")],
        )
      ).rows;
    await sql("SELECT 7", []);
    const before = await prepared();

    const refused = [
      await sql("SELECT 1 / $1::int", [0]).catch(codeOf),
      await sql("SELECT $1::int", ["no number"]).catch(codeOf),
      await sql("SELECT nothing", []).catch(codeOf),
      await own("SELECT 2 / $1::int", [0]).catch(codeOf),
    ];

    expect(refused).to.deep.equal(["22012", "22P02", "42703", "22012"]);
    expect(before).to.have.length(1);
    expect(await prepared()).to.deep.equal(before);
    expect(await sql("SELECT 1 / $1::int", [1])).to.deep.equal([["1"]]);
  });

  it("runs one text by itself, and in a transaction by either kind of statement, over one connection", async () => {
    const names = createStatementNames(false);
    const text = "SELECT $1::int AS number";
    const alone = createTextSql(database.pool, names);
    const inTransaction = createInTransaction(database.pool, names);
    const within = (): Promise<unknown> =>
      inTransaction(async (transaction) => [
        await transaction.sql(text, [1]),
        await transaction.text(text, [1]),
      ]);

    expect(await alone(text, [1])).to.deep.equal([["1"]]);
    expect(await within()).to.deep.equal([[{ number: 1 }], [["1"]]]);
    expect(await within()).to.deep.equal([[{ number: 1 }], [["1"]]]);
    expect(await alone(text, [1])).to.deep.equal([["1"]]);
  });
});
