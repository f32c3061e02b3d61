import { expect } from "chai";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { createStatementNamer } from "../../src/db/prisma-internals/adapter.ts";
import { type Database, openDatabase } from "../../src/db/client.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { changeValueSettings, createTestDatabase, type TestDatabase } from "../support/database.ts";
import { until } from "../support/wait.ts";
import { createCoreClient } from "../support/core-client.ts";

const log = createLog({ level: "silent" });

const settingsOf = async (pool: Database["pool"]): Promise<unknown> => {
  const { rows } = await pool.query(
    `SELECT current_setting('TimeZone') AS zone, current_setting('statement_timeout') AS statement,
        current_setting('idle_in_transaction_session_timeout') AS idle, current_setting('application_name') AS name,
          current_setting('enable_seqscan') AS scans, current_setting('plan_cache_mode') AS plans`,
  );
  return rows[0];
};

/** Returns the compression of a new large value. */
async function compressionOf(pool: Database["pool"]): Promise<unknown> {
  await pool.query("CREATE TABLE IF NOT EXISTS large (value text)");
  await pool.query("TRUNCATE large");
  await pool.query("INSERT INTO large VALUES (repeat('text ', 10000))");
  const { rows } = await pool.query("SELECT pg_column_compression(value) AS how FROM large");
  return rows[0]?.how;
}

