import { expect } from "chai";
import { databaseFaultOf } from "../../src/db/database-fault.ts";
import { runBatch } from "../../src/db/statement-batch.ts";
import { statementName } from "../../src/db/statement-name.ts";
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

describe("openDatabase, with a chunk that exceeds the limit and ends the result", () => {
  const limits = { statementTimeoutMs: 5_000, maxResultBytes: 17_000, maxRowBytes: 17_000 };
  const database = databaseOfSuite({ poolSize: 2, lists: { connections: 1, ...limits } });
  const faultOfText = (text: string): Promise<string> =>
    faultOf(runBatch(database.lists, { name: statementName(text), text, values: [[]] }));

  // PostgreSQL sends 8 KiB at a time: the limit is in the third part.
  for (const [what, large] of [
    ["", rowsOf(17, 1_000)],
    [" with an error of its own", "SELECT repeat('a', 1000), 1 / (18 - i) FROM generate_series(1, 20) AS i"],
  ] as const) {
    it(`fails the statement${what}, and none that waits for its connection`, async () => {
      const faults = [large, rowsOf(1, 1_000), large, rowsOf(1, 1_000)].map(faultOfText);

      expect(await Promise.all(faults)).to.deep.equal(["too_large", "none", "too_large", "none"]);
    });
  }
});
