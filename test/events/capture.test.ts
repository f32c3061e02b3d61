import { Decimal } from "@prisma/client/runtime/client";
import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { Client } from "pg";
import { captureOf, captureTriggerNames, removeCapture } from "../../src/events/capture.ts";
import { messageOf } from "../../src/kit/errors.ts";
import { rowOfSnapshot } from "../../src/events/snapshot-row.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, field, keyField } from "../support/definitions.ts";

const coreMigration = new URL("../../prisma/migrations/0001_core/migration.sql", import.meta.url);

const everything = definition({
  name: "things",
  ownerColumn: "owner",
  fields: [
    keyField(),
    field("owner", "Int", { column: "user_id", isOptional: true }),
    field("big", "BigInt"),
    field("amount", "Decimal"),
    field("ratio", "Float"),
    field("title", "String"),
    field("is_open", "Boolean"),
    field("at", "DateTime"),
    field("at_local", "DateTime"),
    field("day", "DateTime"),
    field("document", "Json"),
    field("plain_document", "Json"),
    field("image", "Bytes"),
    field("ref", "Uuid"),
    field("mood", "Enum", { values: ["good", "bad"] }),
    field("bigs", "BigInt", { isList: true }),
    field("amounts", "Decimal", { isList: true }),
    field("images", "Bytes", { isList: true }),
    field("words", "String", { isList: true }),
    field("times", "DateTime", { isList: true }),
    field("missing", "String", { isOptional: true }),
    field("gone", "BigInt", { isList: true }),
  ],
});

const everythingTable = `
  CREATE TYPE mood AS ENUM ('good', 'bad');
  CREATE TABLE things (
    id serial PRIMARY KEY, user_id int, big bigint, amount numeric, ratio float8, title text, is_open boolean, at timestamptz,
    at_local timestamp, day date, document jsonb, plain_document json, image bytea, ref uuid, mood mood, bigs bigint[],
    amounts numeric[], images bytea[], words text[], times timestamptz[], missing text, gone bigint[], unmapped text
  )`;

function noteEvent(trigger: string, snapshot: { id: number; text: string; user_id: number }): unknown {
  return {
    resource: "notes",
    trigger,
    record_id: String(snapshot.id),
    owner_id: String(snapshot.user_id),
    snapshot,
  };
}

