import { expect } from "chai";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { migrationDue } from "../../src/app/migration-due.ts";
import { planMigration } from "../../src/app/plan-migration.ts";
import { openDatabase } from "../../src/db/client.ts";
import { OperatorError } from "../../src/kit/errors.ts";
import { loadHandMigrations, type HandMigration } from "../../src/migration/hand-migrations.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { runAdmin } from "../../src/cli/program.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { psql } from "../support/psql.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";

const log = createLog({ level: "silent" });
/** A table that only the migrations by hand create. */
const places = definition({
  name: "places",
  isManaged: false,
  fields: [keyField(), field("code", "String")],
});

function notes(unique: string): string {
  return `name: notes\nmodel: Note\nfields: { id: { type: Int, id: true }, title: { type: String${unique} } }\ntriggers: []\n`;
}

describe("migrations by hand", () => {
  let database: TestDatabase;
  let client: Client;
  let folder: ReturnType<typeof createMappingFolder>;

  beforeEach(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    folder = createMappingFolder({});
  });
  afterEach(async () => {
    await client.end();
    await database.drop();
    folder.remove();
  });

  function write(files: Readonly<Record<string, string>>): Promise<readonly HandMigration[]> {
    const path = join(folder.configDir, "migrations");
    rmSync(path, { recursive: true, force: true });
    mkdirSync(path);
    for (const [name, text] of Object.entries(files)) writeFileSync(join(path, name), text);
    return loadHandMigrations(folder.configDir);
  }

  const apply = (byHand: readonly HandMigration[]): Promise<readonly string[] | string> =>
    applyMigration({
      url: database.url,
      definitions: definitionsOf(places),
      byHand,
      allowDestructive: false,
      log,
    }).then(
      ({ steps }) => steps.map(({ title }) => title).filter((title) => !title.startsWith("core")),
      (error: unknown) => (error as Error).message,
    );
  const recorded = async (): Promise<readonly string[]> =>
    (await client.query<{ name: string }>("SELECT name FROM svc.hand_migrations ORDER BY name")).rows.map(
      ({ name }) => name,
    );

  const first =
    "CREATE TABLE places (id serial PRIMARY KEY, code text NOT NULL);\nINSERT INTO places (code) VALUES ('a');\n";

  it("come once each, in the order of their numbers, before the mapping files", async () => {
    const byHand = await write({
      "10_index.sql":
        "\uFEFF-- svc: no transaction\nCREATE INDEX CONCURRENTLY places_code ON places (code);\n",
      "9_backfill.sql": "UPDATE places SET code = 'b'",
      "0001_places.sql": first,
    });
    const definitions = definitionsOf(places);
    const plan = await planMigration({ url: database.url, definitions, byHand });
    const due = await migrationDue({ database: { pool: client as never }, definitions, byHand });

    const [one, other] = await Promise.all([apply(byHand), apply(byHand)]);

    expect(plan.byHand.map(({ name }) => name)).to.deep.equal(["0001_places", "9_backfill", "10_index"]);
    expect(plan.notes).to.deep.equal([
      'The rest cannot be planned before the migrations by hand are applied. The mapping files do not fit the database:\n  resources/places.yaml: name: there is no table "places"',
    ]);
    expect(due).to.include.members(["migration by hand 0001_places", "places: not installed yet"]);
    expect([one, other].flat().toSorted()).to.deep.equal([
      "migration by hand 0001_places",
      "migration by hand 10_index",
      "migration by hand 9_backfill",
      "places: capture trigger on places",
    ]);
    expect(await recorded()).to.deep.equal(["0001_places", "10_index", "9_backfill"]);
    const { rows } = await client.query(
      "SELECT code, (SELECT indisvalid FROM pg_index WHERE indexrelid = 'places_code'::regclass) AS valid FROM places",
    );
    expect(rows).to.deep.equal([{ code: "b", valid: true }]);
    const { rows: audit } = await client.query<{ titles: string }>(
      "SELECT details ->> 'titles' AS titles FROM svc.audit WHERE details ->> 'titles' LIKE '%by hand%' ORDER BY id",
    );
    expect(audit.map(({ titles }) => titles)).to.have.length(3);
    expect(await apply(byHand)).to.deep.equal([]);
  });

  it("are recorded without the limits of the role", async () => {
    await apply(await write({ "1_places.sql": first }));
    // A trigger of others may take long, for example one that copies the record elsewhere.
    await client.query(`
      CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.75); RETURN NEW; END';
      CREATE TRIGGER slow BEFORE INSERT ON svc.hand_migrations FOR EACH ROW EXECUTE FUNCTION slow();
      DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET statement_timeout = 500', current_database()); END $$`);
    const more = { "2_more.sql": "SELECT 1", "3_table.sql": "-- svc: no transaction\nVACUUM places" };

    const done = await apply(await write({ "1_places.sql": first, ...more }));

    expect(done).to.deep.equal(["migration by hand 2_more", "migration by hand 3_table"]);
  });

  it("are undone as a whole when one fails; those before it stay", async () => {
    const byHand = await write({
      "1_places.sql": first,
      "2_broken.sql": "DELETE FROM places; SELECT 1 / 0",
      "3_later.sql": "SELECT 1",
    });

    const message = await apply(byHand);
    const late = await apply(
      await write({
        "1_places.sql": first,
        "2_deferred.sql":
          "CREATE TABLE pairs (id int UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO pairs VALUES (1), (1)",
      }),
    );

    expect(message).to.match(
      /^These were applied first, and stay:\n(  - core migration .*\n)+  - migration by hand 1_places\nThe migration by hand 2_broken failed and changed nothing\. PostgreSQL says: division by zero$/,
    );
    expect(late).to.match(/^The migration by hand 2_deferred failed and changed nothing\. .*duplicate key/);
    expect(await recorded()).to.deep.equal(["1_places"]);
    expect((await client.query("SELECT FROM places")).rowCount).to.equal(1);
  });

  it("give the remedy for a statement that cannot run in a transaction", async () => {
    const message = await apply(await write({ "1_vacuum.sql": "VACUUM svc.made" }));

    expect(message).to.match(
      /cannot run inside a transaction block\. Put the statement alone into a file that begins with the line "-- svc: no transaction"\.$/,
    );
  });

  it("need the tables of the mapping files in a new database, and say so", async () => {
    const notesOf = definitionsOf(definition({ name: "notes", fields: [field("text", "String")] }));
    const byHand = await write({ "1_check.sql": "ALTER TABLE notes ADD CHECK (text <> '')" });
    const migrate = (files: readonly HandMigration[]): Promise<unknown> =>
      applyMigration({
        url: database.url,
        definitions: notesOf,
        byHand: files,
        allowDestructive: false,
        log,
      }).then(
        ({ steps }) => steps.map(({ title }) => title),
        (error: unknown) => (error as Error).message,
      );

    const early = await migrate(byHand);
    await migrate([]);

    expect(early).to.match(/relation "notes" does not exist\. In a new database, .* docs\/mapping\.md/);
    expect(await migrate(byHand)).to.deep.equal(["migration by hand 1_check"]);
  });

  it("are reported as applied when the changes of the mapping files are refused", async () => {
    const byHand = await write({ "1_places.sql": first });
    const logged: string[] = [];
    const missing = definition({ ...places, name: "missing", table: "missing" });

    const migrated = applyMigration({
      url: database.url,
      definitions: definitionsOf(missing),
      byHand,
      allowDestructive: false,
      log: pino({}, { write: (line: string) => void logged.push(line) }),
    });
    const error = await migrated.catch((thrown: unknown) => thrown);

    expect(error).to.be.instanceOf(OperatorError);
    const { message, faults } = error as OperatorError;
    expect(message).to.match(
      /^These were applied first, and stay:\n(  - core migration .*\n)+  - migration by hand 1_places\nThe mapping files do not fit/,
    );
    expect(faults).to.have.length(2);
    expect(faults[1]).to.include('there is no table "missing"');
    expect(logged.join("")).to.include("migration by hand 1_places");
    expect(await recorded()).to.deep.equal(["1_places"]);
  });

  it("report files that were changed, come too late, or end their transaction", async () => {
    await apply(await write({ "1_places.sql": first, "5_more.sql": "SELECT 1" }));

    const changed = await apply(
      await write({ "1_places.sql": `${first}-- more`, "5_more.sql": "SELECT 1\r\n" }),
    );
    const late = await apply(
      await write({ "1_places.sql": first, "2_late.sql": "SELECT 1", "5_more.sql": "SELECT 1" }),
    );
    const ending = await apply(await write({ "6_ends.sql": "COMMIT; SELECT 1" }));
    const two = await apply(
      await write({
        "7_two.sql": "-- svc: no transaction\nCREATE INDEX CONCURRENTLY a ON places (code); SELECT 1",
      }),
    );

    expect(changed).to.match(
      /^The migration by hand 1_places was changed after it was applied.*\n.*5_more was changed/,
    );
    expect(late).to.equal(
      "The migration by hand 2_late comes before 5_more, which was applied already. Give it a higher number.",
    );
    expect(ending).to.match(/^The migration by hand 6_ends ends its transaction\./);
    expect(two).to.match(/^The migration by hand 7_two failed, .* It may have one statement only\./);
    expect(await recorded()).to.deep.equal(["1_places", "5_more"]);
  });

  it("are refused under other names, with a repeated number, another directive, or no content", async () => {
    const refusal = await write({
      "backfill.sql": "SELECT 1",
      "1_a.sql": "SELECT 1",
      "01_b.sql": "SELECT 1",
      "2_c.sql": "-- svc: no transactions\nSELECT 1",
      "3_d.sql": "-- nothing\n",
    }).catch((error: unknown) => (error as Error).message.replaceAll(/.*migrations\//g, ""));

    expect(refusal).to.be.a("string").and.include("backfill.sql: expected a name such as 0001_backfill.sql");
    expect(refusal).to.match(/(?:1_a|01_b)\.sql: expected a number of its own/);
    expect(refusal).to.include('2_c.sql: expected "-- svc: no transaction" in the first line');
    expect(refusal).to.include("3_d.sql: expected SQL in the file");
  });

  it("are in the plan of svc-admin, as a script that psql runs", async () => {
    await write({ "1_places.sql": first, "2_index.sql": "-- svc: no transaction\nVACUUM places" });
    const mapping =
      "name: places\nmodel: Place\nmanaged: false\nfields:\n  id: { type: Int, id: true }\n  code: { type: String }\ntriggers: [on_create]\n";
    writeFileSync(join(folder.configDir, "resources", "places.yaml"), mapping);
    const terminal = createMemoryTerminal();
    const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: database.url };

    const status = await runAdmin({ args: ["migrate", "--plan"], env, cwd: folder.configDir, terminal });
    const { stdout } = terminal.read();
    await client.query(
      stdout
        .slice(0, stdout.indexOf("SET search_path = public;\n\n-- migration by hand 2"))
        .replace("\\set ON_ERROR_STOP on\n", ""),
    );

    expect(status).to.equal(0);
    expect(stdout).to.match(/there is no table "places".*\nBEGIN;.*-- core migration 0001_core\n/s);
    expect(stdout).to.match(
      /COMMIT;\n\nBEGIN;.*-- migration by hand 1_places\nCREATE TABLE places.*COMMIT;/s,
    );
    expect(stdout).to.match(
      /SET search_path = public;\n\n-- migration by hand 2_index\n-- svc: no transaction\nVACUUM places;/,
    );
    expect(await recorded()).to.deep.equal(["1_places"]);
  });

  it("may enable a step that the plan of the mapping files cannot know yet", async () => {
    const file = join(folder.configDir, "resources", "notes.yaml");
    const admin = async (...args: readonly string[]): Promise<readonly [number, string]> => {
      const terminal = createMemoryTerminal();
      const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: database.url };
      const status = await runAdmin({ args, env, cwd: folder.configDir, terminal });
      return [status, terminal.read().stdout];
    };
    writeFileSync(file, notes(""));
    await admin("migrate");
    await client.query("INSERT INTO notes (title) VALUES ('a'), ('a')");
    writeFileSync(file, notes(", unique: true"));
    await write({ "1_distinct.sql": "UPDATE notes SET title = title || id" });

    const [status, script] = await admin("migrate", "--plan");

    expect(script).to.match(
      /^-- Note: The rest cannot be planned before the migrations by hand are applied\. .*1 value occurs more than once/,
    );
    expect(script).to.not.include("CREATE UNIQUE INDEX");
    expect(status).to.equal(0);
    expect((await admin("migrate"))[0]).to.equal(0);
  });

  it("also end their settings in the script of a plan", async () => {
    await write({
      "1_places.sql": `${first} SET session_replication_role = replica; SET ROLE pg_monitor`,
      "2_seen.sql":
        "CREATE TABLE seen AS SELECT current_user AS name, current_setting('session_replication_role') AS role",
    });
    const terminal = createMemoryTerminal();
    const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: database.url };
    await runAdmin({ args: ["migrate", "--plan"], env, cwd: folder.configDir, terminal });
    const file = join(folder.configDir, "plan.sql");
    writeFileSync(file, terminal.read().stdout);

    await psql(database.url, { file });

    expect(await recorded()).to.deep.equal(["1_places", "2_seen"]);
    expect((await client.query("SELECT name = current_user AS same, role FROM seen")).rows).to.deep.equal([
      { same: true, role: "origin" },
    ]);
  });

  it("are not recorded where the script of a plan fails at them", async () => {
    const commented = "CREATE TABLE places (id int PRIMARY KEY) -- without a semicolon";
    await write({ "1_places.sql": commented, "2_index.sql": "-- svc: no transaction\nVACUUM absent" });
    const terminal = createMemoryTerminal();
    const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: database.url };
    await runAdmin({ args: ["migrate", "--plan"], env, cwd: folder.configDir, terminal });
    const file = join(folder.configDir, "plan.sql");
    writeFileSync(file, `\\set ON_ERROR_STOP off\n${terminal.read().stdout}`);

    const failure = await psql(database.url, { file }).then(() => "done", String);

    expect(failure).to.include('relation "absent" does not exist');
    expect(await recorded()).to.deep.equal(["1_places"]);
  });
});

