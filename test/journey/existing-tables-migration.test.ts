import { expect } from "chai";
import { runAdmin } from "../../src/cli/program.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { loadChinook, loadMappings, structureOf, triggersOf } from "../support/chinook.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { createMemoryTerminal } from "../support/memory-terminal.ts";
import { psql } from "../support/psql.ts";

/** A table whose key has two columns. */
const playlistTracks = (fields: string): string => `
name: playlist-tracks
model: PlaylistTrack
table: playlist_track
managed: false
fields:
${fields}
triggers: [on_create]
`;

describe("svc-admin migrate on existing tables", () => {
  let chinook: TestDatabase;
  let database: TestDatabase;
  let mappings: Readonly<Record<string, string>>;

  before(async () => {
    chinook = await createTestDatabase();
    await loadChinook(chinook.url);
    mappings = await loadMappings("customers", "employees", "invoices", "tracks");
  });
  beforeEach(async () => {
    database = await createTestDatabase({ template: new URL(chinook.url).pathname.slice(1) });
  });
  afterEach(() => database.drop());
  after(() => chinook.drop());

  /** Runs `svc-admin migrate` over these mapping files. */
  async function migrate(
    files: Readonly<Record<string, string>>,
    ...options: readonly string[]
  ): Promise<{ readonly status: number; readonly stdout: string; readonly stderr: string }> {
    const folder = createMappingFolder(files);
    const terminal = createMemoryTerminal();
    const env = { SVC_CONFIG_DIR: folder.configDir, DATABASE_URL: database.url };
    try {
      const status = await runAdmin({ args: ["migrate", ...options], env, cwd: folder.configDir, terminal });
      const { stdout, stderr } = terminal.read();
      return { status, stdout, stderr: stderr.replaceAll(folder.configDir, "config") };
    } finally {
      folder.remove();
    }
  }

  it("refuses one column of a key of two, since it does not identify a record", async () => {
    const one = playlistTracks("  playlist_id: { type: Int, id: true }\n  track_id: { type: Int }");

    const { status, stderr } = await migrate({ ...mappings, "playlist-tracks.yaml": one });

    expect(status).to.equal(1);
    expect(stderr).to.equal(
      "svc-admin: The mapping files do not fit the database:\n" +
        '  config/resources/playlist-tracks.yaml:7:3: fields.playlist_id: the key of "playlist_track" has several columns (playlist_id, track_id): say "id: true" at the field of each\n',
    );
    expect(await triggersOf(database.url)).to.deep.equal([]);
  });

  it("refuses missing tables, columns and types, all at once, and changes nothing", async () => {
    const invoices = mappings["invoices.yaml"] ?? "";
    const wrong = invoices
      .replace(
        "billing_city:",
        "city: { type: String, optional: true, column: billing_cty }\n  billing_city:",
      )
      .replace("invoice_date: { type: DateTime }", "invoice_date: { type: String }")
      .replace("total: { type: Decimal, precision: 10, scale: 2 }", "total: { type: Float }");
    const tracks = (mappings["tracks.yaml"] ?? "").replace("table: track", "table: tracks");
    const before = await structureOf(database.url);

    const { status, stderr } = await migrate({ ...mappings, "invoices.yaml": wrong, "tracks.yaml": tracks });

    expect(status).to.equal(1);
    expect(stderr.trimEnd().split("\n")).to.deep.equal([
      "svc-admin: The mapping files do not fit the database:",
      "  config/resources/invoices.yaml:9:3: fields.invoice_date: the column is timestamp without time zone, which is DateTime, not String",
      '  config/resources/invoices.yaml:10:3: fields.city: there is no column "billing_cty"; did you mean "billing_city"? (the columns are ' +
        "invoice_id, customer_id, invoice_date, billing_address, billing_city, billing_state, billing_country, billing_postal_code, total)",
      "  config/resources/invoices.yaml:13:3: fields.total: the column is numeric(10,2), which is Decimal, not Float",
      '  config/resources/tracks.yaml:2:1: name: there is no table "tracks"; did you mean "track"?',
    ]);
    expect(await structureOf(database.url)).to.deep.equal(before);
    expect(await psql(database.url, { sql: "SELECT to_regnamespace('svc') IS NULL" })).to.equal("t");
  });

  it("removes the trigger of a resource that is removed, and nothing else", async () => {
    const before = await structureOf(database.url);
    expect(await migrate(mappings)).to.include({ status: 0, stderr: "" });
    const installed = await triggersOf(database.url);
    const { "invoices.yaml": _, ...others } = mappings;

    const { status, stdout } = await migrate(others);
    const after = await structureOf(database.url);
    await psql(database.url, {
      sql: `INSERT INTO invoice (customer_id, invoice_date, total) VALUES (1, now(), 1);
        INSERT INTO customer (first_name, last_name, email) VALUES ('A', 'B', 'a@example.com')`,
    });

    expect(status).to.equal(0);
    expect(stdout).to.match(/invoices: remove the capture trigger/);
    expect(installed.filter((name) => name.startsWith("invoice "))).to.have.length(2);
    expect(await triggersOf(database.url)).to.deep.equal(
      installed.filter((name) => !name.startsWith("invoice ")),
    );
    expect(await psql(database.url, { sql: "SELECT resource, trigger FROM svc.events" })).to.equal(
      "customers|on_create",
    );
    expect(
      await psql(database.url, { sql: "SELECT proname FROM pg_proc WHERE proname ~ 'invoice'" }),
    ).to.equal("");
    expect(after).to.deep.equal(before);
  });

  it("plans only triggers", async () => {
    await migrate({
      "customers.yaml": mappings["customers.yaml"] ?? "",
      "employees.yaml": mappings["employees.yaml"] ?? "",
    });

    const { stdout } = await migrate(mappings, "--plan", "--json");

    const { steps, losses } = JSON.parse(stdout) as { steps: { title: string }[]; losses: string[] };
    expect(losses).to.deep.equal([]);
    expect(steps.map(({ title }) => title)).to.deep.equal([
      "invoices: capture trigger on invoice",
      "tracks: capture trigger on track",
    ]);
  });
});