describe("captureOf", () => {
  let database: TestDatabase;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
  });

  beforeEach(async () => {
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query("DROP SCHEMA IF EXISTS svc CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    await client.query(await readFile(coreMigration, "utf8"));
  });

  afterEach(async () => {
    await client.end();
  });

  after(async () => {
    await database.drop();
  });

  async function install(target: Definition): Promise<void> {
    for (const statement of captureOf(target).install) await client.query(statement);
  }

  async function eventsOf(): Promise<readonly Record<string, unknown>[]> {
    const { rows } = await client.query("SELECT * FROM svc.events ORDER BY id");
    return rows;
  }

  async function triggersSeen(): Promise<readonly string[]> {
    return (await eventsOf()).map((event) => `${String(event["trigger"])} ${String(event["record_id"])}`);
  }

  const notes = definition({
    name: "notes",
    ownerColumn: "user_id",
    fields: [field("text", "String"), field("user_id", "Int")],
  });
  const notesTable = "CREATE TABLE notes (id serial PRIMARY KEY, text text, user_id int, unmapped text)";

  it("writes one event a row for insert, update and delete, with key and owner", async () => {
    await client.query(notesTable);
    await install(notes);

    await client.query("INSERT INTO notes (text, user_id) VALUES ('a', 7), ('b', 8)");
    await client.query("UPDATE notes SET text = 'c' WHERE id = 1");
    await client.query("DELETE FROM notes WHERE id = 2");

    const events = await eventsOf();
    expect(
      events.map(({ resource, trigger, record_id, owner_id, snapshot }) => ({
        resource,
        trigger,
        record_id,
        owner_id,
        snapshot,
      })),
    ).to.deep.equal([
      noteEvent("on_create", { id: 1, text: "a", user_id: 7 }),
      noteEvent("on_create", { id: 2, text: "b", user_id: 8 }),
      noteEvent("on_update", { id: 1, text: "c", user_id: 7 }),
      noteEvent("on_delete", { id: 2, text: "b", user_id: 8 }),
    ]);
  });

  it("leaves no event when the writer's transaction rolls back", async () => {
    await client.query(notesTable);
    await install(notes);

    await client.query("BEGIN; INSERT INTO notes (text) VALUES ('a')");
    const seenInside = await triggersSeen();
    await client.query("ROLLBACK");

    expect(seenInside).to.deep.equal(["on_create 1"]);
    expect(await triggersSeen()).to.deep.equal([]);
  });

  it("serves a writer who has no rights on the schema svc", async () => {
    await client.query(notesTable);
    await install(notes);
    await client.query(
      "CREATE ROLE svc_test_writer; GRANT USAGE ON SCHEMA public TO svc_test_writer; GRANT INSERT ON notes TO svc_test_writer; GRANT USAGE ON SEQUENCE notes_id_seq TO svc_test_writer",
    );
    try {
      await client.query("SET ROLE svc_test_writer; INSERT INTO notes (text) VALUES ('a'); RESET ROLE");

      expect(await triggersSeen()).to.deep.equal(["on_create 1"]);
    } finally {
      await client.query("RESET ROLE; DROP OWNED BY svc_test_writer; DROP ROLE svc_test_writer");
    }
  });

  it("serves no trigger of another's table, which would make events of it", async () => {
    await client.query(notesTable);
    await install(notes);
    const { rows } = await client.query<{ made: string }>(
      "SELECT tgfoid::regprocedure::text AS made FROM pg_trigger WHERE tgrelid = 'notes'::regclass AND NOT tgisinternal",
    );
    await client.query(
      "CREATE ROLE svc_test_writer; GRANT USAGE ON SCHEMA svc TO svc_test_writer; SET ROLE svc_test_writer; CREATE TEMP TABLE own (id int, text text, user_id int)",
    );
    try {
      expect(rows).to.have.length(2);
      for (const { made } of rows) {
        const creating = client.query(
          `CREATE TRIGGER forging AFTER INSERT ON own FOR EACH ROW EXECUTE FUNCTION ${made}`,
        );
        const message = await creating.then(
          () => "none",
          (error: unknown) => messageOf(error),
        );
        expect(message).to.contain("permission denied for function");
      }
    } finally {
      await client.query("RESET ROLE; DROP OWNED BY svc_test_writer; DROP ROLE svc_test_writer");
    }
  });

  it("calls nothing from the writer's search path", async () => {
    await client.query(notesTable);
    await install(notes);
    await client.query(`
      CREATE FUNCTION public.jsonb_build_object(text, int, text, text, text, int) RETURNS jsonb LANGUAGE sql AS $$ SELECT '{"forged": true}'::jsonb $$;
      SET search_path = public, pg_catalog;
      SELECT jsonb_build_object('id', 1, 'text', ''::text, 'user_id', 1) AS forged`);

    await client.query("INSERT INTO notes (text) VALUES ('a')");

    expect((await eventsOf())[0]?.["snapshot"]).to.deep.equal({ id: 1, text: "a", user_id: null });
  });

  it("makes no event of an update that changes no mapped column", async () => {
    await client.query(notesTable);
    await install(notes);
    await client.query("INSERT INTO notes (text) VALUES ('a')");

    await client.query("UPDATE notes SET text = text, unmapped = 'x'");

    expect(await triggersSeen()).to.deep.equal(["on_create 1"]);
  });

  it("names the new key after a change of the key", async () => {
    await client.query(notesTable);
    await install(notes);
    await client.query("INSERT INTO notes (text) VALUES ('a')");

    await client.query("UPDATE notes SET id = 5");

    expect(await triggersSeen()).to.deep.equal(["on_create 1", "on_update 5"]);
  });

  it("captures only the operations whose triggers are declared", async () => {
    await client.query(notesTable);
    await install({ ...notes, triggers: ["on_update"] });

    await client.query("INSERT INTO notes (text) VALUES ('a')");
    await client.query("UPDATE notes SET text = 'b'");
    await client.query("DELETE FROM notes");
    await client.query("TRUNCATE notes");

    expect(await triggersSeen()).to.deep.equal(["on_update 1"]);
  });

  it("makes one on_delete a row of TRUNCATE", async () => {
    await client.query(notesTable);
    await install({ ...notes, triggers: ["on_delete"] });
    await client.query("INSERT INTO notes (text, user_id) VALUES ('a', 1), ('b', null)");

    await client.query("TRUNCATE notes");

    const events = await eventsOf();
    expect(events.map(({ owner_id, snapshot }) => [owner_id, snapshot])).to.deep.equal([
      ["1", { id: 1, text: "a", user_id: 1 }],
      [null, { id: 2, text: "b", user_id: null }],
    ]);
  });

  it("accepts 120 columns, unusual names, and resource names of more than 63 bytes", async () => {
    const columns = Array.from({ length: 120 }, (_, index) => `c${index}`);
    const odd = definition({
      name: `weird-"name"-${"ä".repeat(40)}`,
      table: `it's a "table" $svc$`,
      fields: [
        keyField("id"),
        field("quoted", "String", { column: `it's "quoted"` }),
        ...columns.map((column) => field(column, "Int")),
      ],
    });
    await client.query(
      `CREATE TABLE "it's a ""table"" $svc$" (id serial PRIMARY KEY, "it's ""quoted""" text, ${columns.map((column) => `${column} int`).join(", ")})`,
    );
    await install(odd);
    await install(odd);

    await client.query(`INSERT INTO "it's a ""table"" $svc$" ("it's ""quoted""", c119) VALUES ('x', 119)`);

    const [only, ...more] = await eventsOf();
    expect(more).to.deep.equal([]);
    expect(only?.["resource"]).to.equal(odd.name);
    expect(only?.["snapshot"]).to.include({ id: 1, quoted: "x", c0: null, c119: 119 });
    for (const name of captureTriggerNames(odd)) expect(Buffer.byteLength(name)).to.be.at.most(63);
  });

  it("captures the rows of a partitioned table", async () => {
    await client.query(
      "CREATE TABLE notes (id serial PRIMARY KEY, text text, user_id int) PARTITION BY RANGE (id); CREATE TABLE notes_1 PARTITION OF notes FOR VALUES FROM (0) TO (100)",
    );
    await install(notes);

    await client.query("INSERT INTO notes (text) VALUES ('a')");

    expect(await triggersSeen()).to.deep.equal(["on_create 1"]);
  });

  it("moves to another table of the same resource, and is removed by removeCapture, also from a renamed table", async () => {
    await client.query(notesTable);
    await client.query("CREATE TABLE papers (LIKE notes INCLUDING ALL)");
    await install(notes);
    await install({ ...notes, table: "papers" });
    await client.query("INSERT INTO notes (text) VALUES ('a')");
    expect(await triggersSeen()).to.deep.equal([]);

    await client.query("ALTER TABLE papers RENAME TO leaves");
    for (const statement of removeCapture(notes)) await client.query(statement);
    await client.query("INSERT INTO leaves (text) VALUES ('a')");

    expect(await triggersSeen()).to.deep.equal([]);
  });

  it("changes its hash with a column, and only then", () => {
    const renamed = { ...notes, fields: notes.fields.map((one) => ({ ...one, column: `${one.column}_2` })) };

    expect(captureOf({ ...notes, searchableColumns: ["text"] }).hash).to.equal(captureOf(notes).hash);
    expect(captureOf(renamed).hash).not.to.equal(captureOf(notes).hash);
  });

  it("installs nothing for a resource without triggers", () => {
    expect(captureOf({ ...notes, triggers: [] }).install).to.deep.equal(removeCapture(notes));
  });

  describe("rowOfSnapshot", () => {
    it("returns every type as Prisma would, for any session of the writer", async () => {
      await client.query(everythingTable);
      await install(everything);
      await client.query(
        "SET TimeZone = 'Asia/Kolkata'; SET extra_float_digits = -10; SET bytea_output = 'escape'",
      );

      await client.query(`
        INSERT INTO things (user_id, big, amount, ratio, title, is_open, at, at_local, day, document, plain_document, image, ref, mood,
          bigs, amounts, images, words, times)
        VALUES (3, 9007199254740993, 12345678901234567890.123456789, 0.1::float8 + 0.2, 'é"', true, '2026-03-28T14:30:00.123456Z',
          '2026-03-28T14:30:00.5', '2026-03-28', '{"a": [1, null]}', '{"nul": "\\u0000"}', decode(repeat('ff', 100), 'hex'),
          'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11', 'bad', '{9007199254740993,null}', '{0.10}', '{"\\\\x00ff","\\\\x01"}', '{a,null}',
          '{2026-03-28T00:00:00+02,1800-01-01T00:00:00Z}')`);

      const [event] = await eventsOf();
      expect(
        rowOfSnapshot(everything, event?.["snapshot"] as Readonly<Record<string, unknown>>),
      ).to.deep.equal({
        id: 1,
        owner: 3,
        big: 9007199254740993n,
        amount: new Decimal("12345678901234567890.123456789"),
        ratio: 0.1 + 0.2,
        title: 'é"',
        is_open: true,
        at: new Date("2026-03-28T14:30:00.123Z"),
        at_local: new Date("2026-03-28T14:30:00.500Z"),
        day: new Date("2026-03-28T00:00:00.000Z"),
        document: { a: [1, null] },
        plain_document: { nul: "\u0000" },
        image: new Uint8Array(100).fill(255),
        ref: "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        mood: "bad",
        bigs: [9007199254740993n, null],
        amounts: [new Decimal("0.1")],
        images: [new Uint8Array([0, 255]), new Uint8Array([1])],
        words: ["a", null],
        times: [new Date("2026-03-27T22:00:00Z"), new Date("1800-01-01T00:00:00Z")],
        missing: null,
        gone: [],
      });
    });

    it("reads NaN and infinities of Float and Decimal", async () => {
      await client.query(everythingTable);
      await install(everything);

      await client.query("INSERT INTO things (amount, ratio) VALUES ('NaN', '-Infinity')");

      const [event] = await eventsOf();
      const row = rowOfSnapshot(everything, event?.["snapshot"] as Readonly<Record<string, unknown>>);
      expect((row["amount"] as Decimal).isNaN()).to.equal(true);
      expect(row["ratio"]).to.equal(-Infinity);
    });

    it("returns null for a field that was mapped later, and omits one that is not mapped any more", () => {
      const row = rowOfSnapshot(
        { fields: [field("a", "Decimal"), field("b", "Int", { isList: true })] },
        { z: 1 },
      );

      expect(row).to.deep.equal({ a: null, b: [] });
    });
  });
});
