import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect } from "chai";
import type { Client } from "pg";
import { captureBelow, captureOf } from "../../src/events/capture.ts";
import {
  columns,
  notes,
  openCaptureScene,
  partitioned,
  type CaptureScene,
} from "../support/capture-scene.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { createTestDatabase } from "../support/database.ts";

const inherited = `
  CREATE TABLE notes (${columns});
  CREATE TABLE child (PRIMARY KEY (id), extra text) INHERITS (notes);
  CREATE TABLE grandchild (PRIMARY KEY (id)) INHERITS (child)`;

interface Server {
  readonly url: string;
  close(): Promise<void>;
}

async function startReal(): Promise<Server> {
  const database = await createTestDatabase();
  return { url: database.url, close: () => database.drop() };
}

async function startEmbedded(): Promise<Server> {
  const dataDir = await mkdtemp(path.join(tmpdir(), "svc-capture-"));
  const embedded = await openNewEmbedded(dataDir);
  return {
    url: embedded.url,
    async close() {
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    },
  };
}

for (const [where, start] of [
  ["on PostgreSQL", startReal],
  ["on the embedded database", startEmbedded],
] as const) {
  describe(`captureOf ${where}`, function () {
    this.timeout(60_000);
    let server: Server;
    let scene: CaptureScene;
    let client: Client;

    before(async () => {
      server = await start();
      scene = await openCaptureScene(server.url);
      ({ client } = scene);
    });
    beforeEach(() => scene.reset());
    after(async () => {
      await scene.close();
      await server.close();
    });

    const installOn = (tables: string): Promise<void> => scene.installOn(tables);
    const eventsOf = (sql: string): Promise<readonly string[]> => scene.eventsOf(sql);

    describe("of a partitioned table", () => {
      it("captures rows that are written through a partition", async () => {
        await installOn(partitioned);

        expect(
          await eventsOf(`
            INSERT INTO notes_0_0 VALUES (1, 'a'); UPDATE notes_0 SET text = 'b'; DELETE FROM notes_0_0;
            INSERT INTO notes_100 VALUES (100, 'c')`),
        ).to.deep.equal(["on_create 1 a", "on_update 1 b", "on_delete 1 b", "on_create 100 c"]);
      });

      it("makes a delete and a create of a row that moves to another partition", async () => {
        await installOn(partitioned);
        await client.query("INSERT INTO notes VALUES (1, 'a')");

        expect(await eventsOf("UPDATE notes SET id = 100")).to.deep.equal([
          "on_delete 1 a",
          "on_create 100 a",
        ]);
      });

      it("keeps the old row of an update that moves its row to another partition", async () => {
        await client.query(`
          CREATE TABLE notes (id int, text text, user_id int, PRIMARY KEY (id, user_id)) PARTITION BY RANGE (user_id);
          CREATE TABLE notes_0 PARTITION OF notes FOR VALUES FROM (0) TO (100);
          CREATE TABLE notes_100 PARTITION OF notes FOR VALUES FROM (100) TO (200)`);
        const kept = { ...notes, isManaged: false, keepsPrevious: true };
        await client.query(captureOf(kept).install.join(";"));
        await client.query("INSERT INTO notes VALUES (1, 'a', 7)");

        expect(await eventsOf("UPDATE notes SET user_id = 107")).to.deep.equal(["on_update 1 a"]);
        const { rows } = await client.query("SELECT previous FROM svc.events");
        expect(rows).to.deep.equal([{ previous: { id: 1, text: "a", user_id: 7 } }]);
        expect(await eventsOf("UPDATE notes SET text = 'b'; UPDATE notes SET text = 'b'")).to.have.length(1);
      });

      it("leaves out an old row that is too large to be read with the new one", async () => {
        await client.query("CREATE TABLE notes (id int PRIMARY KEY, text text, user_id int)");
        const kept = { ...notes, isManaged: false, keepsPrevious: true };
        await client.query(captureOf(kept).install.join(";"));
        await client.query("INSERT INTO notes VALUES (1, repeat('a', 33 * 1024 * 1024), 7)");

        expect(await eventsOf("UPDATE notes SET text = 'b'")).to.deep.equal(["on_update 1 b"]);
        const { rows } = await client.query("SELECT previous FROM svc.events");
        expect(rows).to.deep.equal([{ previous: null }]);
      });

      it("makes one on_delete a row of TRUNCATE, of the whole or of any part", async () => {
        await installOn(partitioned);
        const insert = "INSERT INTO notes VALUES (1, 'a'), (50, 'b'), (100, 'c')";

        await client.query(insert);
        expect(await eventsOf("TRUNCATE notes_0_50")).to.deep.equal(["on_delete 50 b"]);
        expect(await eventsOf("TRUNCATE notes_0, notes_100")).to.have.members([
          "on_delete 1 a",
          "on_delete 100 c",
        ]);
        await client.query(insert);
        expect(await eventsOf("TRUNCATE notes")).to.have.members([
          "on_delete 1 a",
          "on_delete 50 b",
          "on_delete 100 c",
        ]);
        await client.query(insert);
        expect(await eventsOf("TRUNCATE notes, notes_0, notes_0_0")).to.have.length(3);
      });

      it("makes the on_delete rows of a partition whose own trigger is disabled", async () => {
        await installOn(partitioned);
        await client.query("INSERT INTO notes VALUES (1, 'a'), (50, 'b'), (100, 'c')");
        await client.query("ALTER TABLE notes_0_50 DISABLE TRIGGER svc_capture_notes_truncate");

        expect(await eventsOf("TRUNCATE notes")).to.have.members([
          "on_delete 1 a",
          "on_delete 50 b",
          "on_delete 100 c",
        ]);
      });

      it("captures later partitions at once, and their own TRUNCATE once captureBelow has run", async () => {
        await installOn(partitioned);
        await client.query(
          "CREATE TABLE notes_200 PARTITION OF notes FOR VALUES FROM (200) TO (300); CREATE TABLE late (LIKE notes)",
        );
        await client.query("ALTER TABLE notes ATTACH PARTITION late FOR VALUES FROM (300) TO (400)");
        const insert = "INSERT INTO notes VALUES (1, 'a'), (200, 'b'), (300, 'c')";

        expect(await eventsOf(insert)).to.deep.equal(["on_create 1 a", "on_create 200 b", "on_create 300 c"]);
        expect(await eventsOf("TRUNCATE notes")).to.have.members([
          "on_delete 1 a",
          "on_delete 200 b",
          "on_delete 300 c",
        ]);
        await client.query(insert);
        expect(await eventsOf("TRUNCATE late")).to.deep.equal([]);
        await client.query(insert.replace("(1, 'a'), (200, 'b'), ", ""));
        await client.query(captureBelow(notes));
        await client.query(captureBelow(notes));
        expect(await eventsOf("TRUNCATE late")).to.deep.equal(["on_delete 300 c"]);
        expect(await eventsOf("TRUNCATE notes")).to.have.members(["on_delete 1 a", "on_delete 200 b"]);
      });

      it("captures nothing of ATTACH, DETACH and DROP, nor of a detached table", async () => {
        await installOn(partitioned);
        await client.query("INSERT INTO notes VALUES (1, 'a'), (50, 'b'), (100, 'c')");
        await client.query("CREATE TABLE late (LIKE notes); INSERT INTO late VALUES (300, 'd')");

        expect(
          await eventsOf(`
            ALTER TABLE notes ATTACH PARTITION late FOR VALUES FROM (300) TO (400);
            ALTER TABLE notes DETACH PARTITION notes_100; DROP TABLE notes_0_50;
            UPDATE notes_100 SET text = 'z'; TRUNCATE notes_100`),
        ).to.deep.equal([]);
        expect(await eventsOf("TRUNCATE notes")).to.have.members(["on_delete 1 a", "on_delete 300 d"]);
      });

      it("captures the DELETE of a partition before its removal, and rows that are written to an attached one", async () => {
        await installOn(partitioned);

        expect(
          await eventsOf(`
            CREATE TABLE late (LIKE notes);
            ALTER TABLE notes ATTACH PARTITION late FOR VALUES FROM (300) TO (400);
            INSERT INTO late VALUES (300, 'd'); DELETE FROM late; DROP TABLE late`),
        ).to.deep.equal(["on_create 300 d", "on_delete 300 d"]);
      });
    });

    describe("of a table with INHERITS children", () => {
      it("captures rows that are written to a child of any depth", async () => {
        await installOn(inherited);

        expect(
          await eventsOf(`
            INSERT INTO child VALUES (1, 'a'); INSERT INTO grandchild VALUES (2, 'b');
            UPDATE notes SET text = 'c' WHERE id = 2; DELETE FROM child WHERE id = 1`),
        ).to.deep.equal(["on_create 1 a", "on_create 2 b", "on_update 2 c", "on_delete 1 a"]);
      });

      it("makes one on_delete a row that TRUNCATE removes: all, with ONLY its own, or a child's", async () => {
        await installOn(inherited);
        await client.query(
          "INSERT INTO notes VALUES (1, 'a'); INSERT INTO child VALUES (2, 'b'); INSERT INTO grandchild VALUES (3, 'c')",
        );

        expect(await eventsOf("TRUNCATE ONLY notes")).to.deep.equal(["on_delete 1 a"]);
        expect(await eventsOf("TRUNCATE grandchild")).to.deep.equal(["on_delete 3 c"]);
        await client.query("INSERT INTO notes VALUES (1, 'a'); INSERT INTO grandchild VALUES (3, 'c')");
        expect(await eventsOf("TRUNCATE notes")).to.have.members([
          "on_delete 1 a",
          "on_delete 2 b",
          "on_delete 3 c",
        ]);
      });

      it("leaves a foreign child without a trigger for TRUNCATE, which it cannot have", async () => {
        await client.query("CREATE FOREIGN DATA WRAPPER far; CREATE SERVER far FOREIGN DATA WRAPPER far");
        try {
          await installOn(`${inherited}; CREATE FOREIGN TABLE far () INHERITS (notes) SERVER far`);
          await client.query("INSERT INTO notes VALUES (1, 'a')");

          expect(await eventsOf("TRUNCATE ONLY notes")).to.deep.equal(["on_delete 1 a"]);
        } finally {
          await client.query("DROP FOREIGN DATA WRAPPER far CASCADE");
        }
      });

      it("captures nothing of a former child", async () => {
        await installOn(inherited);
        await client.query("ALTER TABLE child NO INHERIT notes");

        expect(
          await eventsOf(
            "INSERT INTO child VALUES (1, 'a'); INSERT INTO grandchild VALUES (2, 'b'); TRUNCATE child",
          ),
        ).to.deep.equal([]);
      });
    });

    describe("of all kinds of writes", () => {
      it("captures MERGE, ON CONFLICT, cascades, views and rules", async () => {
        await installOn(`
          CREATE TABLE users (id int PRIMARY KEY, team int);
          CREATE TABLE notes (${columns}, FOREIGN KEY (user_id) REFERENCES users ON DELETE CASCADE ON UPDATE SET NULL);
          CREATE VIEW short_notes AS SELECT id, text FROM notes;
          CREATE VIEW ruled AS SELECT count(*) AS n FROM notes;
          CREATE RULE note AS ON INSERT TO ruled DO INSTEAD INSERT INTO notes VALUES (NEW.n, 'by rule');
          INSERT INTO users VALUES (1), (2)`);

        await client.query("INSERT INTO notes VALUES (1, 'a')");
        expect(
          await eventsOf(
            "INSERT INTO notes VALUES (1, 'b'), (2, 'c') ON CONFLICT (id) DO UPDATE SET text = excluded.text",
          ),
        ).to.deep.equal(["on_update 1 b", "on_create 2 c"]);
        expect(await eventsOf("INSERT INTO notes VALUES (1, 'd') ON CONFLICT DO NOTHING")).to.deep.equal([]);
        expect(
          await eventsOf(
            "INSERT INTO short_notes VALUES (3, 'e'); UPDATE short_notes SET text = 'f' WHERE id = 3",
          ),
        ).to.deep.equal(["on_create 3 e", "on_update 3 f"]);
        expect(await eventsOf("INSERT INTO ruled VALUES (4)")).to.deep.equal(["on_create 4 by rule"]);
        await client.query("UPDATE notes SET user_id = CASE WHEN id < 3 THEN 1 ELSE 2 END");
        expect(await eventsOf("UPDATE users SET id = 3 WHERE id = 1")).to.have.members([
          "on_update 1 b",
          "on_update 2 c",
        ]);
        expect(await eventsOf("DELETE FROM users WHERE id = 2")).to.have.members([
          "on_delete 3 f",
          "on_delete 4 by rule",
        ]);
        expect(await eventsOf("TRUNCATE users CASCADE")).to.have.members(["on_delete 1 b", "on_delete 2 c"]);
        // PostgreSQL 14 has no MERGE.
        if (await hasMerge()) {
          await client.query("INSERT INTO notes VALUES (1, 'a'), (2, 'b')");
          expect(
            await eventsOf(`
              MERGE INTO notes USING (VALUES (1), (2), (3)) AS source (id) ON notes.id = source.id
              WHEN MATCHED AND source.id = 1 THEN DELETE WHEN MATCHED THEN UPDATE SET text = 'z'
              WHEN NOT MATCHED THEN INSERT VALUES (source.id, 'new')`),
          ).to.have.members(["on_delete 1 a", "on_update 2 z", "on_create 3 new"]);
        }
      });

      it("makes no events of triggers that are disabled, nor of replicas, unless they are enabled ALWAYS", async () => {
        await installOn(`CREATE TABLE notes (${columns})`);

        expect(
          await eventsOf(`
            SET session_replication_role = replica; INSERT INTO notes VALUES (1, 'a'); TRUNCATE notes; RESET session_replication_role;
            ALTER TABLE notes DISABLE TRIGGER USER; INSERT INTO notes VALUES (2, 'b'); ALTER TABLE notes ENABLE TRIGGER USER`),
        ).to.deep.equal([]);
        await client.query(
          'ALTER TABLE notes ENABLE ALWAYS TRIGGER "0_svc_capture_notes"; ALTER TABLE svc.events ENABLE ALWAYS TRIGGER enqueue_event',
        );
        try {
          expect(
            await eventsOf(
              "SET session_replication_role = replica; INSERT INTO notes VALUES (3, 'c'); RESET session_replication_role",
            ),
          ).to.deep.equal(["on_create 3 c"]);
          const { rows } = await client.query(
            "SELECT FROM svc.outbox WHERE event_id = (SELECT max(id) FROM svc.events)",
          );
          expect(rows).to.have.length(1);
        } finally {
          await client.query("ALTER TABLE svc.events ENABLE TRIGGER enqueue_event");
        }
      });

      it("refuses TRUNCATE where a policy hides rows from the role that migrated", async () => {
        await installOn(`CREATE TABLE notes (${columns}); INSERT INTO notes VALUES (1, 'a')`);
        await client.query(`
          CREATE ROLE svc_test_migrator; GRANT USAGE ON SCHEMA public, svc TO svc_test_migrator; GRANT CREATE ON SCHEMA svc TO svc_test_migrator;
          GRANT SELECT ON notes TO svc_test_migrator; GRANT INSERT ON svc.events TO svc_test_migrator;
          GRANT USAGE ON SEQUENCE svc.events_id_seq TO svc_test_migrator;
          ALTER FUNCTION svc.truncate_notes OWNER TO svc_test_migrator; ALTER TABLE notes ENABLE ROW LEVEL SECURITY`);
        try {
          const message = await client.query("TRUNCATE notes").then(
            () => "done",
            (error: Error) => error.message,
          );

          expect(message).to.match(/row-level security policy for table "notes"/);
        } finally {
          await client.query(
            "ALTER FUNCTION svc.truncate_notes OWNER TO CURRENT_USER; DROP OWNED BY svc_test_migrator; DROP ROLE svc_test_migrator",
          );
        }
      });

      it("makes the events of TRUNCATE in every isolation level when nothing was committed meanwhile", async () => {
        await installOn(`CREATE TABLE notes (${columns})`);
        for (const level of ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"]) {
          const events = await eventsOf(`
            INSERT INTO notes VALUES (1, 'a');
            COMMIT; BEGIN ISOLATION LEVEL ${level}; INSERT INTO notes VALUES (2, 'b'); SAVEPOINT one; DELETE FROM notes WHERE id = 2;
            RELEASE one; INSERT INTO notes VALUES (3, 'c'); TRUNCATE notes; COMMIT`);

          expect(events.slice(-2), level).to.have.members(["on_delete 1 a", "on_delete 3 c"]);
        }
      });
    });

    async function hasMerge(): Promise<boolean> {
      const { rows } = await client.query<{ version: string }>(
        "SELECT current_setting('server_version_num') AS version",
      );
      return Number(rows[0]?.version) >= 150_000;
    }
  });
}
