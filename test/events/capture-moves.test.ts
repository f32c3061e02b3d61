import { expect } from "chai";
import type { Client } from "pg";
import { captureOf } from "../../src/events/capture.ts";
import type { Field } from "../../src/mapping/definition.ts";
import { columns, notes, openCaptureScene, type CaptureScene } from "../support/capture-scene.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";

const byRegion = `
  CREATE TABLE notes (id int, text text, user_id int, region int) PARTITION BY RANGE (region);
  CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100);
  CREATE TABLE notes_100 PARTITION OF notes FOR VALUES FROM (100) TO (200)`;

describe("captureOf, of rows that move", () => {
  let database: TestDatabase;
  let scene: CaptureScene;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    scene = await openCaptureScene(database.url);
    ({ client } = scene);
  });
  beforeEach(() => scene.reset());
  after(async () => {
    await scene.close();
    await database.drop();
  });

  const eventsOf = (sql: string): Promise<readonly string[]> => scene.eventsOf(sql);

  it("keeps no old row when a part of the key changes: it is another record", async () => {
    await client.query(`CREATE TABLE notes (${columns.replace(" PRIMARY KEY", "")})`);
    const [id, , owner] = notes.fields as readonly [Field, Field, Field];
    const kept = { ...notes, keys: [id, owner], keepsPrevious: true };
    await client.query(captureOf(kept).install.join(";"));
    await client.query("INSERT INTO notes VALUES (1, 'a', 7)");

    await eventsOf("UPDATE notes SET text = 'b'; UPDATE notes SET user_id = 8; UPDATE notes SET id = 2");

    const { rows } = await client.query(
      "SELECT record_id, previous ->> 'text' AS text FROM svc.events ORDER BY id",
    );
    expect(rows).to.deep.equal([
      { record_id: "1,7", text: "a" },
      { record_id: "1,8", text: null },
      { record_id: "2,8", text: null },
    ]);
  });

  describe("to another partition", () => {
    beforeEach(async () => {
      await client.query(byRegion);
      await client.query(captureOf({ ...notes, isManaged: false }).install.join(";"));
      await client.query("INSERT INTO notes VALUES (1, 'a', 7, 0), (2, 'b', 7, 0)");
    });

    it("captures a change, and nothing when no mapped column has changed", async () => {
      expect(await eventsOf("UPDATE notes SET region = 100, text = 'c' WHERE id = 1")).to.deep.equal([
        "on_update 1 c",
      ]);
      expect(await eventsOf("UPDATE notes SET region = 100 WHERE id = 2")).to.deep.equal([]);
    });

    it("does the same within a trigger of another table", async () => {
      await client.query(`
        CREATE TABLE moves (region int);
        CREATE FUNCTION move() RETURNS trigger LANGUAGE plpgsql AS
          $$ BEGIN UPDATE notes SET region = NEW.region, text = 'c' WHERE id = 1; RETURN NULL; END $$;
        CREATE TRIGGER move AFTER INSERT ON moves FOR EACH ROW EXECUTE FUNCTION move()`);

      expect(await eventsOf("INSERT INTO moves VALUES (100)")).to.deep.equal(["on_update 1 c"]);
    });

    it("does the same for a cascading foreign key, and only during it", async () => {
      await client.query(`
        CREATE TABLE regions (id int PRIMARY KEY);
        INSERT INTO regions VALUES (0);
        ALTER TABLE notes ADD FOREIGN KEY (region) REFERENCES regions ON UPDATE CASCADE`);

      const events = await eventsOf(`
        UPDATE regions SET id = 100;
        DELETE FROM notes_100 WHERE id = 1;
        INSERT INTO notes_100 VALUES (1, 'c', 7, 100)`);

      expect(events).to.deep.equal(["on_delete 1 a", "on_create 1 c"]);
    });

    it("does not confuse the inserted row with other rows that the statement deletes", async () => {
      const events = await eventsOf(`
        WITH changed AS (UPDATE notes SET text = 'c' WHERE id = 1),
          gone AS (DELETE FROM notes WHERE id = 2 RETURNING text)
        INSERT INTO notes SELECT 3, text, 7, 100 FROM gone`);

      expect(events).to.have.members(["on_update 1 c", "on_delete 2 b", "on_create 3 b"]);
    });

    it("folds rows of a key of which one field has changed, only in another partition", async () => {
      const [id, , owner] = notes.fields as readonly [Field, Field, Field];
      const keyed = { ...notes, keys: [id, owner], isManaged: false };
      await client.query(captureOf(keyed).install.join(";"));

      expect(await eventsOf("UPDATE notes SET user_id = 8, region = 100 WHERE id = 1")).to.deep.equal([
        "on_update 1,8 a",
      ]);
      const events = await eventsOf(`
        WITH changed AS (UPDATE notes SET text = 'c' WHERE id = 1),
          gone AS (DELETE FROM notes WHERE id = 2 RETURNING text)
        INSERT INTO notes SELECT 3, text, 7, 0 FROM gone`);
      expect(events).to.have.members(["on_update 1,8 c", "on_delete 2,7 b", "on_create 3,7 b"]);
    });

    it("loses no event to a writer who forges the running statement", async () => {
      await client.query("DELETE FROM notes WHERE id = 1");
      const deleted = "SELECT id FROM svc.events WHERE trigger = 'on_delete'";
      const newest = "SELECT max(id) FROM svc.events";
      const resource = Buffer.from("notes").toString("hex");
      const forge = (event: string): string =>
        `SET LOCAL svc.under_way_${resource} = 'u'; SELECT set_config('svc.moved_${resource}', (${event})::text, true)`;

      await client.query(`BEGIN; INSERT INTO notes VALUES (3, 'c', 7, 0);
        ${forge(deleted)}; INSERT INTO notes VALUES (4, 'd', 7, 0);
        ${forge(newest)}; INSERT INTO notes VALUES (5, 'e', 7, 0); COMMIT`);

      expect(await scene.events()).to.deep.equal([
        "on_create 1 a",
        "on_create 2 b",
        "on_delete 1 a",
        "on_create 3 c",
        "on_create 4 d",
        "on_create 5 e",
      ]);
    });
  });
});
