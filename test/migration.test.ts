import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Pool } from "pg";
import { openEmbedded } from "../src/db/embedded.ts";
import { OperatorError } from "../src/errors.ts";
import { createLog } from "../src/log.ts";
import { applyMigration, migrationDue, planMigration } from "../src/migration.ts";
import type { Definition, Definitions, Field } from "../src/resources/definition.ts";
import { createTestDatabase, type TestDatabase } from "./support/database.ts";
import { definition, definitionsOf, field, keyField } from "./support/definitions.ts";

const log = createLog({ level: "silent" });

const status = field("status", "Enum", {
  values: ["open", "paid"],
  default: { kind: "literal", value: "open" },
});
const customerId = field("customer_id", "Int", {
  references: { resource: "customers", field: "id", as: "customer", onDelete: "restrict" },
});
const customers = definition({ name: "customers", fields: [field("name", "String")] });
const orders = definition({
  name: "orders",
  ownerColumn: "user_id",
  fields: [
    field("reference", "String", { length: 40, isUnique: true }),
    status,
    field("amount", "Decimal", { precision: 12, scale: 2 }),
    field("notes", "String", { isOptional: true }),
    field("user_id", "Int"),
    customerId,
  ],
});
const shop = definitionsOf(customers, orders);

function withFields(base: Definition, fields: readonly Field[]): Definition {
  return { ...base, fields: [base.key, ...fields] };
}

