import { expect } from "chai";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { databaseOfSuite } from "../support/own-database.ts";

const rowsOf = (count: number, bytes: number): string =>
  `SELECT repeat('a', ${bytes}) AS text FROM generate_series(1, ${count})`;

async function faultOf(work: Promise<unknown>): Promise<string> {
  return work.then(
    () => "none",
    (error: unknown) => databaseFaultOf(error).kind,
  );
}

describe("openDatabase, with limits for lists", () => {
  const database = databaseOfSuite({
    poolSize: 3,
    lists: { connections: 2, statementTimeoutMs: 200, maxResultBytes: 1_000_000, maxRowBytes: 1_500_000 },
    maxResultBytes: 3_000_000,
    relays: true,
  });

  for (const [what, statement] of [
    ["many rows", rowsOf(200, 10_000)],
    ["one row", rowsOf(1, 2_000_000)],
    ["a row behind a large one", rowsOf(2, 1_300_000)],
  ] as const) {
    it(`fails a statement whose result is too large by ${what}, and serves the next one`, async () => {
      expect(await faultOf(database.lists.query(statement))).to.equal("too_large");
      expect((await database.lists.query(rowsOf(90, 10_000))).rows).to.have.length(90);
    });
  }

  it("permits one larger row, up to a separate limit", async () => {
    expect((await database.lists.query(rowsOf(1, 1_300_000))).rows).to.have.length(1);
    expect(await faultOf(database.lists.query(rowsOf(200, 10_000)))).to.equal("too_large");
  });

  it("counts the bytes of each statement by itself", async () => {
    for (let i = 0; i < 5; i++)
      expect((await database.lists.query(rowsOf(90, 10_000))).rows).to.have.length(90);
  });

  it("cancels a statement that takes too long", async () => {
    expect(await faultOf(database.lists.query("SELECT pg_sleep(20)"))).to.equal("unavailable");
  });

  it("leaves other statements alone", async () => {
    expect((await database.pool.query(rowsOf(200, 10_000))).rows).to.have.length(200);
    expect(await faultOf(database.pool.query("SELECT pg_sleep(0.4)"))).to.equal("none");
  });

  it("fails a statement whose result no answer or event could hold, on the connections for records and of the relay", async () => {
    for (const pool of [database.pool, database.relay]) {
      expect(await faultOf(pool.query(rowsOf(400, 10_000)))).to.equal("too_large");
      expect((await pool.query(rowsOf(200, 10_000))).rows).to.have.length(200);
    }
  });

  it("opens no more connections than poolSize", () => {
    expect([database.pool.options.max, database.lists.options.max]).to.deep.equal([1, 2]);
  });
});
