import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { attempt, createInTransaction } from "../../src/db/transaction.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import type { EmbeddedDatabase } from "../../src/embedded/embedded.ts";
import { captureOf } from "../../src/events/capture.ts";
import { createOutbox, type FoundEvent } from "../../src/events/outbox.ts";
import { createSql, type Sql } from "../../src/db/sql.ts";
import { coreSteps, loadCoreMigrations, runSteps } from "../../src/migration/core-migrations.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, field } from "../support/definitions.ts";

for (const kind of ["PostgreSQL", "the embedded database"] as const) {
  const isEmbedded = kind !== "PostgreSQL";
  describe(`events that ${kind} announces to their writer`, function () {
    this.timeout(60_000);
    let folder: string;
    let created: TestDatabase | undefined;
    let embedded: EmbeddedDatabase | undefined;
    let database: Database;
    let sql: Sql;
    /** The details of each transaction. */
    const heard: (readonly string[])[] = [];

    before(async () => {
      folder = await mkdtemp(join(tmpdir(), "svc-notices-"));
      if (isEmbedded) embedded = await openNewEmbedded(folder);
      else created = await createTestDatabase();
      const url = created?.url ?? embedded?.url ?? "";
      const client = new Client({ connectionString: url });
      await client.connect();
      await runSteps(client, coreSteps(await loadCoreMigrations()));
      await client.query("CREATE TABLE notes (id serial PRIMARY KEY, text text, user_id int)");
      const notes = definition({
        name: "notes",
        fields: [field("text", "String"), field("user_id", "Int")],
        keepsPrevious: true,
        ownerColumn: "user_id",
      });
      for (const statement of captureOf(notes).install) await client.query(statement);
      await client.end();
      database = await openDatabase({ url, poolSize: 1, relays: true, isEmbedded });
      sql = createSql({ pool: database.pool, isEmbedded });
      database.notices.listen((details) => heard.push(details));
    });
    after(async () => {
      await database?.close();
      await embedded?.close();
      await created?.drop();
      await rm(folder, { recursive: true, force: true });
    });
    beforeEach(async () => {
      await sql("DELETE FROM svc.outbox");
      heard.length = 0;
    });

    /** Returns what the next reads of the outbox find. */
    async function inOutbox(): Promise<readonly FoundEvent[]> {
      const rows = await sql<{ readonly id: string }>(
        "SELECT event_id AS id FROM svc.outbox ORDER BY event_id",
      );
      return createOutbox({ sql }).find(rows.map(({ id }) => id));
    }
    const announced = (): readonly (readonly unknown[])[] =>
      heard.map((details) => details.map((detail): unknown => (detail === "" ? "" : JSON.parse(detail))));
    const inTransaction = <T>(work: (own: Sql) => Promise<T>): Promise<T> =>
      createInTransaction(database.pool, createStatementNames(isEmbedded))(({ sql: own }) => work(own));

    it("are those that a read of the outbox finds", async () => {
      const insert = "INSERT INTO notes (text, user_id) VALUES ('a', 7) RETURNING id";
      await sql(`${insert} /*traceparent='00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'*/`);
      await sql("UPDATE notes SET text = '{\"é\"}\n'");

      const events = await inOutbox();
      expect(events.map(({ trigger }) => trigger)).to.deep.equal(["on_create", "on_update"]);
      expect(announced()).to.deep.equal(events.map((event) => [event]));
    });

    it("come together when their transaction is committed", async () => {
      await inTransaction(async (own) => {
        await own("INSERT INTO notes (text) VALUES ('a'), ('b')");
        await own("INSERT INTO notes (text) VALUES ('c')");
        expect(heard).to.deep.equal([]);
      });

      expect(announced()).to.deep.equal([await inOutbox()]);
    });

    it("may have been undone: the database knows which", async () => {
      await inTransaction(async (own) => {
        await own("INSERT INTO notes (text) VALUES ('kept')");
        await attempt(own, async () => {
          await own("INSERT INTO notes (text) VALUES ('undone')");
          throw new Error("a reason");
        });
      });
      expect(announced()).to.deep.equal([[""]]);

      await database.pool
        .query("INSERT INTO notes (text) VALUES ('undone'); SELECT 1 / 0")
        .catch(() => undefined);
      await inTransaction(async (own) => {
        await own("INSERT INTO notes (text) VALUES ('undone')");
        throw new Error("a reason");
      }).catch(() => undefined);
      expect(announced().slice(1)).to.deep.equal([[""], [""]]);
      expect((await inOutbox()).map(({ snapshot }) => snapshot?.["text"])).to.deep.equal(["kept"]);
    });

    it("are sixteen of a transaction, and then a message that there may be more", async () => {
      await sql("INSERT INTO notes (text) SELECT n::text FROM generate_series(1, 40) AS n");
      await sql("INSERT INTO notes (text) VALUES ('next')");

      const events = await inOutbox();
      expect(announced()).to.deep.equal([[...events.slice(0, 16), ""], events.slice(40)]);
    });

    it("are without the event when it is large", async () => {
      await sql("INSERT INTO notes (text) VALUES (repeat('x', 8000)), (repeat('x', 9000))");

      expect(announced()).to.deep.equal([[(await inOutbox())[0], ""]]);
    });

    it("are without the event where the log of the server would have it", async () => {
      await inTransaction(async (own) => {
        await own("SET LOCAL log_min_messages = info");
        await own("INSERT INTO notes (text) VALUES ('a')");
      });

      expect(announced()).to.deep.equal([[""]]);
    });

    it("are messages of no other function", async () => {
      const forgeries = [
        'public."svc.enqueue_event"',
        'public."x svc.enqueue_event() "',
        "esvc.enqueue_event",
      ];
      await sql("CREATE SCHEMA esvc");
      for (const name of forgeries) {
        await sql(`CREATE FUNCTION ${name}() RETURNS text LANGUAGE plpgsql AS $$ BEGIN
          RAISE INFO USING MESSAGE = 'event', DETAIL = '{"id":"1"}';
          RETURN 'sent';
        END $$`);
        expect(await sql(`SELECT ${name}() AS it`)).to.deep.equal([{ it: "sent" }]);
      }

      expect(heard).to.deep.equal([]);
    });

    if (isEmbedded) return;

    it("are for roles that may read svc.events", async () => {
      const role = "svc_test_announced";
      const owner = new Client({ connectionString: created?.url ?? "" });
      const url = new URL(created?.url ?? "");
      [url.username, url.password] = [role, "x"];
      const writer = new Client({ connectionString: url.href });
      const messages: unknown[] = [];
      writer.on("notice", (message) => messages.push(message));
      await owner.connect();
      await owner.query(
        `CREATE ROLE ${role} LOGIN PASSWORD 'x'; GRANT INSERT ON notes TO ${role}; GRANT USAGE ON SEQUENCE notes_id_seq TO ${role}`,
      );
      try {
        await writer.connect();
        await writer.query("SET svc.announced_events = 17");
        await writer.query("INSERT INTO notes (text) VALUES ('a')");
        expect(messages).to.deep.equal([]);

        await owner.query(`GRANT SELECT ON svc.events TO ${role}`);
        await writer.query("INSERT INTO notes (text) VALUES ('a')");
        expect(messages).to.have.length(1);
      } finally {
        await writer.end();
        await owner.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
        await owner.end();
      }
    });
  });
}