describe("applyMigration", () => {
  let database: TestDatabase;
  let client: Client;

  beforeEach(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
  });

  afterEach(async () => {
    await client.end();
    await database.drop();
  });

  const apply = (definitions: Definitions, allowDestructive = false): ReturnType<typeof applyMigration> =>
    applyMigration({ url: database.url, definitions, allowDestructive, log });
  const failureOf = (definitions: Definitions, allowDestructive = false): Promise<string> =>
    apply(definitions, allowDestructive).then(
      () => "done",
      (error: unknown) => {
        expect(error).to.be.instanceOf(OperatorError);
        return (error as OperatorError).message;
      },
    );
  const rowsOf = async (sql: string): Promise<readonly unknown[]> => (await client.query(sql)).rows;
  const columnsOf = async (table: string): Promise<Record<string, string>> => {
    const { rows } = await client.query<{ name: string; type: string }>(
      `SELECT attname AS name, format_type(atttypid, atttypmod) AS type FROM pg_attribute
       WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped`,
      [table],
    );
    return Object.fromEntries(rows.map(({ name, type }) => [name, type]));
  };
  const insertOrder = `INSERT INTO customers (name) VALUES ('Ann');
    INSERT INTO orders (reference, amount, user_id, customer_id) VALUES ('R1', 9.5, 7, 1)`;

  it("makes the service's tables, the managed tables and the captures in an empty database", async () => {
    const { steps } = await apply(shop);
    await client.query(insertOrder);

    expect(steps.map(({ title }) => title)).to.include.members([
      "core migration 0001_core",
      'CREATE TABLE "orders"',
      "orders: check the values of status",
      "orders: capture trigger on orders",
    ]);
    expect(await rowsOf("SELECT resource, owner_id FROM svc.events ORDER BY id")).to.deep.equal([
      { resource: "customers", owner_id: null },
      { resource: "orders", owner_id: "7" },
    ]);
  });

  it("has nothing to do the second time, whatever the fields", async () => {
    const types = ["BigInt", "Float", "Boolean", "DateTime", "Json", "Bytes", "Uuid"] as const;
    const things = definition({
      name: "things",
      fields: [
        keyField("thing_id", { type: "BigInt" }),
        ...types.map((type) => field(type.toLowerCase(), type, { isOptional: true, isIndexed: true })),
        ...types.map((type) =>
          field(`${type.toLowerCase()}_list`, type, { isList: true, column: `${type}s` }),
        ),
        field("tags", "Enum", { values: ["a'b", "c"], isList: true }),
        field("ref", "Uuid", { default: { kind: "uuid" } }),
        field("made_at", "DateTime", { default: { kind: "now" } }),
        field("changed_at", "DateTime", { isUpdatedAt: true }),
        field("free", "Decimal", { default: { kind: "literal", value: 1.5 } }),
        field("document", "Json", { default: { kind: "literal", value: { a: [1] } } }),
        field("day", "DateTime", { default: { kind: "literal", value: "2026-03-28T00:00:00.000Z" } }),
        field("words", "String", { isList: true, default: { kind: "literal", value: ["x", "y"] } }),
      ],
    });
    const all = definitionsOf(customers, orders, things);
    await apply(all);

    const second = await planMigration({ url: database.url, definitions: all });

    expect(second).to.deep.equal({ steps: [], losses: [], impossible: [], notes: [] });
  });

  it("runs once when two run at once", async () => {
    const [first, second] = await Promise.all([apply(shop), apply(shop)]);

    const counts = [first.steps.length, second.steps.length].toSorted((a, b) => a - b);
    expect(counts[0]).to.equal(0);
    expect(counts[1]).to.be.greaterThan(5);
  });

  it("adds, widens and drops what loses nothing, also a column that is empty", async () => {
    await apply(shop);
    await client.query(insertOrder);
    const changed = withFields(orders, [
      field("reference", "String", { length: 80, isUnique: true }),
      status,
      field("amount", "Decimal", { precision: 14, scale: 2 }),
      field("user_id", "BigInt"),
      field("paid_at", "DateTime", { isOptional: true }),
      customerId,
    ]);

    await apply(definitionsOf(customers, changed));

    expect(await columnsOf("orders")).to.deep.equal({
      id: "integer",
      reference: "character varying(80)",
      status: "text",
      amount: "numeric(14,2)",
      user_id: "bigint",
      customer_id: "integer",
      paid_at: "timestamp(3) with time zone",
    });
  });

  it("widens a counting Int key together with its sequence", async () => {
    await apply(definitionsOf(customers));
    await client.query("SELECT setval('customers_id_seq', 2147483647)");

    await apply(
      definitionsOf({
        ...customers,
        fields: [keyField("id", { type: "BigInt" }), field("name", "String")],
        key: keyField("id", { type: "BigInt" }),
      }),
    );

    await client.query("INSERT INTO customers (name) VALUES ('Ann')");
    expect(await rowsOf("SELECT id FROM customers")).to.deep.equal([{ id: "2147483648" }]);
  });

  it("refuses a change that loses data, listing each, until it is allowed", async () => {
    await apply(shop);
    await client.query(insertOrder);
    await client.query("UPDATE orders SET notes = 'kept'");
    const less = withFields(orders, [
      field("reference", "String", { length: 1, isUnique: true }),
      status,
      field("amount", "Decimal", { precision: 12, scale: 2 }),
      field("user_id", "Int"),
      customerId,
    ]);

    const message = await failureOf(definitionsOf(customers, less));
    expect(message).to.match(/would lose data/);
    expect(message).to.match(/drop the column `notes`/);
    expect(message).to.match(/VarChar\(40\)` to `VarChar\(1\)/);
    expect(message).to.match(/--allow-destructive/);
    expect(await columnsOf("orders")).to.include({ notes: "text", reference: "character varying(40)" });

    const tooShort = await failureOf(definitionsOf(customers, less), true);
    expect(tooShort).to.match(/failed and changed nothing.*Step: ALTER TABLE "orders".*too long/s);
    await client.query("UPDATE orders SET reference = 'R'");

    await apply(definitionsOf(customers, less), true);
    expect(await columnsOf("orders")).to.not.have.property("notes");
  });

  it("says what the rows do not allow, and changes nothing, allowed or not", async () => {
    await apply(shop);
    await client.query(insertOrder);
    const more = withFields(orders, [...orders.fields.slice(1), field("weight", "Int")]);

    expect(await failureOf(definitionsOf(customers, more), true)).to.match(
      /cannot be done with the rows.*required column `weight`/s,
    );
    expect(await columnsOf("orders")).to.not.have.property("weight");
  });

  it("names the step that failed and rolls everything back", async () => {
    await apply(shop);
    await client.query(`${insertOrder}; INSERT INTO customers (name) VALUES ('Ann')`);
    const unique = withFields(customers, [
      field("name", "String", { isUnique: true }),
      field("city", "String", { isOptional: true }),
    ]);

    const message = await failureOf(definitionsOf(unique, orders));

    expect(message).to.match(/Step: CREATE UNIQUE INDEX "customers_name_key".*Ann/s);
    expect(await columnsOf("customers")).to.deep.equal({ id: "integer", name: "text" });
  });

  it("holds enum columns to their values, and follows a change of the values", async () => {
    await apply(shop);
    await client.query(insertOrder);
    const setTo = (value: string): Promise<string> =>
      client.query("UPDATE orders SET status = $1", [value]).then(
        () => "done",
        (error: { constraint?: string }) => String(error.constraint),
      );
    expect(await setTo("shipped")).to.equal("orders_status_svc_values");

    const shipped = { ...status, values: ["open", "paid", "shipped"] };
    const changed = orders.fields.slice(1).map((one) => (one.name === "status" ? shipped : one));
    await apply(definitionsOf(customers, withFields(orders, changed)));
    expect(await setTo("shipped")).to.equal("done");

    expect(await failureOf(shop)).to.match(/Step: orders: check the values of status.*violated by some row/s);

    const free = orders.fields
      .slice(1)
      .map((one) => (one.name === "status" ? field("status", "String") : one));
    await apply(definitionsOf(customers, withFields(orders, free)));
    expect(await setTo("anything")).to.equal("done");
  });

  it("touches no table and no type but the managed ones, and leads foreign keys to the others", async () => {
    await client.query(`
      CREATE TYPE mood AS ENUM ('good');
      CREATE TABLE customers (id serial PRIMARY KEY, name varchar(9) NOT NULL, extra mood, CHECK (name <> ''));
      CREATE TABLE letters (id serial PRIMARY KEY, customer_id int REFERENCES customers, kind "char");
      CREATE TABLE "_prisma_migrations" (id int);
      CREATE SCHEMA other; CREATE TABLE other.orders (id int);
      CREATE VIEW names AS SELECT name FROM customers`);
    const before = await columnsOf("customers");
    const existing = definitionsOf({ ...customers, isManaged: false }, orders);

    await apply(existing);

    expect(await columnsOf("customers")).to.deep.equal(before);
    expect(await columnsOf("letters")).to.include({ kind: '"char"' });
    expect(await columnsOf("other.orders")).to.deep.equal({ id: "integer" });
    expect(
      await rowsOf(
        "SELECT confrelid::regclass::text AS target FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'f'",
      ),
    ).to.deep.equal([{ target: "customers" }]);
    expect((await planMigration({ url: database.url, definitions: existing })).steps).to.deep.equal([]);
  });

  it("makes the tables in the schema public, whatever the search path of the role", async () => {
    const name = new URL(database.url).pathname.slice(1);
    await client.query(`CREATE SCHEMA elsewhere; ALTER DATABASE ${name} SET search_path = elsewhere`);

    await apply(shop);

    expect(await rowsOf("SELECT to_regclass('public.orders')::text AS name")).to.deep.equal([
      { name: "orders" },
    ]);
  });

  it("refuses to change a table that it did not make, unless that is allowed", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL, extra text)");

    expect(await failureOf(definitionsOf(customers))).to.match(
      /The table customers exists and was not made by/,
    );
    expect(await columnsOf("customers")).to.have.property("extra");
    await apply(definitionsOf(customers), true);

    expect(await columnsOf("customers")).to.not.have.property("extra");
  });

  it("takes over a table that is as the mapping file says", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL)");

    const { steps } = await apply(definitionsOf(customers));

    expect(steps.map(({ title }) => title)).to.deep.equal([
      "core migration 0001_core",
      "customers: capture trigger on customers",
    ]);
  });

  it("keeps the table of a resource that left the mapping, says so, and removes its capture", async () => {
    await apply(shop);

    const { notes } = await apply(definitionsOf(customers));
    await client.query(insertOrder);

    expect(notes).to.deep.equal([
      "The table orders of the resource orders, which is not mapped any more, is kept.",
    ]);
    expect(await rowsOf("SELECT resource FROM svc.events")).to.deep.equal([{ resource: "customers" }]);
    expect(await rowsOf("SELECT name FROM svc.installed_resources")).to.deep.equal([{ name: "customers" }]);
  });

  it("lists everything in which existing tables do not fit", async () => {
    await client.query(`
      CREATE TABLE customer (id int PRIMARY KEY, name text);
      CREATE TABLE lines (order_id int, line int, amount numeric, tags text[], PRIMARY KEY (order_id, line));
      CREATE VIEW orders AS SELECT 1 AS id`);
    const lines = definition({
      name: "lines",
      isManaged: false,
      fields: [
        keyField("order_id"),
        field("amuont", "Decimal"),
        field("amount", "Float"),
        field("tags", "String"),
        field("line", "String"),
      ],
    });

    const message = await failureOf(
      definitionsOf({ ...customers, isManaged: false }, lines, {
        ...orders,
        fields: [keyField()],
        isManaged: false,
      }),
    );

    expect(message.split("\n")).to.deep.equal([
      "The mapping files do not fit the database:",
      '  - resources/customers.yaml: there is no table "customers"; did you mean "customer"?',
      '  - resources/lines.yaml: fields.amuont: there is no column "amuont"; did you mean "amount"? (the columns are order_id, line, amount, tags)',
      "  - resources/lines.yaml: fields.amount: the column is numeric, which is Decimal, not Float",
      '  - resources/lines.yaml: fields.tags: the column is text[], a list: say "list: true"',
      "  - resources/lines.yaml: fields.line: the column is integer, which is Int, not String",
      '  - resources/lines.yaml: fields.order_id: the column "order_id" of "lines" is neither its primary key nor unique by itself',
      '  - resources/orders.yaml: "orders" is a view, whose changes cannot be captured; use the table beneath it, or no triggers',
    ]);
  });

  it("notes what single requests on an existing table will stumble over", async () => {
    await client.query(
      "CREATE TABLE customers (id serial PRIMARY KEY, name text, city text NOT NULL, at date NOT NULL DEFAULT now())",
    );

    const { notes } = await apply(definitionsOf({ ...customers, isManaged: false }));

    expect(notes).to.have.length(2);
    expect(notes[0]).to.match(/fields\.name: the column may be null/);
    expect(notes[1]).to.match(/"city" must have a value/);
  });
});

