import { expect } from "chai";
import { Pool } from "pg";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { migrationDue } from "../../src/app/migration-due.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { coreTitles } from "../support/core-database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definition, definitionsOf } from "../support/definitions.ts";
import { customers, orders, shop } from "../support/shop.ts";

const log = createLog({ level: "silent" });

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
      ...coreTitles,
      "customers: not installed yet",
      "orders: not installed yet",
    ]);
  });

  it("names what changed since the last migration", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    const existing = definition({ name: "cards", fields: [], isManaged: false });

    expect(await due(shop)).to.deep.equal([]);
    expect(await due(definitionsOf(customers))).to.deep.equal(["orders: no longer in the mapping files"]);
    expect(await due(definitionsOf(customers, { ...orders, triggers: ["on_create"] }))).to.deep.equal([
      "orders: the mapping file changed",
    ]);
    expect(await due(definitionsOf(customers, { ...orders, searchableColumns: ["notes"] }))).to.deep.equal(
      [],
    );
    expect(await due(definitionsOf(customers, orders, existing))).to.include("cards: not installed yet");
  });

  it("detects a capture trigger that is missing or disabled, and the migration restores it", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });

    await pool.query(
      'DROP TRIGGER "0_svc_capture_orders" ON orders; ALTER TABLE customers DISABLE TRIGGER ALL',
    );

    expect(await due(shop)).to.deep.equal([
      "customers: its capture trigger on customers is gone or disabled",
      "orders: its capture trigger on orders is gone or disabled",
    ]);
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    expect(await due(shop)).to.deep.equal([]);
  });

  it("asks two queries: whether there are tables, and what they have", async () => {
    await applyMigration({ url: database.url, definitions: shop, allowDestructive: false, log });
    let queries = 0;
    const counting = new Proxy(pool, {
      get(target, key) {
        if (key === "query") queries++;
        return Reflect.get(target, key, target) as unknown;
      },
    });

    await migrationDue({ database: { pool: counting }, definitions: shop });

    expect(queries).to.equal(2);
  });
});
