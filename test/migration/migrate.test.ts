import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Client, Pool } from "pg";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { migrationDue } from "../../src/app/migration-due.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { openEmptyScene, openScene, type Scene } from "../support/migration-scene.ts";
import { customerId, customers, orders, shop, status, withFields } from "../support/shop.ts";

const log = createLog({ level: "silent" });

const insertOrder = `INSERT INTO customers (name) VALUES ('Ann');
  INSERT INTO orders (reference, amount, user_id, customer_id) VALUES ('R1', 9.5, 7, 1)`;

describe("a migration of an empty database", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openEmptyScene();
  });

  afterEach(() => scene.close());

  it("makes the service's tables, the managed tables and the captures", async () => {
    const { steps } = await scene.migrate(shop);
    await scene.client.query(insertOrder);

    expect(steps.map(({ title }) => title)).to.include.members([
      "core migration 0001_core",
      'CREATE TABLE "orders"',
      "orders: check the values of status",
      "orders: capture trigger on orders",
    ]);
    expect(await scene.rows("SELECT resource, owner_id FROM svc.events ORDER BY id")).to.deep.equal([
      { resource: "customers", owner_id: null },
      { resource: "orders", owner_id: "7" },
    ]);
  });

  it("runs once when two run at once", async () => {
    const [first, second] = await Promise.all([scene.migrate(shop), scene.migrate(shop)]);

    const counts = [first.steps.length, second.steps.length].toSorted((a, b) => a - b);
    expect(counts[0]).to.equal(0);
    expect(counts[1]).to.be.greaterThan(5);
  });

  it("is planned with the SQL of everything, without a change", async () => {
    const first = await scene.plan(shop);
    const second = await scene.plan(shop);

    const sql = first.steps.map((step) => step.sql).join("\n");
    expect(sql).to.include("CREATE TABLE svc.events");
    expect(sql).to.include('CREATE TABLE "orders"');
    expect(sql).to.include("CREATE TRIGGER");
    expect(second).to.deep.equal(first);
  });
});