describe("planMigration", () => {
  it("gives the SQL of everything and changes nothing", async () => {
    const database = await createTestDatabase();
    try {
      const first = await planMigration({ url: database.url, definitions: shop });
      const second = await planMigration({ url: database.url, definitions: shop });

      const sql = first.steps.map((step) => step.sql).join("\n");
      expect(sql).to.include("CREATE TABLE svc.events");
      expect(sql).to.include('CREATE TABLE "orders"');
      expect(sql).to.include("CREATE TRIGGER");
      expect(second).to.deep.equal(first);
    } finally {
      await database.drop();
    }
  });
});

describe("migrationDue", () => {
  let database: TestDatabase;
  let pool: Pool;

  beforeEach(async () => {
    database = await createTestDatabase();
    pool = new Pool({ connectionString: database.url });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
  });

  afterEach(async () => {
    await pool.end();
    await database.drop();
  });

  const due = (definitions: Definitions): Promise<readonly string[]> =>
    migrationDue({ database: { pool }, definitions });

  it("names everything in an empty database", async () => {
    expect(await due(shop)).to.deep.equal([
      "core migration 0001_core",
      "customers: not installed yet",
      "orders: not installed yet",
    ]);
  });

  it("names what changed since the last migration", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    const existing = definition({ name: "cards", fields: [], isManaged: false });

    expect(await due(shop)).to.deep.equal([]);
    expect(await due(definitionsOf(customers))).to.deep.equal([
      "customers: the mapping file changed",
      "orders: no longer in the mapping files",
    ]);
    expect(await due(definitionsOf(customers, { ...orders, triggers: ["on_create"] }))).to.deep.equal([
      "orders: the mapping file changed",
    ]);
    expect(await due(definitionsOf(customers, { ...orders, searchableColumns: ["notes"] }))).to.deep.equal(
      [],
    );
    expect(await due(definitionsOf(customers, orders, existing))).to.include("cards: not installed yet");
  });

  it("notices a capture trigger that is gone or disabled, and the migration puts it back", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });

    await pool.query("DROP TRIGGER svc_capture_orders ON orders; ALTER TABLE customers DISABLE TRIGGER ALL");

    expect(await due(shop)).to.deep.equal([
      "customers: its capture trigger on customers is gone or disabled",
      "orders: its capture trigger on orders is gone or disabled",
    ]);
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    expect(await due(shop)).to.deep.equal([]);
  });

  it("asks one query", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    let queries = 0;
    const counting = new Proxy(pool, {
      get(target, key) {
        if (key === "query") queries++;
        return Reflect.get(target, key, target) as unknown;
      },
    });

    await migrationDue({ database: { pool: counting }, definitions: shop });

    expect(queries).to.equal(1);
  });
});

describe("applyMigration on the embedded database", () => {
  it("runs once when two run at once, and captures", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-migration-"));
    const embedded = await openEmbedded({ dataDir, log });
    const pool = new Pool({ connectionString: embedded.url, max: 2 });
    try {
      const apply = (): ReturnType<typeof applyMigration> =>
        applyMigration({ url: embedded.url, definitions: shop, allowDestructive: false, log });

      const reports = await Promise.all([apply(), apply()]);
      await pool.query("INSERT INTO customers (name) VALUES ('Ann')");

      expect(reports.map(({ steps }) => steps.length).toSorted((a, b) => a - b)[0]).to.equal(0);
      expect(await migrationDue({ database: { pool }, definitions: shop })).to.deep.equal([]);
      expect((await pool.query("SELECT resource FROM svc.events")).rows).to.deep.equal([
        { resource: "customers" },
      ]);
    } finally {
      await pool.end();
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  }).timeout(60_000);
});
