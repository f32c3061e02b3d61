import { expect } from "chai";
import { appendFile, mkdir, readdir, readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { createMappingFolder } from "../mapping/mapping-folder.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { admin, mappingFiles, type AdminRun } from "../support/import.ts";
import { psql } from "../support/psql.ts";

const shop = `
  CREATE TABLE customers (id serial PRIMARY KEY, email varchar(80) NOT NULL UNIQUE, note text, gone text);
  CREATE TABLE orders (id serial PRIMARY KEY, customer_id int NOT NULL REFERENCES customers, total numeric(10, 2) NOT NULL,
    user_id int NOT NULL, state text DEFAULT 'open' CHECK (state IN ('open', 'paid')));
  COMMENT ON COLUMN orders.total IS 'in euros'`;

function noOwner(column: string): string {
  return `Nothing was written: --owner-column: no table has a column "${column}" that can hold the id of a user, an integer or a text`;
}

describe("svc-admin import", function () {
  this.timeout(120_000);
  let database: TestDatabase;
  let folder: ReturnType<typeof createMappingFolder>;

  const run = (...args: readonly string[]): Promise<AdminRun> =>
    admin({ url: database.url, configDir: folder.configDir }, "import", ...args);
  const pathOf = (file: string): string => join(folder.configDir, "resources", file);
  const valueIn = async (file: string, key: string): Promise<unknown> =>
    parse(await readFile(pathOf(file), "utf8"))[key];

  beforeEach(async () => {
    database = await createTestDatabase();
    await psql(database.url, { sql: shop });
    folder = createMappingFolder({});
  });
  afterEach(async () => {
    await database.drop();
    folder.remove();
  });

  it("refuses an owner column that no table has, or that cannot hold ids of users", async () => {
    const [mistyped, decimal] = [await run("--owner-column", "userid"), await run("--owner-column", "total")];

    expect([mistyped.status, decimal.status]).to.deep.equal([1, 1]);
    expect(mistyped.stderr).to.contain(`${noOwner("userid")}; did you mean "user_id"?\n`);
    expect(decimal.stderr).to.contain(`${noOwner("total")}.\n`);
    expect(await mappingFiles(folder.configDir)).to.deep.equal({});
  });

  it("names a folder in the place of a file", async () => {
    await mkdir(pathOf("orders.yaml"));
    const { status, stderr } = await run();

    expect(status).to.equal(1);
    expect(stderr).to.contain(`${pathOf("orders.yaml")} cannot be read (EISDIR)`);
  });

  it("names a file in the place of the folder", async () => {
    await writeFile(join(folder.configDir, "file"), "");
    const { status, stderr } = await run("--out", join(folder.configDir, "file"));

    expect(status).to.equal(1);
    expect(stderr).to.contain(`${join(folder.configDir, "file")} is not a folder`);
  });

  it("writes fields, references in both directions, values, defaults, comments and the owner", async () => {
    const { status, stdout, stderr } = await run("--owner-column", "user_id");

    expect(status).to.equal(0);
    expect(stderr).to.match(
      /^Read 2 tables and views after \d+\.\d s\.\nChecked 2 mapping files after \d+\.\d s\.\n$/,
    );
    expect(stdout).to.contain("Wrote 2 mapping files in resources");
    expect(await readFile(pathOf("orders.yaml"), "utf8")).to.equal(
      `# Table public.orders, from \`svc-admin import\`.
name: orders
model: Order
table: orders
managed: false
fields:
  id: { type: Int, id: true }
  customer_id: { type: Int, references: customers.id, as: customer }
  # in euros
  total: { type: Decimal, precision: 10, scale: 2 }
  user_id: { type: Int }
  state: { type: Enum, values: [open, paid], optional: true, default: open }
triggers: [on_create, on_update, on_delete]
ownerColumn: user_id
includes: [customer]
`,
    );
    expect(parse(await readFile(pathOf("customers.yaml"), "utf8"))).to.deep.include({
      searchableColumns: ["email", "note", "gone"],
      includes: ["orders"],
    });
  });

  it("refers to a partitioned table, and not to its partitions", async () => {
    await psql(database.url, {
      sql: `CREATE TABLE meters (id int PRIMARY KEY) PARTITION BY RANGE (id);
        CREATE TABLE meters_low PARTITION OF meters FOR VALUES FROM (0) TO (9);
        CREATE TABLE meters_rest PARTITION OF meters DEFAULT;
        CREATE TABLE readings (id serial PRIMARY KEY, meter_id int NOT NULL REFERENCES meters)`,
    });

    const { stdout } = await run();

    expect(stdout).to.not.contain("meters_");
    expect(await readFile(pathOf("readings.yaml"), "utf8")).to.contain(
      "  id: { type: Int, id: true }\n  meter_id: { type: Int, references: meters.id, as: meter }\n",
    );
  });

  it("leaves out tables that svc made in another schema, also for another folder", async () => {
    await writeFile(
      pathOf("lines.yaml"),
      "name: lines\nmodel: Line\ntable: sales.lines\nfields: { id: { type: Int, id: true } }\ntriggers: []\n",
    );
    await admin({ url: database.url, configDir: folder.configDir }, "migrate");

    const { status, stdout } = await run("--schema", "sales", "--out", "elsewhere");

    expect(status).to.equal(0);
    expect(stdout).to.contain("sales.lines: svc made it from a mapping file");
  });

  it("names the working folder when the files go into it", async () => {
    const { stdout } = await run("--out", ".");

    expect(stdout).to.contain("Wrote 2 mapping files in ., in ");
  });

  it("uses no column of a view as its key if a function makes several rows of one", async () => {
    await psql(database.url, {
      sql: `CREATE TABLE goods (sku int PRIMARY KEY, attrs jsonb);
        CREATE VIEW attributes AS SELECT sku, jsonb_object_keys(attrs) AS attr FROM goods;
        CREATE VIEW names AS SELECT DISTINCT jsonb_object_keys(attrs) AS attr FROM goods`,
    });

    const { stdout } = await run();

    expect(stdout).to.match(/public\.attributes: no column of the view is known to be unique/);
    expect(stdout).to.match(/names: The key is attr, which the SQL of the view shows to be unique/);
  });

  it("leaves no file behind when no table can be served", async () => {
    await psql(database.url, { sql: "DROP TABLE orders, customers; CREATE TABLE heap (line text)" });
    const { status, stdout } = await run();

    expect(status).to.equal(0);
    expect(stdout).to.contain("No mapping file was written.");
    expect(await readdir(join(folder.configDir, "resources"))).to.deep.equal([]);
  });

  it("overwrites no existing file without a flag", async () => {
    await run();
    await appendFile(pathOf("orders.yaml"), "# by hand\n");
    const before = await mappingFiles(folder.configDir);

    const second = await run();
    const both = await run("--update", "--force");
    const after = await mappingFiles(folder.configDir);
    const forced = await run("--force");

    expect([second.status, both.status, forced.status]).to.deep.equal([1, 2, 0]);
    expect(second.stderr).to.match(/Nothing was written: 2 files are there already .*--update.*--force/);
    expect(after).to.deep.equal(before);
    expect((await mappingFiles(folder.configDir))["orders.yaml"]).not.to.contain("by hand");
  });

  it("updates files, and keeps handwritten text to the last byte", async () => {
    await run();
    const written = (await readFile(pathOf("orders.yaml"), "utf8"))
      .replace("  total: {", "  # ours\n  sum:   { column: total,")
      .replace("  user_id: { type: Int }\n", "")
      .replace("as: customer", "as: buyer")
      .replace("[customer]", "[ buyer ]  # who pays")
      .replace(
        "triggers: [on_create, on_update, on_delete]",
        "triggers: [on_create]\n\n# seen by all\ntransform:\n    id:   id\n    sum: sum",
      );
    await writeFile(pathOf("orders.yaml"), written);
    await psql(database.url, {
      sql: `ALTER TABLE orders ADD paid_at date; COMMENT ON COLUMN orders.paid_at IS 'the day of payment';
        ALTER TABLE orders ALTER total TYPE numeric(14, 3), ADD reviewer_id int REFERENCES customers;
        ALTER TABLE customers DROP gone, ALTER email TYPE varchar(120); CREATE TABLE notes (id serial PRIMARY KEY, body text)`,
    });

    const { status, stderr } = await run("--update");
    const updated = await readFile(pathOf("orders.yaml"), "utf8");
    const again = await run("--update", "--json");

    expect(status, stderr).to.equal(0);
    expect(updated).to.equal(
      written
        .replace("precision: 10, scale: 2", "precision: 14, scale: 3")
        .replace(
          "default: open }\n",
          `default: open }
  # the day of payment
  paid_at: { type: Date, optional: true }
  reviewer_id: { type: Int, optional: true, references: customers.id, as: reviewer }\n`,
        )
        .replace("[ buyer ]", "[ buyer, reviewer ]"),
    );
    expect(parse(await readFile(pathOf("customers.yaml"), "utf8"))).to.deep.include({
      fields: {
        id: { type: "Int", id: true },
        email: { type: "String", length: 120, unique: true },
        note: { type: "String", optional: true },
      },
      searchableColumns: ["email", "note"],
    });
    const outcomes = JSON.parse(again.stdout).tables.map((row: { file: string; outcome: string }) => row);
    expect(outcomes.map(({ outcome }: { outcome: string }) => outcome)).to.deep.equal(
      Array.from({ length: 3 }, () => "unchanged"),
    );
  });

  it("keeps Windows line ends, with those of new lines and of comments", async () => {
    await run();
    const written = (await readFile(pathOf("orders.yaml"), "utf8")).replaceAll("\n", "\r\n");
    await writeFile(pathOf("orders.yaml"), written);
    await psql(database.url, {
      sql: "ALTER TABLE orders ADD paid_at date; COMMENT ON TABLE orders IS 'of the shop'",
    });

    expect((await run("--update")).status).to.equal(0);
    const updated = await readFile(pathOf("orders.yaml"), "utf8");

    expect(updated)
      .to.match(/^# of the shop\r\n/m)
      .and.contain("  paid_at: { type: Date, optional: true }\r\n");
    expect(updated).to.not.match(/[^\r]\n/);
  });

  it("keeps the owner column of the previous import, unless it names another or replaces the files", async () => {
    await run("--owner-column", "user_id");
    const written = await mappingFiles(folder.configDir);

    await run("--update");
    await run("--update");
    const updated = await mappingFiles(folder.configDir);
    await run("--update", "--owner-column", "customer_id");
    const renamed = await valueIn("orders.yaml", "ownerColumn");
    await run("--force");

    expect(updated).to.deep.equal(written);
    expect([renamed, await valueIn("orders.yaml", "ownerColumn")]).to.deep.equal(["customer_id", undefined]);
  });

  it("names handwritten parts that do not fit the tables any more", async () => {
    await run();
    const path = pathOf("customers.yaml");
    await writeFile(path, `${await readFile(path, "utf8")}transform: { id: id, old: gone }\n`);
    await psql(database.url, { sql: "ALTER TABLE customers DROP gone; DROP TABLE orders" });

    const { status, stderr } = await run("--update");

    expect(status).to.equal(1);
    expect(stderr).to.match(
      /customers\.yaml:\d+:\d+: transform\.old: "gone" is neither a field nor a relation/,
    );
    expect(stderr).to.match(/orders\.yaml:1:1: table: there is no table public\.orders any more/);
  });

  it("names what it cannot find: schemas, tables, a database without tables", async () => {
    const unknown = await Promise.all([
      run("--schema", "pubic"),
      run("--tables", "order"),
      run("--exclude", "x_*"),
      run("--nonsense"),
      run("--tables", ""),
    ]);

    expect(unknown.map(({ status }) => status)).to.deep.equal([1, 1, 1, 2, 2]);
    expect(unknown[0]?.stderr).to.contain('there is no schema "pubic"; did you mean "public"?\n');
    expect(unknown[1]?.stderr).to.contain('no table or view matches "order"; did you mean "orders"?\n');
    expect(await mappingFiles(folder.configDir)).to.deep.equal({});
  });

  it("keeps the names and tables of existing files", async () => {
    const sample = "name: orders\nmodel: Order\nfields:\n  id: { type: Int, id: true }\ntriggers: []\n";
    await writeFile(pathOf("orders.yaml"), `${sample}table: elsewhere\n`);
    await writeFile(
      pathOf("zebras.yaml"),
      sample.replace("orders", "zebras").replace("Order", "Customer") + "table: customers\n",
    );

    const { status, stdout } = await run();
    const files = await mappingFiles(folder.configDir);

    expect(status).to.equal(0);
    expect(Object.keys(files)).to.deep.equal(["orders.yaml", "public_orders.yaml", "zebras.yaml"]);
    expect(parse(files["public_orders.yaml"] ?? "")).to.include({
      name: "public_orders",
      model: "PublicOrder",
      table: "orders",
    });
    expect(stdout).to.contain("public.customers: the file zebras.yaml maps it, as a table that svc makes");
  });

  it("writes no table into the file of another one with the same name", async () => {
    await run();
    await rename(pathOf("orders.yaml"), pathOf("zoo.yaml"));
    const before = await readFile(pathOf("zoo.yaml"), "utf8");
    await psql(database.url, { sql: "CREATE TABLE zoo (id serial PRIMARY KEY)" });

    const { status, stderr } = await run("--update");

    expect(status, stderr).to.equal(0);
    expect(await readFile(pathOf("zoo.yaml"), "utf8")).to.equal(before);
    expect(await valueIn("public_zoo.yaml", "table")).to.equal("zoo");
  });

  it("imports only the requested tables, and links them to existing ones", async () => {
    await run("--exclude", "ord*");
    const alone = await mappingFiles(folder.configDir);
    await run("--tables", "orders");
    const both = await mappingFiles(folder.configDir);

    expect(Object.keys(alone)).to.deep.equal(["customers.yaml"]);
    expect(both["customers.yaml"]).to.equal(alone["customers.yaml"]);
    expect(both["orders.yaml"]).to.contain("references: customers.id, as: customer");
  });
});

describe("svc-admin import on the embedded database", function () {
  this.timeout(60_000);

  it("reports a missing database as one without tables", async () => {
    const folder = createMappingFolder({});
    try {
      const { status, stderr } = await admin({ configDir: folder.configDir }, "import");

      expect(status).to.equal(1);
      expect(stderr).to.contain("There is no table and no view in public");
    } finally {
      folder.remove();
    }
  });
});