describe("applyMigration", () => {
  let scene: Scene;
  let client: Client;

  beforeEach(async () => {
    scene = await openScene();
    client = scene.client;
  });

  afterEach(() => scene.close());

  it("makes no change the second time, with any fields", async () => {
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
    await scene.migrate(all);

    const second = await scene.plan(all);

    expect(second).to.deep.equal({
      byHand: [],
      core: [],
      steps: [],
      losses: [],
      impossible: [],
      notes: [],
      leftAlone: [],
      changed: [],
      referred: [],
    });
  });

  it("adds, widens and drops without a loss, also a column that is empty", async () => {
    await scene.migrate(shop);
    await client.query(insertOrder);
    const changed = withFields(orders, [
      field("reference", "String", { length: 80, isUnique: true }),
      status,
      field("amount", "Decimal", { precision: 14, scale: 2 }),
      field("user_id", "BigInt"),
      field("paid_at", "DateTime", { isOptional: true }),
      customerId,
    ]);

    await scene.migrate(definitionsOf(customers, changed));

    expect(await scene.columns("orders")).to.deep.equal({
      id: "integer",
      reference: "character varying(80)",
      status: "text",
      amount: "numeric(14,2)",
      user_id: "bigint",
      customer_id: "integer",
      paid_at: "timestamp(3) with time zone",
    });
  });

  it("refuses a change that loses data, listing each, until it is allowed", async () => {
    await scene.migrate(shop);
    await client.query(insertOrder);
    await client.query("UPDATE orders SET notes = 'kept'");
    const less = withFields(orders, [
      field("reference", "String", { length: 40, isUnique: true }),
      status,
      field("amount", "Decimal", { precision: 12, scale: 1 }),
      field("user_id", "Int"),
      customerId,
    ]);

    const message = await scene.apply(definitionsOf(customers, less));
    expect(message).to.match(/would lose data/);
    expect(message).to.match(/drop the column `notes`/);
    expect(message).to.match(/Decimal\(12,2\)` to `Decimal\(12,1\)/);
    expect(message).to.match(/--allow-destructive/);
    expect(await scene.columns("orders")).to.include({ notes: "text", amount: "numeric(12,2)" });

    await scene.migrate(definitionsOf(customers, less), true);
    expect(await scene.columns("orders")).to.not.have.property("notes");
  });

  it("refuses a narrower type, allowed or not, while values do not fit, and loses nothing", async () => {
    const wide = definition({
      name: "things",
      fields: [
        field("code", "String", { length: 9 }),
        field("free", "String", { isOptional: true }),
        field("tags", "String", { length: 9, isList: true }),
        field("amount", "Decimal", { precision: 12, scale: 2 }),
        field("count", "BigInt"),
        field("rough", "Float", { default: { kind: "literal", value: 1.5 } }),
      ],
    });
    const narrow = withFields(wide, [
      field("code", "String", { length: 3 }),
      field("free", "String", { length: 3, isOptional: true }),
      field("tags", "String", { length: 3, isList: true }),
      field("amount", "Decimal", { precision: 5, scale: 2 }),
      field("count", "Int"),
      field("rough", "Int", { default: { kind: "literal", value: 1 } }),
    ]);
    await scene.migrate(definitionsOf(wide));
    await client.query(`INSERT INTO things (code, free, tags, amount, count) VALUES
      ('abcd', 'éèêë', '{abcd}', 1000, 2147483648), ('ab  ', 'éèê', '{a}', 999.99, 2147483647),
      ('abc', NULL, '{}', -999.99, -2147483648), ('a', NULL, '{}', -1000, -2147483649)`);

    const message = await scene.apply(definitionsOf(narrow), true);
    expect(message.split("\n").slice(1)).to.have.members([
      "  - The column code of the table things is to hold at most 3 characters, and 2 rows have a value beyond that. Change the values first; none is cut.",
      "  - The column free of the table things is to hold at most 3 characters, and 1 row has a value beyond that. Change the values first; none is cut.",
      "  - The column tags of the table things is to hold at most 3 characters, and 1 row has a value beyond that. Change the values first; none is cut.",
      "  - The column amount of the table things is to hold at most 3 digits before the decimal point, and 2 rows have a value beyond that. Change the values first; none is cut.",
      "  - The column count of the table things is to hold whole numbers of 32 bits, and 2 rows have a value beyond that. Change the values first; none is cut.",
    ]);
    await client.query("UPDATE things SET code = 'a', free = 'b', tags = '{a}', amount = 1, count = 1");
    const shorter = withFields(wide, [...narrow.fields.slice(1, 4), ...wide.fields.slice(4)]);

    await scene.migrate(definitionsOf(shorter));
    expect(await scene.columns("things")).to.include({
      code: "character varying(3)",
      free: "character varying(3)",
      tags: "character varying(3)[]",
    });
    expect((await scene.plan(definitionsOf(narrow))).losses.join("\n"))
      .to.match(/`amount`/)
      .and.match(/`count`/)
      .and.match(/`rough`/);
    expect(await scene.apply(definitionsOf(narrow))).to.match(/would lose data/);
    await scene.migrate(definitionsOf(narrow), true);
    expect(await scene.columns("things")).to.include({ amount: "numeric(5,2)", count: "integer" });
  });

  it("reports changes that the rows do not allow, and changes nothing, allowed or not", async () => {
    await scene.migrate(shop);
    await client.query(insertOrder);
    const more = withFields(orders, [...orders.fields.slice(1), field("weight", "Int")]);

    expect(await scene.apply(definitionsOf(customers, more), true)).to.match(
      /rows and objects do not allow the migration.*required column `weight`/s,
    );
    expect(await scene.columns("orders")).to.not.have.property("weight");

    const { steps } = await scene.plan(definitionsOf(customers, more));
    expect(steps[0]).to.deep.equal({
      title: 'ALTER TABLE "orders" ADD COLUMN "weight" INTEGER NOT NULL',
      sql: 'ALTER TABLE "orders" ADD COLUMN     "weight" INTEGER NOT NULL',
    });
  });

  it("names the step that failed and rolls everything back", async () => {
    await scene.migrate(shop);
    // A row that a plan cannot see.
    await client.query(`
      CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no index'; END $$;
      CREATE EVENT TRIGGER refusing ON ddl_command_start WHEN TAG IN ('CREATE INDEX') EXECUTE FUNCTION refuse()`);
    const unique = withFields(customers, [
      field("name", "String"),
      field("city", "String", { isUnique: true, default: { kind: "literal", value: "Ulm" } }),
    ]);

    const message = await scene.apply(definitionsOf(unique, orders));

    expect(message).to.match(/Step: CREATE UNIQUE INDEX "customers_city_key"/);
    expect(await scene.columns("customers")).to.deep.equal({ id: "integer", name: "text" });
  });

  it("holds enum columns to their values, and follows a change of the values", async () => {
    await scene.migrate(shop);
    await client.query(insertOrder);
    const setTo = (value: string): Promise<string> =>
      client.query("UPDATE orders SET status = $1", [value]).then(
        () => "done",
        (error: { constraint?: string }) => String(error.constraint),
      );
    expect(await setTo("shipped")).to.equal("orders_status_svc_values");

    const shipped = { ...status, values: ["open", "paid", "shipped"] };
    const changed = orders.fields.slice(1).map((one) => (one.name === "status" ? shipped : one));
    await scene.migrate(definitionsOf(customers, withFields(orders, changed)));
    expect(await setTo("shipped")).to.equal("done");

    expect(await scene.apply(shop, true)).to.include(
      "The column status of the table orders is to hold one of open, paid, and 1 row has another value. Change the values first. To rename a value, list both names, migrate, change the rows, and then remove the old name.",
    );

    const free = orders.fields
      .slice(1)
      .map((one) => (one.name === "status" ? field("status", "String") : one));
    expect(await scene.apply(definitionsOf(customers, withFields(orders, free)))).to.match(
      /would lose data.*The check orders_status_svc_values of the table orders .*no longer in the mapping file/s,
    );
    await scene.migrate(definitionsOf(customers, withFields(orders, free)), true);
    expect(await setTo("anything")).to.equal("done");
  });

  it("counts the values that a number has besides those of the enum that it becomes", async () => {
    const notes = definition({ name: "notes", fields: [field("level", "Decimal")] });
    const level = field("level", "Enum", { values: ["1", "2"] });
    await scene.migrate(definitionsOf(notes));
    await client.query("INSERT INTO notes (level) VALUES (1.5)");

    expect((await scene.plan(definitionsOf(withFields(notes, [level])))).impossible).to.deep.equal([
      "The column level of the table notes is to hold one of 1, 2, and 1 row has another value. Change the values first. To rename a value, list both names, migrate, change the rows, and then remove the old name.",
    ]);
  });

  it("makes the tables in the schema public, with any search path of the role", async () => {
    const name = new URL(scene.url).pathname.slice(1);
    await client.query(`CREATE SCHEMA elsewhere; ALTER DATABASE ${name} SET search_path = elsewhere`);

    await scene.migrate(shop);

    expect(await scene.rows("SELECT to_regclass('public.orders')::text AS name")).to.deep.equal([
      { name: "orders" },
    ]);
  });

  it("notes a capture that is ENABLE ALWAYS while the outbox is not filled always", async () => {
    await scene.migrate(shop);
    await client.query('ALTER TABLE orders ENABLE ALWAYS TRIGGER "0_svc_capture_orders"');

    const { notes, steps } = await scene.plan(shop);

    expect(steps).to.deep.equal([]);
    expect(notes.join("\n")).to.match(
      /^The capture of the table orders is ENABLE ALWAYS, and .*not delivered/,
    );
    await client.query(/ALTER TABLE svc.*? enqueue_event/.exec(notes[0] ?? "")?.[0] ?? "");
    expect((await scene.plan(shop)).notes).to.deep.equal([]);
  });

  it("keeps the table of a resource that left the mapping, reports it, and removes its capture", async () => {
    await scene.migrate(shop);

    const { notes } = await scene.migrate(definitionsOf(customers));
    await client.query(insertOrder);

    expect(notes).to.deep.equal([
      "The table orders of the resource orders, which is not mapped any more, is kept.",
    ]);
    expect(await scene.rows("SELECT resource FROM svc.events")).to.deep.equal([{ resource: "customers" }]);
    expect(await scene.rows("SELECT name FROM svc.installed_resources")).to.deep.equal([
      { name: "customers" },
    ]);
  });

  it("refuses to take the events of a resource that left the mapping from active webhooks", async () => {
    await scene.migrate(shop);
    await client.query(`INSERT INTO svc.users (name, email) VALUES ('Ann', 'ann@example.com');
      INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, encrypted_secret, secret_hint)
      SELECT 1, 'https://example.com', resource, '{on_create}', "on", 'x', 'x'
      FROM (VALUES ('orders', true), ('orders', false), ('customers', true), ('*', true)) AS given (resource, "on")`);
    const refusal = await scene.migrate(definitionsOf(customers)).catch(String);
    expect(refusal).to.match(/ orders any more: 2 active webhooks of it or of \* get no more events of it/);
  });

  it("keeps the table that a resource moves away from, and reports it", async () => {
    await scene.migrate(shop);

    const { notes } = await scene.migrate(definitionsOf(customers, { ...orders, table: "purchases" }));

    expect(notes).to.deep.equal([
      "The table orders of the resource orders, which is on the table purchases now, is kept.",
    ]);
    expect(await scene.rows("SELECT to_regclass('orders')::text AS name")).to.deep.equal([
      { name: "orders" },
    ]);
  });

  it("touches only the table, the capture and the note of the resource that changed", async () => {
    await scene.migrate(shop);
    const namedCustomers = withFields(customers, [field("name", "String", { isIndexed: true })]);
    const ownedCustomers = { ...namedCustomers, ownerColumn: "id" };
    const changedOrders = withFields(orders, [
      ...orders.fields.slice(1),
      field("paid_at", "DateTime", { isOptional: true }),
    ]);
    const stepsOf = async (...list: readonly Definition[]): Promise<readonly string[]> =>
      (await scene.migrate(definitionsOf(...list))).steps.map(({ title }) => title);

    expect(await stepsOf(namedCustomers, orders)).to.deep.equal([
      'CREATE INDEX "customers_name_idx" ON "customers"("name")',
      "customers: record what svc made",
      "customers: record the mapping",
    ]);
    expect(await stepsOf(ownedCustomers, orders)).to.deep.equal(["customers: capture trigger on customers"]);
    expect(await stepsOf(ownedCustomers, changedOrders)).to.deep.equal([
      'ALTER TABLE "orders" ADD COLUMN "paid_at" TIMESTAMPTZ(3)',
      "orders: record what svc made",
      "orders: capture trigger on orders",
    ]);
    expect(await stepsOf(ownedCustomers, changedOrders)).to.deep.equal([]);
  });
});

describe("applyMigration on the embedded database", () => {
  it("runs once when two run at once, and captures", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-migration-"));
    const embedded = await openNewEmbedded(dataDir);
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