describe("openDatabase", () => {
  let created: TestDatabase;
  let database: Database;

  beforeEach(async () => {
    created = await createTestDatabase();
    database = await openDatabase({ url: created.url, poolSize: 3, isEmbedded: false, log });
  });

  afterEach(async () => {
    await database.close();
    await created.drop();
  });

  it("gives every session UTC, limits for statements and idle transactions, and a name", async () => {
    expect(await settingsOf(database.pool)).to.deep.equal({
      zone: "UTC",
      statement: "30s",
      idle: "1min",
      name: database.name,
      scans: "on",
      plans: "auto",
    });
    expect(database.name).to.match(/^svc [0-9a-f]{8}$/);
  });

  it("limits a statement to one core of the server, without JIT", async () => {
    const { rows } = await database.pool.query(
      "SELECT current_setting('max_parallel_workers_per_gather') AS workers, current_setting('jit') AS jit",
    );
    expect(rows).to.deep.equal([{ workers: "0", jit: "off" }]);
  });

  it("compresses large values by LZ4, unless the database sets another method", async () => {
    const { rows } = await database.pool.query(
      "SELECT 'lz4' = ANY (enumvals) AS has FROM pg_settings WHERE name = 'default_toast_compression'",
    );
    expect(await compressionOf(database.pool)).to.equal(rows[0]?.has === true ? "lz4" : "pglz");

    const name = new URL(created.url).pathname.slice(1);
    await database.pool.query(`ALTER DATABASE ${name} SET default_toast_compression = 'pglz'`);
    const later = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false, log });
    try {
      expect(await compressionOf(later.pool)).to.equal("pglz");
    } finally {
      await later.close();
    }
  });

  it("reads and writes values the same with any settings of the database", async () => {
    await changeValueSettings(created.url);

    const { rows } = await database.pool.query<unknown[]>({
      text: String.raw`SELECT '\x00ff5c27'::bytea, ARRAY['\x00ff'::bytea]::text, ARRAY[0.1 + 0.2::float8]::text, 'a\b', '{NULL}'::text[]`,
      rowMode: "array",
    });

    const bytes = Buffer.from("00ff5c27", "hex");
    expect(rows).to.deep.equal([
      [bytes, String.raw`{"\\x00ff"}`, "{0.30000000000000004}", String.raw`a\b`, [null]],
    ]);
  });

  it("fires the triggers that capture changes with any settings of the database", async () => {
    await changeValueSettings(created.url);
    await database.pool.query(`
      CREATE TABLE notes (id int);
      CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''fired''; END';
      CREATE TRIGGER refuse AFTER INSERT ON notes FOR EACH ROW EXECUTE FUNCTION refuse()`);

    const inserted = await database.pool.query("INSERT INTO notes VALUES (1)").then(() => "inserted", String);

    expect(inserted).to.equal("error: fired");
  });

  it("waits for another change of a row and makes its own with any settings of the database", async () => {
    await changeValueSettings(created.url);
    await database.pool.query("CREATE TABLE counts (n int); INSERT INTO counts VALUES (0)");
    const add = "UPDATE counts SET n = n + 1 RETURNING n";
    const other = await database.pool.connect();
    await other.query("BEGIN");
    await other.query(add);

    const waiting = database.pool.query(add).then(({ rows }) => rows as unknown, String);
    const locks = "SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'";
    await until(async () => (await other.query(locks)).rowCount === 1, { what: "the second change to wait" });
    await other.query("COMMIT");
    other.release();

    expect(await waiting).to.deep.equal([{ n: 2 }]);
  });

  // PGlite loops forever once its own limit of idle transactions has passed.
  for (const [isEmbedded, scans, idle, plans] of [
    [false, "off", "1min", "force_generic_plan"],
    [true, "on", "0", "auto"],
  ] as const) {
    it(`has connections of its own for the relay and the dispatcher, ${isEmbedded ? "as the planner likes" : "which read by index"} (embedded: ${isEmbedded})`, async () => {
      const limits = { poolSize: 1, relays: true, dispatches: true, isEmbedded } as const;
      const other = await openDatabase({ url: created.url, program: "all", ...limits, log });
      const pools = [other.pool, other.relay, other.dispatcher];
      try {
        const settings = await Promise.all(pools.map(settingsOf));

        expect(new Set(pools).size).to.equal(3);
        const name = other.name;
        // The outbox recognises the writer of an event by the name.
        expect(settings).to.deep.equal([
          { zone: "UTC", statement: "30s", idle, name, scans: "on", plans: "auto" },
          { zone: "UTC", statement: "2s", idle, name, scans, plans },
          { zone: "UTC", statement: "30s", idle, name, scans, plans },
        ]);
        expect(name)
          .to.match(/^svc all [0-9a-f]{8}$/)
          .and.not.equal(database.name);
      } finally {
        await other.close();
      }
    });
  }

  it("reads for the relay while a group of new events and a retry wait for a lock", async () => {
    const limits = { poolSize: 1, relays: true, dispatches: false, isEmbedded: false } as const;
    const other = await openDatabase({ url: created.url, program: "api", ...limits, log });
    const locker = await database.pool.connect();
    try {
      await locker.query("SELECT pg_advisory_lock(1)");
      const wait = "SET statement_timeout = 0; SELECT pg_advisory_lock_shared(1)";
      const waits = [1, 2].map(() => other.relay.query(wait));
      // Without a connection for it, the read waits until the test's time is over.
      await other.relay.query("SELECT");
      await locker.query("SELECT pg_advisory_unlock(1)");
      await Promise.all(waits);
    } finally {
      locker.release(true);
      await other.close();
    }
  });

  it("runs the core client on the same pool, with named statements", async () => {
    await createCoreClient(database.pool).$queryRaw`SELECT 41 + ${1}::int AS answer`;

    const { rows } = await database.pool.query<{ name: string }>(
      "SELECT name FROM pg_prepared_statements WHERE statement LIKE 'SELECT 41 + %'",
    );
    expect(database.pool.totalCount).to.equal(1);
    expect(rows[0]?.name).to.match(/^svc_.{24}$/);
  });

  it("names no statement on the embedded database", async () => {
    const other = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: true, log });
    await createCoreClient(other.pool, { isEmbedded: true }).$queryRaw`SELECT 41 + ${1}::int AS answer`;

    const { rows } = await other.pool.query("SELECT name FROM pg_prepared_statements");

    expect(rows).to.deep.equal([]);
    await other.close();
  });

  it("survives the loss of an idle connection", async () => {
    const { rows } = await database.pool.query<{ pid: number }>("SELECT pg_backend_pid() AS pid");
    const killer = await openDatabase({ url: created.url, poolSize: 1, isEmbedded: false, log });

    await killer.pool.query("SELECT pg_terminate_backend($1)", [rows[0]?.pid]);
    await until(() => database.pool.totalCount === 0, { what: "the pool to notice" });

    expect((await database.pool.query("SELECT 1")).rowCount).to.equal(1);
    await killer.close();
  });

  it("does not connect before the first use", async () => {
    const away = await openDatabase({
      url: "postgresql://nobody@127.0.0.1:1/nowhere",
      poolSize: 1,
      isEmbedded: false,
    });

    await away.close();
  });
});

describe("createStatementNamer", () => {
  it("gives the same text the same name, and another text another one", () => {
    const nameOf = createStatementNamer(createStatementNames(false));

    expect(nameOf({ sql: "SELECT 1", args: [] })).to.equal(nameOf({ sql: "SELECT 1", args: [] }));
    expect(nameOf({ sql: "SELECT 1", args: [] })).not.to.equal(nameOf({ sql: "SELECT 2", args: [] }));
  });

  it("names at most 500 texts, and none with more than 32 parameters", () => {
    const nameOf = createStatementNamer(createStatementNames(false));
    const names = Array.from({ length: 501 }, (_, index) => nameOf({ sql: `SELECT ${index}`, args: [] }));

    expect(names.filter((name) => name !== "")).to.have.length(500);
    expect(names[500]).to.equal("");
    expect(nameOf({ sql: "SELECT 0", args: [] })).to.equal(names[0]);
    expect(
      createStatementNamer(createStatementNames(false))({ sql: "SELECT", args: Array.from({ length: 33 }) }),
    ).to.equal("");
  });
});
