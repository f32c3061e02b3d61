import { expect } from "chai";
import type { PoolClient } from "pg";
import { createSql, createTransact, type Sql } from "../../src/db/sql.ts";
import { databaseOfSuite } from "../support/own-database.ts";

/** A column of each type that statements of the service read, and one that pg has no parser for. */
const everyType = `
  SELECT $1::int AS int, $2::bigint AS big, $3::text AS text, $4::boolean AS flag, $5::bytea AS bytes,
    $6::timestamptz AS at, $7::text[] AS texts, $8::int[] AS ints, $9::jsonb AS json, $10::float8 AS real,
    $11::bytea[] AS blobs, $12::uuid AS uuid, NULL::text AS nothing, '1 day'::interval AS period,
    int4range(1, 3) AS range`;
const values = [
  7,
  2n ** 60n,
  "é😀",
  true,
  Buffer.from([0, 255]),
  new Date("2026-03-28T14:30:00.123Z"),
  ["a,b", null, '"q"'],
  [1, 2],
  { a: [1, null] },
  0.1,
  [Buffer.from([1]), Buffer.from([2, 3])],
  "00000000-0000-4000-8000-00000000000a",
];

describe("createSql", () => {
  const database = databaseOfSuite({ poolSize: 1 });
  let sql: Sql;
  /** Number of times that the server described the columns of a statement. */
  let described = 0;

  before(async () => {
    database.pool.on("connect", ({ connection }: PoolClient) =>
      connection.on("rowDescription", () => (described += 1)),
    );
    sql = createSql({ pool: database.pool, isEmbedded: false });
  });
  beforeEach(() => {
    described = 0;
  });

  /** Finds a code by a text that any type of its column accepts. */
  const ask = (salt: string): Promise<unknown> =>
    createSql({ pool: database.pool, isEmbedded: false, salt })("SELECT code FROM codes WHERE code = $1", [
      "00000000-0000-4000-8000-00000000000a",
    ]);

  it("returns the same as pg, at the first run and at later ones", async () => {
    const { rows } = await database.pool.query(everyType, values);

    expect(await sql(everyType, values)).to.deep.equal(rows);
    expect(await sql(everyType, values)).to.deep.equal(rows);
  });

  it("has a statement described once on a connection", async () => {
    for (const number of [1, 2, 3]) await sql("SELECT $1::int AS number", [number]);

    expect(described).to.equal(1);
  });

  it("answers no rows for a statement that returns none", async () => {
    await sql("CREATE TABLE things (id int, name text)");

    expect(await sql("INSERT INTO things VALUES ($1, $2)", [1, "one"])).to.deep.equal([]);
    expect(await sql("SELECT id FROM things WHERE id = $1", [2])).to.deep.equal([]);
  });

  it("reads a table by its new columns after the statement that found it changed", async () => {
    const read = (): Promise<unknown> => sql("SELECT * FROM things WHERE id = $1", [1]);
    expect(await read()).to.deep.equal([{ id: 1, name: "one" }]);
    await sql("ALTER TABLE things ADD COLUMN size int DEFAULT 3");

    await read().catch((error: unknown) => expect(error).to.have.property("code", "0A000"));

    expect(await read()).to.deep.equal([{ id: 1, name: "one", size: 3 }]);
  });

  it("queries the new type of a changed column, under another salt", async () => {
    await sql("CREATE TABLE codes (code text)");
    expect(await ask("text")).to.deep.equal([]);
    await sql("ALTER TABLE codes ALTER code TYPE uuid USING code::uuid");

    expect(await ask("uuid")).to.deep.equal([]);
    expect(await ask("text").catch((error: unknown) => error)).to.have.property("code", "42883");
  });

  it("rejects with the server's fault, and continues", async () => {
    const fault = await sql("SELECT $1::int AS number", ["x"]).catch((error: unknown) => error);

    expect(fault).to.have.property("code", "22P02");
    expect(await sql("SELECT $1::int AS number", [4])).to.deep.equal([{ number: 4 }]);
  });
});

describe("createTransact", () => {
  const database = databaseOfSuite({ poolSize: 1 });

  it("keeps no connection to a read-only server, as after a fail-over", async () => {
    const transact = createTransact(database.pool);
    const write = (): Promise<unknown> => transact(async (sql) => sql("CREATE TABLE things (id int)"));
    await database.pool.query("SET default_transaction_read_only = on");

    const fault = await write().catch((error: unknown) => error);

    expect(fault).to.have.property("code", "25006");
    expect(await write()).to.deep.equal([]);
  });
});
