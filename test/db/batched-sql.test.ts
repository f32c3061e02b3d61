import { setImmediate as nextTurn } from "node:timers/promises";
import { expect } from "chai";
import { createBatchedSql, type SqlOf } from "../../src/db/batched-sql.ts";
import { openDatabase } from "../../src/db/client.ts";
import type { TextRow } from "../../src/db/statement-batch.ts";
import { createTurns } from "../../src/kit/turns.ts";
import type { TextSql } from "../../src/db/text-sql.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { until } from "../support/wait.ts";
import { databaseOfSuite } from "../support/own-database.ts";

const settled = async (reads: readonly Promise<(string | null)[][]>[]): Promise<readonly unknown[]> =>
  (await Promise.allSettled(reads)).map((one) =>
    one.status === "fulfilled" ? one.value : (one.reason as { readonly code?: string }).code,
  );

describe("createBatchedSql", () => {
  const database = databaseOfSuite({ poolSize: 2 });
  let sql: TextSql;
  /** Number of connections that were taken. */
  let taken = 0;

  before(async () => {
    database.pool.on("acquire", () => (taken += 1));
    await database.pool.query(
      "CREATE SEQUENCE numbers; CREATE TABLE things (id int, name text); INSERT INTO things VALUES (1, 'one'), (2, NULL), (2, 'two')",
    );
    sql = createBatchedSql<undefined>({
      pool: database.pool,
      names: createStatementNames(false),
      keyOf: () => "",
      kind: "reads",
    })(undefined);
  });
  beforeEach(() => {
    taken = 0;
  });

  const named = "SELECT name FROM things WHERE id = $1 ORDER BY name";
  it("sends the reads of one turn over one connection, and gives each its own rows", async () => {
    const rows = await Promise.all([1, 3, "2", 1].map((id) => sql(named, [id])));

    expect(rows).to.deep.equal([[["one"]], [], [["two"], [null]], [["one"]]]);
    expect(taken).to.equal(1);
  });

  it("sends other texts over a separate connection, which a lock on one table does not delay", async () => {
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

  it("fails only the faulty read", async () => {
    const reads = [1, "no number", 2].map((id) => sql(named, [id]));

    expect(await settled(reads)).to.deep.equal([[["one"]], "22P02", [["two"], [null]]]);
  });

  it("reports the fault of a single read without a retry", async () => {
    expect(await settled([sql(named, ["no number"])])).to.deep.equal(["22P02"]);
    expect(taken).to.equal(1);
  });

  it("continues after a column of a prepared statement has another type", async () => {
    const text = "SELECT id FROM things WHERE name = $1";
    await sql(text, ["one"]);
    await database.pool.query("ALTER TABLE things ALTER id TYPE text USING id || ' m'");

    expect(await Promise.all([sql(text, ["one"]), sql(text, ["two"])])).to.deep.equal([[["1 m"]], [["2 m"]]]);
    expect(await sql(text, ["one"])).to.deep.equal([["1 m"]]);
  });

  it("fails every read of a lost connection, and continues with another one", async () => {
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

  it("keeps the results before a fault, and repeats the reads after it", async () => {
    const reads = [1, 0, 2].map((by) => sql("SELECT nextval('numbers'), 10 / $1::int", [by]));

    expect(await settled(reads)).to.deep.equal([[["1", "10"]], "22012", [["2", "5"]]]);
  });

  it("sends fewer executions of a slow text together", async () => {
    const text = "SELECT pg_sleep(0.06), $1::text";
    await sql(text, ["first"]);
    taken = 0;
    await Promise.all(["a", "b", "c"].map((value) => sql(text, [value])));

    expect(taken).to.equal(3);
  });
});

describe("createBatchedSql, for reads in turns", () => {
  const database = databaseOfSuite({ poolSize: 4 });
  let sqlOf: SqlOf<number>;

  before(async () => {
    await database.pool.query("CREATE SEQUENCE numbers");
    const turns = createTurns(1);
    sqlOf = createBatchedSql<number>({
      pool: database.pool,
      names: createStatementNames(false),
      keyOf: String,
      inTurn: (user, act) => turns.run(user, act),
      kind: "equal reads",
    });
  });

  const text = "SELECT nextval('numbers'), $1::text, pg_backend_pid()";
  it("runs those with equal values once while they wait for a turn, for each asker of its own", async () => {
    const sql = sqlOf(1);
    const locker = await database.pool.connect();
    await locker.query("SELECT pg_advisory_lock(1)");
    const holder = sql("SELECT pg_advisory_xact_lock(1)", []);
    const reads: Promise<TextRow[]>[] = [];
    for (const value of ["a", "a", "b"]) {
      await nextTurn();
      reads.push(sql(text, [value]));
    }
    await nextTurn();
    locker.release(true);
    const [[one], [same], [other]] = (await Promise.all(reads)) as [[TextRow], [TextRow], [TextRow]];
    await holder;

    expect(same).to.deep.equal(one);
    expect(same).to.not.equal(one);
    expect([other[1], other[2]]).to.deep.equal(["b", one[2]]);
    expect(other[0]).to.not.equal(one[0]);
  });

  it("runs a read that reaches the limit of its batch again, alone and without the limit", async () => {
    const alone: number[] = [];
    const limited = createBatchedSql<number>({
      pool: database.pool,
      names: createStatementNames(false),
      keyOf: String,
      inTurn: (user, act) => (alone.push(user), act()),
      inBatchTurn: (_user, act) => act(50),
      kind: "equal reads",
    });
    const slow = "SELECT $1::text, pg_sleep($2)";
    const [one] = await limited(1)(slow, ["one", 0.2]);
    const rows = await Promise.all([0, 0.2, 0].map((seconds) => limited(2)(slow, ["two", seconds])));

    expect(one?.[0]).to.equal("one");
    expect(rows.map(([row]) => row?.[0])).to.deep.equal(["two", "two", "two"]);
    expect(alone.slice(0, 2)).to.deep.equal([1, 2]);
  });

  it("keeps the users apart", async () => {
    const rows = await Promise.all([sqlOf(1)(text, ["a"]), sqlOf(2)(text, ["a"])]);

    expect(rows[0]?.[0]?.[2]).to.not.equal(rows[1]?.[0]?.[2]);
  });
});

describe("createBatchedSql, for writes", () => {
  const lists = {
    connections: 2,
    statementTimeoutMs: 1_000,
    maxResultBytes: 1024 ** 2,
    maxRowBytes: 1024 ** 2,
  };
  const database = databaseOfSuite({ poolSize: 8, lists });
  let sqlOf: SqlOf<number>;

  const insert = "INSERT INTO items (name, parent) VALUES ($1, $2) RETURNING name, xmin::text";
  const namesOf = async (): Promise<readonly unknown[]> =>
    (await database.pool.query("SELECT name FROM items ORDER BY name")).rows.map(
      ({ name }: { readonly name: string }) => name,
    );

  before(async () => {
    await database.pool.query(
      "CREATE TABLE parents (id int PRIMARY KEY); INSERT INTO parents VALUES (1), (2)",
    );
    await database.pool.query(
      "CREATE TABLE items (name text PRIMARY KEY, parent int REFERENCES parents, CHECK (name <> 'bad'))",
    );
    sqlOf = createBatchedSql<number>({
      pool: database.pool,
      names: createStatementNames(false),
      keyOf: String,
      kind: "writes",
    });
  });
  beforeEach(() => database.pool.query("TRUNCATE items"));

  it("commits those of one user at once, and those of another user apart", async () => {
    const [one, two, other] = await Promise.all([
      sqlOf(1)(insert, ["one", 1]),
      sqlOf(1)(insert, ["two", 1]),
      sqlOf(2)(insert, ["other", 1]),
    ]);

    expect([one, two, other].map(([row]) => row?.[0])).to.deep.equal(["one", "two", "other"]);
    expect(one[0]?.[1]).to.equal(two[0]?.[1]);
    expect(other[0]?.[1]).to.not.equal(one[0]?.[1]);
  });

  it("fails only the faulty write, at any place in the batch", async () => {
    for (const at of [0, 1, 3]) {
      await database.pool.query("TRUNCATE items");
      const names = ["a", "b", "c"].toSpliced(at, 0, "bad");
      const outcomes = await settled(names.map((name) => sqlOf(1)(insert, [name, 1])));

      expect(outcomes.map((outcome) => (typeof outcome === "string" ? outcome : "written"))).to.deep.equal(
        names.map((name) => (name === "bad" ? "23514" : "written")),
      );
      expect(await namesOf()).to.deep.equal(["a", "b", "c"]);
    }
  });

  it("writes one of two that exclude each other", async () => {
    const outcomes = await settled([1, 2].map((parent) => sqlOf(1)(insert, ["same", parent])));

    expect(outcomes.filter((outcome) => outcome === "23505")).to.have.length(1);
    expect(await namesOf()).to.deep.equal(["same"]);
  });

  it("makes each of two that are equal", async () => {
    await database.pool.query("CREATE TABLE notes (text text)");
    const note = "INSERT INTO notes VALUES ($1) RETURNING text";
    await Promise.all([sqlOf(1)(note, ["same"]), sqlOf(1)(note, ["same"])]);

    expect((await database.pool.query("SELECT FROM notes")).rowCount).to.equal(2);
  });

  it("fails a write that takes too long, and makes the others", async () => {
    const limited = createBatchedSql<number>({
      pool: database.lists,
      names: createStatementNames(false),
      keyOf: String,
      kind: "writes",
    })(1);
    const slowly =
      "INSERT INTO items (name) SELECT $1::text FROM pg_sleep($2::float8) RETURNING name, xmin::text";
    const outcomes = await settled([
      limited(slowly, ["a", 0]),
      limited(slowly, ["b", 5]),
      limited(slowly, ["c", 0]),
    ]);

    expect(outcomes[1]).to.equal("57014");
    expect(await namesOf()).to.deep.equal(["a", "c"]);
  });

  it("repeats no write of a batch whose results were too large together, because it may be committed", async () => {
    const small = await openDatabase({
      url: database.url,
      poolSize: 1,
      maxResultBytes: 200_000,
      isEmbedded: false,
    });
    await small.pool.query("CREATE TABLE counts AS SELECT id, 0 AS count FROM generate_series(1, 4) AS id");
    const sql = createBatchedSql<number>({
      pool: small.pool,
      names: createStatementNames(false),
      keyOf: String,
      kind: "writes",
    })(1);
    const count = "UPDATE counts SET count = count + 1 WHERE id = $1 RETURNING repeat('x', 100000)";
    await settled([1, 2, 3, 4].map((id) => sql(count, [id])));
    const { rows } = await small.pool.query<{ most: number }>("SELECT max(count) AS most FROM counts");
    await small.close();

    expect(rows[0]?.most).to.be.below(2);
  });

  it("reports a refusal of a deferred constraint at the commit", async () => {
    await database.pool.query(
      "CREATE TABLE late (id int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO late VALUES (1)",
    );
    const writes = [1, 2].map((id) => sqlOf(1)("INSERT INTO late VALUES ($1) RETURNING id", [id]));

    expect(await settled(writes)).to.deep.equal(["23505", [["2"]]]);
  });

  it("fails a write that meets a lock, with a limit for locks, also one that is sent without a name", async () => {
    const names = createStatementNames(false);
    const writes = createBatchedSql<number>({
      pool: database.pool,
      names: (text) => (text.endsWith("*/") ? undefined : names(text)),
      keyOf: String,
      kind: "writes",
    });
    const hasty = writes(1, 20);
    const locker = await database.pool.connect();
    await locker.query("BEGIN; SELECT FROM parents WHERE id = 1 FOR UPDATE");
    try {
      expect(await settled([hasty(insert, ["alone", 1])])).to.deep.equal(["55P03"]);
      expect(await settled([hasty(`${insert} /**/`, ["unnamed", 1])])).to.deep.equal(["55P03"]);
      const patient = writes(1)(insert, ["patient", 1]);
      const [held] = await settled([hasty(insert, ["held", 1]), hasty(insert, ["free", 2])]);
      expect(held).to.equal("55P03");
      expect(await namesOf()).to.deep.equal(["free"]);
      await locker.query("COMMIT");
      await patient;
      expect(await namesOf()).to.deep.equal(["free", "patient"]);
    } finally {
      locker.release(true);
    }
  });

  it("does not let a write that meets a lock delay the others", async () => {
    const locker = await database.pool.connect();
    await locker.query("BEGIN; SELECT FROM parents WHERE id = 1 FOR UPDATE");
    let isLocked = true;
    try {
      const held = sqlOf(1)(insert, ["held", 1]);
      const free = await Promise.all(["free", "too"].map((name) => sqlOf(1)(insert, [name, 2])));
      void held.then(() => (isLocked = false));

      expect(free.flat().map((row) => row?.[0])).to.deep.equal(["free", "too"]);
      expect(isLocked).to.equal(true);
      await locker.query("COMMIT");
      expect((await held)[0]?.[0]).to.equal("held");
      expect(await namesOf()).to.deep.equal(["free", "held", "too"]);
    } finally {
      locker.release(true);
    }
  });
});
