import { expect } from "chai";
import { migrationDue } from "../../src/app/migration-due.ts";
import { Pool } from "pg";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { openScene, titlesOf, type Scene } from "../support/migration-scene.ts";

const notes = definition({ name: "notes", isManaged: false, fields: [field("text", "String")] });
const mapped = definitionsOf(notes);

describe("applyMigration over partitions and INHERITS children", () => {
  let scene: Scene;
  let pool: Pool;

  beforeEach(async () => {
    scene = await openScene();
    pool = new Pool({ connectionString: scene.url });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
  });

  afterEach(async () => {
    await pool.end();
    await scene.close();
  });

  const due = (): Promise<readonly string[]> => migrationDue({ database: { pool }, definitions: mapped });
  const eventsOf = async (sql: string): Promise<readonly string[]> => {
    await pool.query(`DELETE FROM svc.events; ${sql}`);
    const { rows } = await pool.query<{ event: string }>(
      "SELECT concat_ws(' ', trigger, record_id) AS event FROM svc.events ORDER BY id",
    );
    return rows.map(({ event }) => event);
  };

  it("gives new partitions the trigger of TRUNCATE, and lets programs start before it", async () => {
    await pool.query(`
      CREATE TABLE notes (id int PRIMARY KEY, text text NOT NULL) PARTITION BY RANGE (id);
      CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100)`);
    expect(await scene.apply(mapped)).to.equal("done");
    expect(titlesOf(await scene.plan(mapped))).to.deep.equal([]);

    await pool.query(`
      CREATE SCHEMA archive;
      CREATE TABLE notes_100 PARTITION OF notes FOR VALUES FROM (100) TO (200);
      CREATE TABLE archive."Notes 200" PARTITION OF notes FOR VALUES FROM (200) TO (300)`);

    expect(await due()).to.deep.equal([]);
    expect(titlesOf(await scene.plan(mapped))).to.deep.equal([
      'notes: capture trigger on archive."Notes 200", notes_100',
    ]);
    expect(await scene.apply(mapped)).to.equal("done");
    expect(titlesOf(await scene.plan(mapped))).to.deep.equal([]);
    expect(
      await eventsOf("INSERT INTO notes VALUES (1, 'a'), (200, 'b'); TRUNCATE archive.\"Notes 200\""),
    ).to.deep.equal(["on_create 1", "on_create 200", "on_delete 200"]);
  });

  it("lets another owner of the table add partitions", async () => {
    const { client } = scene;
    await client.query(`
      CREATE ROLE svc_test_partitioner; GRANT CREATE, USAGE ON SCHEMA public TO svc_test_partitioner;
      SET ROLE svc_test_partitioner;
      CREATE TABLE notes (id int PRIMARY KEY, text text NOT NULL) PARTITION BY RANGE (id);
      RESET ROLE`);
    try {
      expect(await scene.apply(mapped)).to.equal("done");
      await client.query(`
        SET ROLE svc_test_partitioner;
        CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100);
        RESET ROLE`);

      expect(await eventsOf("INSERT INTO notes VALUES (1, 'a')")).to.deep.equal(["on_create 1"]);
    } finally {
      await client.query("RESET ROLE; DROP OWNED BY svc_test_partitioner; DROP ROLE svc_test_partitioner");
    }
  });

  it("lets other owners of partitioned partitions add partitions, also of a later one", async () => {
    const { client } = scene;
    await client.query(`
      CREATE ROLE svc_test_partitioner; GRANT CREATE, USAGE ON SCHEMA public TO svc_test_partitioner;
      CREATE TABLE notes (id int PRIMARY KEY, text text NOT NULL) PARTITION BY RANGE (id);`);
    try {
      for (const from of [0, 100]) {
        await client.query(`
          CREATE TABLE notes_${from} PARTITION OF notes FOR VALUES FROM (${from}) TO (${from + 100}) PARTITION BY RANGE (id);
          ALTER TABLE notes_${from} OWNER TO svc_test_partitioner`);
        expect(await scene.apply(mapped)).to.equal("done");
        await client.query(`
          SET ROLE svc_test_partitioner;
          CREATE TABLE notes_${from}_all PARTITION OF notes_${from} DEFAULT;
          RESET ROLE`);
      }

      expect(await eventsOf("INSERT INTO notes VALUES (1, 'a'), (100, 'b')")).to.have.length(2);
    } finally {
      await client.query("RESET ROLE; DROP OWNED BY svc_test_partitioner; DROP ROLE svc_test_partitioner");
    }
  });

  it("requires a migration for a new child whose rows are not captured yet", async () => {
    await pool.query("CREATE TABLE notes (id int PRIMARY KEY, text text NOT NULL)");
    expect(await scene.apply(mapped)).to.equal("done");

    await pool.query("CREATE TABLE child () INHERITS (notes); CREATE TABLE grandchild () INHERITS (child)");

    expect(await due()).to.deep.equal([
      "notes: its capture trigger on child, grandchild is gone or disabled",
    ]);
    expect(await scene.apply(mapped)).to.equal("done");
    expect(await due()).to.deep.equal([]);
    expect(titlesOf(await scene.plan(mapped))).to.deep.equal([]);
    expect(await eventsOf("INSERT INTO grandchild VALUES (1, 'a'); TRUNCATE notes")).to.deep.equal([
      "on_create 1",
      "on_delete 1",
    ]);
  });

  it("detects triggers that are disabled on a part, or dropped, and restores them", async () => {
    await pool.query(`
      CREATE TABLE notes (id int PRIMARY KEY, text text NOT NULL) PARTITION BY RANGE (id);
      CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100)`);
    for (const [sql, where] of [
      ['ALTER TABLE notes_0 DISABLE TRIGGER "0_svc_capture_notes"', "notes_0"],
      ["ALTER TABLE notes_0 DISABLE TRIGGER svc_capture_notes_truncate", "notes_0"],
      ["DROP TRIGGER svc_capture_notes_truncate ON notes", "notes"],
    ]) {
      expect(await scene.apply(mapped)).to.equal("done");
      await pool.query(sql ?? "");

      expect(await due(), sql).to.deep.equal([`notes: its capture trigger on ${where} is gone or disabled`]);
      expect(await scene.apply(mapped)).to.equal("done");
      expect(await due(), sql).to.deep.equal([]);
    }
    expect(await eventsOf("INSERT INTO notes_0 VALUES (1, 'a'); TRUNCATE notes")).to.deep.equal([
      "on_create 1",
      "on_delete 1",
    ]);
  });
});
