import { expect } from "chai";
import { Pool } from "pg";
import { createTextSql } from "../../src/db/text-sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const text = "SELECT kind FROM things WHERE id = $1";

describe("plans of prepared statements", () => {
  const realNow = performance.now.bind(performance);
  // Limited to the time that a test adds: on a busy machine ten seconds may pass.
  const startedAt = realNow();
  let created: TestDatabase;
  let pool: Pool;
  let skewMs = 0;

  before(async () => {
    performance.now = () => startedAt + skewMs;
    created = await createTestDatabase();
    const options = "-c enable_seqscan=off -c enable_bitmapscan=off -c plan_cache_mode=force_generic_plan";
    pool = new Pool({ connectionString: created.url, max: 1, options });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
  });
  after(async () => {
    performance.now = realNow;
    await pool.end();
    await created.drop();
  });

  it("are made again after ten seconds, because a table may have been empty", async () => {
    await pool.query("CREATE TABLE things (id bigint PRIMARY KEY, kind text NOT NULL)");
    await pool.query("CREATE INDEX things_kind_id_idx ON things (kind, id)");
    await pool.query("ALTER TABLE things SET (autovacuum_enabled = off)");
    await pool.query("ANALYZE things");
    const names = createStatementNames(false);
    const sql = createTextSql(pool, names);
    const planned = async (): Promise<string> => {
      const { rows } = await pool.query<{ "QUERY PLAN": string }>(`EXPLAIN EXECUTE "${names(text)}"(7)`);
      return rows.map((row) => row["QUERY PLAN"]).join("\n");
    };

    expect(await sql(text, [7])).to.deep.equal([]);
    await pool.query("INSERT INTO things SELECT n, 'kind ' || n FROM generate_series(1, 50000) AS n");
    skewMs += 9_000;
    expect(await sql(text, [7])).to.deep.equal([["kind 7"]]);
    expect(await planned()).to.contain("things_kind_id_idx");

    skewMs += 1_000;
    expect(await sql(text, [7])).to.deep.equal([["kind 7"]]);
    expect(await planned()).to.contain("things_pkey");
  });

  it("are made again before a batch, without hiding its fault", async () => {
    skewMs += 10_000;
    const sql = createTextSql(pool, createStatementNames(false));
    const fault = await sql("SELECT 1 / $1::int", [0]).catch((error: unknown) => error);

    expect(fault).to.have.property("code", "22012");
    expect(await sql(text, [8])).to.deep.equal([["kind 8"]]);
  });
});
