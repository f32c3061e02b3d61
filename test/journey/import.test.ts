import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import { loadDefinitions } from "../../src/mapping/load.ts";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { admin, mappingFiles, type AdminRun } from "../support/import.ts";
import { psql } from "../support/psql.ts";
import { startService, type TestService, type TestUser } from "../support/service.ts";
import { walkResources, type Walk } from "../support/walk.ts";

const schemas = "public,sales,Größe & Co";

/** Tables that no file can describe, and a word of the reason. */
const leftOut: Readonly<Record<string, string>> = {
  "public.cats": "neither a primary key",
  "public.no_column": "neither a primary key",
  "public.nullable_key": "neither a primary key",
  "public.without_key": "neither a primary key",
  "public.with.dot": "a dot",
  "public.keyless": "no column of the view",
  "public.nullable_codes": "no column of the view",
  "public.denied": "grant SELECT",
};

describe("svc-admin import of tables of every kind", function () {
  this.timeout(180_000);
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;
  let role: Awaited<ReturnType<typeof createRole>>;
  let first: AdminRun;
  let report: {
    readonly tables: readonly { readonly table: string; readonly remarks: readonly string[] }[];
    readonly leftOut: readonly {
      readonly table: string;
      readonly column?: string;
      readonly reason: string;
    }[];
  };
  let service: TestService;
  let user: TestUser;
  let definitions: readonly Definition[];
  let walk: Walk;

  const run = (...args: readonly string[]): Promise<AdminRun> =>
    admin({ url: database.url, configDir: folder.configDir }, ...args);

  before(async () => {
    database = await createTestDatabase();
    await psql(database.url, { file: "test/fixtures/hostile-tables.sql" });
    folder = createMappingFolder({});
    role = await createRole(database.url);
    const asRole = { url: role.url, configDir: folder.configDir };
    first = await admin(asRole, "import", "--schema", schemas, "--owner-column", "user_id", "--json");
    report = JSON.parse(first.stdout);
    service = await startService({
      mode: "servers",
      resources: await mappingFiles(folder.configDir),
      env: { DATABASE_URL: database.url },
    });
    user = await service.createUser({ isAdmin: true });
    const loaded = await loadDefinitions(folder.configDir);
    definitions = [...loaded.values()];
    walk = await walkResources(user, loaded, {
      remarks: { order_id: "1", line: 1 },
    });
  });
  after(async () => {
    await service.stop();
    await role.drop();
    await database.drop();
    folder.remove();
  });

  it("ends with 0, and names the tables that it left out, with reasons", () => {
    expect(first.status, first.stderr).to.equal(0);
    const tables = report.leftOut.filter(({ column }) => column === undefined);
    expect(tables.map(({ table }) => table)).to.have.members(Object.keys(leftOut));
    for (const { table, reason } of tables) expect(reason).to.contain(leftOut[table]);
  });

  it("names the column for the owner that cannot hold an owner", () => {
    const remarks = report.tables.filter(({ remarks: all }) => all.some((one) => one.includes("no owner")));

    expect(remarks).to.have.length(1);
    expect(remarks[0]?.remarks).to.include(
      "user_id is no owner: no id of a user of svc fits uuid. Its records are for admins only.",
    );
  });

  it("writes files that pass `resources check`, and for which `migrate` installs triggers only", async () => {
    const check = await run("resources", "check", "--json");
    const plan = JSON.parse((await run("migrate", "--plan", "--json")).stdout);

    expect(JSON.parse(check.stdout)).to.deep.include({ faults: [], warnings: [] });
    expect(plan).to.deep.include({ losses: [], impossible: [], left_alone: [] });
    // The triggers that the service installed at its start are not due again.
    expect(plan.steps).to.deep.equal([]);
  });

  it("has every resource answer, create a record by its required rules, and send its event", async () => {
    const { rows } = await service.infrastructure.database.pool.query<{ resource: string }>(
      "SELECT DISTINCT resource FROM svc.events WHERE trigger = 'on_create'",
    );

    expect(walk.faults).to.deep.equal([]);
    expect(walk.created.size).to.be.greaterThan(20);
    const captured = definitions.filter(
      ({ name, triggers }) => triggers.length > 0 && walk.created.has(name),
    );
    expect(rows.map(({ resource }) => resource)).to.have.members(captured.map(({ name }) => name));
    // The role of the import lacked the privilege TRIGGER on it.
    expect(walk.created.has("partly")).to.equal(true);
    expect(captured.map(({ name }) => name)).not.to.include("partly");
  });

  it("shows, accepts and refuses values of every type", async () => {
    const values = {
      small: -32768,
      whole: 10,
      big: "9223372036854775807",
      real: 1.5,
      amount: "9999999999.99",
      free: "0.000000000001",
      price: "$1.50",
      title: "é",
      code: "abc",
      single: "x",
      pos: 1,
      level: 3,
      day: "2026-03-28",
      clock: "14:30:00",
      clock_tz: "14:30:00+02",
      span: "P1DT2H",
      bytes: "AAEC",
      doc: { a: [null] },
      address: "10.0.0.1",
      net: "10.0.0.0/8",
      mac: "08:00:2b:01:02:03",
      xml_doc: "<a/>",
      bits: "1010",
      varbits: "101",
      lsn: "16/B374D848",
      place: "(1,2)",
      ref: "7",
      ints: "[1,5)",
      days: "[2026-01-01,2026-02-01)",
      extra: '"a"=>"1"',
      feeling: "GREAT",
      state: "paid",
      emptyable: "full",
      tags: ["a", 'b, "c"'],
      numbers: [3],
      moods: ["so so", "null"],
      ids: ["018f3c5e-7b1a-7000-8000-0123456789ab"],
      listed: ["a"],
      felt: "GREAT",
      unfelt: "x",
      chosen: "c,d",
      long_enough: "abc",
    };
    const path = "/resources/every_type";
    const good = await user.request("POST", path, { ...values, email: "a@example.com" });
    const bad = await user.request("POST", path, {
      title: "x",
      email: "a@example.com",
      small: 32768,
      whole: 11,
      amount: -1,
      code: "abcd",
      pos: 0,
      chosen: "d",
      level: 4,
      long_enough: "ab",
      moods: ["x"],
      feeling: "x",
      names: ["01234567890"],
    });

    expect(good.status, JSON.stringify(good.body)).to.equal(201);
    expect(good.body).to.deep.include(values);
    expect(bad.status).to.equal(422);
    expect(Object.keys(bad.body.errors)).to.have.members([
      "small",
      "whole",
      "amount",
      "code",
      "pos",
      "chosen",
      "level",
      "long_enough",
      "moods.0",
      "feeling",
      "names.0",
    ]);
  });

  it("takes a record back with the NULL of its arrays and its microseconds", async () => {
    const { pool } = service.infrastructure.database;
    const row = `tags = '{a,NULL}', numbers = '{NULL,2}', sums = '{1.50,NULL}', moods = '{NULL,GREAT}', ids = ARRAY[gen_random_uuid(), NULL]`;
    const { body: made } = await user.request("POST", "/resources/every_type", {
      title: "with NULL",
      email: "null@example.com",
    });
    const path = `/resources/every_type/${made.id}`;
    await pool.query(`UPDATE "every type" SET ${row} WHERE id = $1`, [made.id]);
    const { body: shown } = await user.request("GET", path);
    const { moment, local, stamped, tags, numbers } = shown;
    await user.request("PUT", path, { moment, local, stamped, tags, numbers });
    const { rows } = await pool.query(
      "SELECT trigger FROM svc.events WHERE resource = 'every_type' AND record_id = $1 ORDER BY id",
      [String(made.id)],
    );
    const { status, body } = await user.request("PUT", path, shown);

    expect(shown).to.deep.include({ tags: ["a", null], numbers: [null, 2], sums: ["1.50", null] });
    expect([status, body]).to.deep.equal([200, shown]);
    // The times have microseconds, of which the record shows three digits.
    expect(rows.map(({ trigger }) => trigger)).to.deep.equal(["on_create", "on_update"]);
    const later = { moment: "2026-01-01T00:00:00.001Z", local: null };
    expect((await user.request("PATCH", path, later)).body).to.include({
      moment: "2026-01-01T00:00:00.001+00:00",
      local: null,
    });
  });

  it("leaves a list that a create does not give to the table", async () => {
    const { status, body } = await user.request("POST", "/resources/every_type", {
      title: "lists",
      email: "lists@example.com",
    });
    const { rows } = await service.infrastructure.database.pool.query(
      `SELECT sums, names, tags FROM "every type" WHERE title = 'lists'`,
    );

    expect([status, body.sums]).to.deep.equal([201, []]);
    expect(rows).to.deep.equal([{ sums: null, names: ["a", "b"], tags: [] }]);
  });

  it("keeps the NULL of a list that is sent as it was shown, and makes no event", async () => {
    const { pool } = service.infrastructure.database;
    const { body: made } = await user.request("POST", "/resources/every_type", {
      title: "no list",
      email: "no-list@example.com",
    });
    const sumsAfter = async (sums: readonly string[]): Promise<unknown> => {
      const { body } = await user.request("PUT", `/resources/every_type/${made.id}`, { ...made, sums });
      const { rows } = await pool.query(`SELECT sums::text FROM "every type" WHERE id = $1`, [made.id]);
      return [body.sums, rows[0].sums];
    };

    const stored = [await sumsAfter([]), await sumsAfter(["1.50"]), await sumsAfter([])];

    expect(stored).to.deep.equal([
      [[], null],
      [["1.50"], "{1.50}"],
      [[], "{}"],
    ]);
    const { rows } = await pool.query(
      "SELECT trigger FROM svc.events WHERE resource = 'every_type' AND record_id = $1 ORDER BY id",
      [String(made.id)],
    );
    expect(rows.map(({ trigger }) => trigger)).to.deep.equal(["on_create", "on_update", "on_update"]);
  });
});

/** Makes a role that may read and change all but a few tables. Returns the URL with it. */
async function createRole(url: string): Promise<{ readonly url: string; drop(): Promise<void> }> {
  const role = `import_${new URL(url).pathname.slice(1)}`;
  const granted = ["public", "sales", '"Größe & Co"']
    .map(
      (name) =>
        `GRANT USAGE ON SCHEMA ${name} TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA ${name} TO ${role};
        GRANT USAGE ON ALL SEQUENCES IN SCHEMA ${name} TO ${role};`,
    )
    .join(" ");
  await psql(url, {
    sql: `CREATE ROLE ${role}; ${granted} REVOKE ALL ON denied, only_read, partly FROM ${role};
      GRANT SELECT ON only_read TO ${role}; GRANT SELECT (id, name), INSERT (name) ON partly TO ${role}`,
  });
  const ofRole = new URL(url);
  ofRole.searchParams.set("options", `-c role=${role}`);
  return {
    url: ofRole.href,
    drop: async () => void (await psql(url, { sql: `DROP OWNED BY ${role}; DROP ROLE ${role}` })),
  };
}
