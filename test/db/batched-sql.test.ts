import { expect } from "chai";
import { createBatchedSql } from "../../src/db/batched-sql.ts";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { createStatementNames, type TextSql } from "../../src/db/text-sql.ts";
import { until } from "../support/wait.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const settled = async (reads: readonly Promise<(string | null)[][]>[]): Promise<readonly unknown[]> =>
  (await Promise.allSettled(reads)).map((one) =>
    one.status === "fulfilled" ? one.value : (one.reason as { readonly code?: string }).code,
  );

describe("createBatchedSql", () => {
  let created: TestDatabase;
  let database: Database;
  let sql: TextSql;
  /** How many connections were taken. */
  let taken = 0;

  before(async () => {
    created = await createTestDatabase();
    database = await openDatabase({ url: created.url, poolSize: 2, isEmbedded: false });
    database.pool.on("acquire", () => (taken += 1));
    await database.pool.query(
      "CREATE TABLE things (id int, name text); INSERT INTO things VALUES (1, 'one'), (2, NULL), (2, 'two')",
    );
    sql = createBatchedSql<undefined>({
      pool: database.pool,
      names: createStatementNames(false),
      keyOf: () => "",
    })(undefined);
  });
  beforeEach(() => {
    taken = 0;
  });
  after(async () => {
    await database.close();
    await created.drop();
  });

  const named = "SELECT name FROM things WHERE id = $1 ORDER BY name";
  it("sends the reads of one turn over one connection, and gives each its own rows", async () => {
    const rows = await Promise.all([1, 3, "2", 1].map((id) => sql(named, [id])));

    expect(rows).to.deep.equal([[["one"]], [], [["two"], [null]], [["one"]]]);
    expect(taken).to.equal(1);
  });

  it("sends other texts over a connection of their own, which a lock on one table does not hold up", async () => {
    const rows = await Promise.all([sql(named, [1]), sql("SELECT $1::text", ["a"])]);

    expect(rows).to.deep.equal([[["one"]], [["a"]]]);
    expect(taken).to.equal(2);
  });

  it("takes every kind of value, lists too", async () => {
    const text = "SELECT $1::int, $2::boolean, $3::bytea, $4::text, $5::text[]";
    const scalars = "SELECT $1::int, $2::boolean, $3::bytea, $4::text";
    const values = [7, true, Buffer.from([0, 255]), null];

    expect(await sql(scalars, values)).to.deep.equal([["7", "t", "\\x00ff", null]]);
    expect(await sql(text, [...values, ["a", "b"]])).to.deep.equal([["7", "t", "\\x00ff", null, "{a,b}"]]);
  });

  it("fails only the read whose fault it is", async () => {
    const reads = [1, "no number", 2].map((id) => sql(named, [id]));

    expect(await settled(reads)).to.deep.equal([[["one"]], "22P02", [["two"], [null]]]);
  });

  it("takes a fault of a read that is alone for what it is, without another try", async () => {
    expect(await settled([sql(named, ["no number"])])).to.deep.equal(["22P02"]);
    expect(taken).to.equal(1);
  });

  it("goes on after a column of a prepared statement has got another type", async () => {
    const text = "SELECT id FROM things WHERE name = $1";
    await sql(text, ["one"]);
    await database.pool.query("ALTER TABLE things ALTER id TYPE text USING id || ' m'");

    expect(await Promise.all([sql(text, ["one"]), sql(text, ["two"])])).to.deep.equal([[["1 m"]], [["2 m"]]]);
    expect(await sql(text, ["one"])).to.deep.equal([["1 m"]]);
  });

  it("fails every read of a connection that is lost, and goes on with another one", async () => {
    const text = "SELECT pg_sleep(30), $1::text";
    const reads = settled([sql(text, ["a"]), sql(text, ["b"])]);
    const ended =
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'";
    await until(async () => (await database.pool.query(ended)).rows.length === 1, {
      what: "both reads to run",
    });

    expect(await reads).to.deep.equal(["57P01", "57P01"]);
    expect(await sql("SELECT $1::text", ["a"])).to.deep.equal([["a"]]);
  });
});
