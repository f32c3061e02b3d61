import { expect } from "chai";
import { Command } from "commander";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { pino } from "pino";
import type { MigrationPlan } from "../../src/app/plan-migration.ts";
import { loadConfig } from "../../src/config/load.ts";
import { addMigrateCommand } from "../../src/cli/migrate-command.ts";
import { describeFailure } from "../../src/kit/cli-output.ts";
import { testOperator } from "../support/actors.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { psql } from "../support/psql.ts";

describe("svc-admin migrate", () => {
  let database: TestDatabase;
  let client: Client;
  let configDir: string;
  let printed: string;
  let logged: string;

  beforeEach(async () => {
    logged = "";
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    configDir = await mkdtemp(join(tmpdir(), "svc-migrate-"));
    await mkdir(join(configDir, "resources"));
    await map("title: { type: String }");
  });

  afterEach(async () => {
    await client.end();
    await database.drop();
    await rm(configDir, { recursive: true, force: true });
  });

  async function map(fields: string): Promise<void> {
    const text = `name: notes\nmodel: Note\nfields:\n  id: { type: Int, id: true }\n  ${fields}\ntriggers: [on_create]\n`;
    await writeFile(join(configDir, "resources", "notes.yaml"), text);
  }

  /** Returns the output; rejects like the command. */
  async function migrate(...args: readonly string[]): Promise<string> {
    printed = "";
    const program = new Command().exitOverride();
    addMigrateCommand(program, {
      open: async () => ({
        config: loadConfig({
          env: {
            SVC_CONFIG_DIR: configDir,
            DATABASE_URL: database.url,
            SVC_SECRET_KEY: Buffer.alloc(32).toString("base64"),
          },
          cwd: configDir,
          program: "admin",
        }),
        url: database.url,
        // The level of svc-admin.
        log: pino({ level: "warn" }, { write: (line: string) => void (logged += line) }),
        actor: testOperator,
        close: async () => undefined,
      }),
      terminal: { stdout: (text) => (printed += text), stderr: () => undefined, ask: undefined },
    });
    await program.parseAsync(["migrate", ...args], { from: "user" });
    return printed;
  }

  async function hasTable(): Promise<boolean> {
    const { rows } = await client.query<{ isThere: boolean }>(
      `SELECT to_regclass('public.notes') IS NOT NULL AS "isThere"`,
    );
    return rows[0]?.isThere === true;
  }

  it("migrates the database to the mapping files, and prints the steps", async () => {
    const first = await migrate();
    const second = await migrate();

    expect(first).to.match(
      /core migration 0001_core\n.*CREATE TABLE "notes"\n.*notes: capture trigger on notes\nMigrated in [\d.]+ s\.\n$/s,
    );
    expect(second).to.equal("Nothing to do.\n");
    expect(await hasTable()).to.equal(true);
  });

  it("prints with --plan a script that does the same, and changes nothing", async () => {
    const script = await migrate("--plan");
    expect(await hasTable()).to.equal(false);

    await client.query(script.replace("\\set ON_ERROR_STOP on\n", ""));

    expect(await hasTable()).to.equal(true);
    expect(await migrate("--plan")).to.equal("-- Nothing to do.\n");
  });

  it("prints a script that means the same in every time zone", async () => {
    await map("at: { type: Date }");
    await migrate();
    await client.query("INSERT INTO notes (at) VALUES ('2026-03-28')");
    await map("at: { type: DateTime }");
    const script = await migrate("--plan");

    await client.query("SET TIME ZONE 'America/New_York'");
    await client.query(script.replace("\\set ON_ERROR_STOP on\n", ""));

    const { rows } = await client.query("SELECT (at AT TIME ZONE 'UTC')::text AS at FROM notes");
    expect(rows).to.deep.equal([{ at: "2026-03-28 00:00:00" }]);
  });

  it("prints a script that records the same under all settings of a session", async () => {
    await map(`at: { type: Date, unique: true }\nindexes: [{ fields: [at], where: "at > '2026-03-28'" }]`);
    const script = await migrate("--plan");

    await client.query("SET quote_all_identifiers = on; SET datestyle = 'German'");
    await client.query(script.replace("\\set ON_ERROR_STOP on\n", ""));

    expect(await migrate("--plan")).to.equal("-- Nothing to do.\n");
  });

  it("prints a script that ends psql at an error, and waits for no lock for long", async () => {
    const file = join(configDir, "plan.sql");
    await writeFile(file, `\\set ON_ERROR_STOP off\n${await migrate("--plan")}`);
    await client.query("CREATE TABLE notes ()");

    const failure = await psql(database.url, { file }).then(() => "done", String);

    expect(failure).to.include('relation "notes" already exists');
    expect(printed).to.include("SET LOCAL lock_timeout = 30000;");
  });

  for (const [what, fields] of [
    ["a column that it drops", "name: { type: String, optional: true }"],
    ["a column that gets another type", "title: { type: Date }"],
  ] as const)
    it(`notes that the script checks no values of ${what}`, async () => {
      await map("title: { type: DateTime }");
      const first = await migrate("--plan");
      await migrate();
      await map(fields);

      expect(await migrate("--plan")).to.match(/^-- Note: .* looks at no rows: a column that is empty now/);
      expect(first).to.not.include("looks at no rows");
    });

  it("names the loss in the plan, and makes it only with --allow-destructive", async () => {
    await migrate();
    await client.query("INSERT INTO notes (title) VALUES ('a')");
    await map("name: { type: String, optional: true }");

    expect(await migrate("--plan")).to.match(/^-- NEEDS --allow-destructive: .*`title`/);
    expect(await migrate().catch(String)).to.match(/would lose data or events.*`title`/s);
    expect(await migrate("--allow-destructive")).to.match(/ALTER TABLE "notes"/);
  });

  it("does not call a loss certain that a migration by hand may prevent", async () => {
    await map("title: { type: String, optional: true }");
    await migrate();
    await client.query("INSERT INTO notes (title) VALUES ('a')");
    await map("name: { type: String, optional: true }");
    await mkdir(join(configDir, "migrations"));
    const rename = "ALTER TABLE notes RENAME COLUMN title TO name;\n";
    await writeFile(join(configDir, "migrations", "0001_name.sql"), rename);

    const script = await migrate("--plan");
    expect(script).to.match(
      /^-- NEEDS --allow-destructive, unless the migrations by hand keep it: .*`title`/,
    );
    expect(script).to.match(/^-- Note: The changes of the mapping files are left out: /m);
    const plan = JSON.parse(await migrate("--plan", "--json")) as Pick<MigrationPlan, "steps" | "losses">;
    expect(plan.steps).to.deep.equal([]);
    expect(plan.losses).to.have.length(1);
    const file = join(configDir, "plan.sql");
    await writeFile(file, script);
    await psql(database.url, { file });
    await migrate();
    expect((await client.query("SELECT name FROM notes")).rows).to.deep.equal([{ name: "a" }]);
  });

  it("escapes control characters in the keys that it names", async () => {
    const tags = `name: tags\nmodel: Tag\nfields:\n  code: { type: String, id: true }\n  title: { type: String }\ntriggers: []\n`;
    const file = join(configDir, "resources", "tags.yaml");
    await writeFile(file, tags);
    await migrate();
    await client.query("INSERT INTO tags (code, title) VALUES (E'\\x1b]0;owned\\x07', 'a'), ('b', 'a')");
    await writeFile(file, tags.replace("String }", "String, unique: true }"));

    const message = await migrate("--plan").catch(describeFailure);
    expect(message).to.equal("The existing rows and objects do not allow the migration.");
    expect(printed).to.match(/^-- CANNOT BE DONE: .*\uFFFD\]0;owned\uFFFD/);
    expect(await migrate().catch(describeFailure)).to.match(/\uFFFD\]0;owned\uFFFD/);
  });

  it("escapes them in JSON", async () => {
    await migrate();
    await client.query(`ALTER TABLE notes ADD COLUMN "a\u009b2J\u202e" int`);

    for (const text of [await migrate("--plan", "--json"), await migrate("--json")]) {
      expect(text)
        .to.include(String.raw`a\u009b2J\u202e`)
        .and.not.match(/[\x7f-\x9f\p{Cf}]/u);
      expect(JSON.parse(text)).to.have.property("left_alone").with.length(1);
    }
  });

  it("prints an impossible plan once, and fails", async () => {
    await migrate();
    await client.query("INSERT INTO notes (title) VALUES ('a')");
    await map("title: { type: String }\n  weight: { type: Int }");

    const message = await migrate("--plan").catch(String);

    expect(message).to.equal("OperatorError: The existing rows and objects do not allow the migration.");
    expect(printed).to.match(/^-- CANNOT BE DONE: .*`weight`/);
    expect(printed.match(/ADD COLUMN/g)).to.have.length(1);
  });

  it("shows the value that prevents a step", async () => {
    await map("rate: { type: Decimal, unique: true }");
    await migrate();
    await client.query("INSERT INTO notes (rate) VALUES (0.1), (0.1000000000000000000001)");
    await map("rate: { type: Float, unique: true }");

    expect(await migrate("--allow-destructive").catch(String)).to.match(
      /PostgreSQL says: could not create unique index "notes_rate_key" \(Key \(rate\)=\(0\.1\) is duplicated\.\)$/,
    );
  });

  it("says a note once", async () => {
    await migrate();
    await map("title: { type: String }\ntable: papers");

    expect(await migrate()).to.match(/Note: The table notes of the resource notes, .* is kept\./);
    expect(logged).to.equal("");
  });

  it("prints JSON with --json", async () => {
    const plan = JSON.parse(await migrate("--plan", "--json")) as { steps: { title: string; sql: string }[] };
    const report = JSON.parse(await migrate("--json")) as { steps: string[]; duration_ms: number };

    expect(Object.keys(plan)).to.deep.equal([
      "by_hand",
      "steps",
      "losses",
      "impossible",
      "notes",
      "left_alone",
    ]);
    expect(report.steps).to.deep.equal(plan.steps.map(({ title }) => title));
    expect(report.duration_ms).to.be.a("number");
  });
});
