import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "chai";
import { Client } from "pg";
import { openCaptureScene, columns, partitioned, type CaptureScene } from "../support/capture-scene.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { psql } from "../support/psql.ts";
import { until } from "../support/wait.ts";

describe("captureOf beside other writers", () => {
  let database: TestDatabase;
  let scene: CaptureScene;
  let client: Client;
  let other: Client;

  before(async () => {
    database = await createTestDatabase();
    scene = await openCaptureScene(database.url);
    ({ client } = scene);
  });
  beforeEach(async () => {
    await scene.reset();
    other = new Client({ connectionString: database.url });
    await other.connect();
  });
  afterEach(async () => {
    await client.query("ROLLBACK");
    await other.end();
  });
  after(async () => {
    await scene.close();
    await database.drop();
  });

  it("tells of COPY", async () => {
    await scene.installOn(partitioned);
    const folder = await mkdtemp(path.join(tmpdir(), "svc-copy-"));
    try {
      const file = path.join(folder, "copy.sql");
      await writeFile(file, "COPY notes (id, text) FROM STDIN;\n1\ta\n100\tb\n\\.\n");
      await psql(database.url, { file });
    } finally {
      await rm(folder, { recursive: true });
    }

    expect(await scene.events()).to.deep.equal(["on_create 1 a", "on_create 100 b"]);
  });

  it("captures a change before those that triggers of the table make of the same row", async () => {
    await scene.installOn(`
      CREATE TABLE notes (${columns});
      CREATE FUNCTION number_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE notes SET text = concat(NEW.text, ' no. ', NEW.id) WHERE id = NEW.id;
        RETURN NULL;
      END $$;
      CREATE FUNCTION clear_it() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        DELETE FROM notes WHERE id = NEW.id;
        RETURN NULL;
      END $$;
      CREATE TRIGGER "Number" AFTER INSERT ON notes FOR EACH ROW EXECUTE FUNCTION number_it();
      CREATE TRIGGER clear AFTER UPDATE ON notes FOR EACH ROW WHEN (NEW.text = 'void') EXECUTE FUNCTION clear_it()`);

    expect(await scene.eventsOf("INSERT INTO notes VALUES (1, 'a')")).to.deep.equal([
      "on_create 1 a",
      "on_update 1 a no. 1",
    ]);
    expect(await scene.eventsOf("UPDATE notes SET text = 'void'")).to.deep.equal([
      "on_update 1 void",
      "on_delete 1 void",
    ]);
  });

  it("captures a deletion before those that foreign keys make of it", async () => {
    await scene.installOn(`
      CREATE TABLE notes (${columns}, parent_id int REFERENCES notes ON DELETE CASCADE);
      INSERT INTO notes (id, text, parent_id) VALUES (1, 'a', NULL), (2, 'b', 1)`);

    expect(await scene.eventsOf("DELETE FROM notes WHERE id = 1")).to.deep.equal([
      "on_delete 1 a",
      "on_delete 2 b",
    ]);
  });

  for (const level of ["REPEATABLE READ", "SERIALIZABLE"]) {
    it(`refuses it in ${level} when rows were committed after the snapshot`, async () => {
      await scene.installOn(`CREATE TABLE notes (${columns}); INSERT INTO notes VALUES (1, 'a')`);
      await client.query(`BEGIN ISOLATION LEVEL ${level}; SELECT FROM notes`);
      await other.query("INSERT INTO notes VALUES (2, 'b')");

      const fault = await client.query("TRUNCATE notes").catch((error: unknown) => error);
      await client.query("ROLLBACK");

      expect(fault).to.deep.include({ code: "40001" });
      expect((fault as Error).message).to.match(
        /^could not serialize access: TRUNCATE of public.notes may remove/,
      );
      expect(await scene.eventsOf("TRUNCATE notes")).to.have.members(["on_delete 1 a", "on_delete 2 b"]);
    });
  }

  it("refuses it in REPEATABLE READ when a writer that it waited for was running at the snapshot", async () => {
    await scene.installOn(`CREATE TABLE notes (${columns})`);
    await other.query("BEGIN; INSERT INTO notes VALUES (1, 'a')");
    // The snapshot lists the writer's transaction as running only with a later one that has ended.
    await client.query("CREATE TABLE others (id int)");
    const fault = client
      .query("BEGIN ISOLATION LEVEL REPEATABLE READ; TRUNCATE notes")
      .catch((error: unknown) => error);
    await untilWaiting(other);
    await other.query("COMMIT");

    expect(await fault).to.deep.include({ code: "40001" });
    await client.query("ROLLBACK");
  });

  it("captures the rows of writers that it waited for, in READ COMMITTED, and after LOCK TABLE in REPEATABLE READ", async () => {
    await scene.installOn(`CREATE TABLE notes (${columns})`);
    for (const begin of [
      "BEGIN",
      "BEGIN ISOLATION LEVEL REPEATABLE READ; LOCK TABLE notes IN ACCESS EXCLUSIVE MODE",
    ]) {
      await client.query("DELETE FROM svc.events");
      await other.query("BEGIN; INSERT INTO notes VALUES (1, 'a')");
      const done = client.query(`${begin}; TRUNCATE notes; COMMIT`);
      await untilWaiting(other);
      await other.query("COMMIT");
      await done;

      expect(await scene.events(), begin).to.deep.equal(["on_create 1 a", "on_delete 1 a"]);
    }
  });

  it("permits it in REPEATABLE READ when others only rolled back or are still running", async () => {
    await scene.installOn(`CREATE TABLE notes (${columns}); CREATE TABLE others (id int)`);
    await client.query("INSERT INTO notes VALUES (1, 'a')");
    const truncate = async (): Promise<void> => {
      await client.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT FROM notes");
      await other.query(
        "BEGIN; INSERT INTO notes VALUES (2, 'b'); ROLLBACK; BEGIN; INSERT INTO others VALUES (1)",
      );
      await client.query("TRUNCATE notes; COMMIT");
    };
    // An autovacuum that commits in between counts as well: the server asks the client to try
    // again.
    for (let attempt = 1; ; attempt += 1) {
      const fault = await truncate().catch((error: unknown) => error);
      if (fault === undefined) break;
      expect(fault).to.deep.include({ code: "40001" });
      expect(attempt).to.be.lessThan(5);
      await client.query("ROLLBACK");
      await other.query("ROLLBACK");
    }
    await other.query("COMMIT");

    expect(await scene.events()).to.deep.equal(["on_create 1 a", "on_delete 1 a"]);
  });
});

async function untilWaiting(observer: Client): Promise<void> {
  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await observer.query(
      "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
    );
    return rows.length > 0;
  };
  await until(isWaiting, { what: "the statement to wait for a lock" });
}