describe("migrations by hand on the embedded database", () => {
  const files: readonly (readonly [string, boolean, RegExp])[] = [
    ["SELECT 1", true, /^done$/],
    ["SELECT 1", false, /^done$/],
    ["COMMIT", true, /ends its transaction/],
    ["COMMIT; SELECT 1 / 0", true, /failed and changed nothing/],
  ];

  it("change no setting of the service, whose session they share", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-hand-"));
    const embedded = await openNewEmbedded(dataDir);
    const database = await openDatabase({ url: embedded.url, poolSize: 2, isEmbedded: true, log });
    const settings = async (): Promise<unknown> =>
      (
        await database.pool.query(
          `SELECT current_user, session_user, json_object_agg(name, setting) AS settings FROM pg_settings
           WHERE name IN ('TimeZone', 'DateStyle', 'IntervalStyle', 'search_path', 'row_security',
             'session_replication_role', 'default_transaction_read_only')`,
        )
      ).rows[0];
    try {
      const before = await settings();
      const said: string[] = [];
      for (const [index, [ending, isInTransaction]] of files.entries()) {
        const sql = `
          SET session_replication_role = replica; SET row_security = off;
          SET TIME ZONE 'Asia/Tokyo'; SET datestyle = 'German'; SET intervalstyle = 'postgres';
          SET default_transaction_read_only = on; SET search_path = pg_temp; SET SESSION AUTHORIZATION pg_monitor; SET ROLE pg_monitor; ${ending}`;
        const migration = { name: `${index}_settings`, sql, checksum: "c", isInTransaction };
        said.push(
          await applyMigration({
            url: embedded.url,
            definitions: definitionsOf(),
            byHand: [migration],
            allowDestructive: false,
            log,
          }).then(
            () => "done",
            (error: unknown) => (error as Error).message,
          ),
        );

        expect(await settings(), `${ending} ${isInTransaction}`).to.deep.equal(before);
      }
      for (const [index, [, , expected]] of files.entries()) expect(said[index]).to.match(expected);
    } finally {
      await database.close();
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  }).timeout(60_000);
});
