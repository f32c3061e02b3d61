import { expect } from "chai";
import { definitionsOf, field } from "../support/definitions.ts";
import {
  buyers,
  market,
  marketWith,
  openScene,
  ordersWith,
  withField,
  type Scene,
} from "../support/migration-scene.ts";
import { customers, withFields } from "../support/shop.ts";

const paidAt = marketWith((one) => one, field("paid_at", "DateTime", { isOptional: true }));
const indexed = withField("user_id", { isIndexed: true });
const unique = withField("user_id", { isUnique: true });
const referring = withField("user_id", {
  references: { resource: "buyers", field: "id", as: "buyer", onDelete: "restrict" },
});

describe("applyMigration, where somebody else has taken a name that a mapping file asks for", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene(market);
  });

  afterEach(() => scene.close());

  for (const { what, sql, wants, key } of [
    {
      what: "an index",
      sql: "CREATE INDEX orders_user_id_idx ON orders (user_id)",
      wants: indexed,
      key: "orders index orders_user_id_idx",
    },
    {
      what: "a unique index",
      sql: "CREATE UNIQUE INDEX orders_user_id_key ON orders (user_id)",
      wants: unique,
      key: "orders index orders_user_id_key",
    },
    {
      what: "a unique constraint",
      sql: "ALTER TABLE orders ADD UNIQUE (user_id)",
      wants: unique,
      key: "orders index orders_user_id_key",
    },
    {
      what: "a column",
      sql: "ALTER TABLE orders ADD paid_at timestamptz(3)",
      wants: paidAt,
      key: "orders column paid_at",
    },
    {
      what: "a foreign key",
      sql: "CREATE INDEX orders_user_id_idx ON orders (user_id); ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES buyers ON UPDATE CASCADE ON DELETE RESTRICT",
      wants: referring,
      key: "orders constraint orders_user_id_fkey",
    },
  ]) {
    it(`uses ${what} that matches the file, reports it, and never drops it`, async () => {
      await scene.client.query(sql);
      const was = await scene.shape();
      const name = key.split(" ").at(-1) ?? "";

      const planned = await scene.plan(wants);
      expect(planned.notes.join("\n")).to.match(
        new RegExp(`${name} of the table orders already exists as the mapping file has it`),
      );
      expect(planned).to.deep.include({ losses: [], impossible: [], leftAlone: [] });
      expect(await scene.apply(wants)).to.equal("done");
      expect(await scene.shape()).to.equal(was);
      expect(await scene.record()).to.include(`${key} found`);
      expect(await scene.plan(wants)).to.deep.include({ steps: [], notes: [] });

      expect(await scene.apply(market, true)).to.equal("done");
      expect(await scene.shape()).to.equal(was);
      expect(await scene.record()).to.not.include(`${key} found`);
      expect((await scene.plan(market)).leftAlone.join("\n")).to.include(name);
    });
  }

  for (const { what, sql, wants, says } of [
    {
      what: "an index on another column",
      sql: "CREATE INDEX orders_user_id_idx ON orders (amount)",
      wants: indexed,
      says: /index orders_user_id_idx/,
    },
    {
      what: "a unique index",
      sql: "CREATE UNIQUE INDEX orders_user_id_idx ON orders (user_id)",
      wants: indexed,
      says: /index orders_user_id_idx/,
    },
    {
      what: "a partial index",
      sql: "CREATE INDEX orders_user_id_idx ON orders (user_id) WHERE amount > 1",
      wants: indexed,
      says: /index orders_user_id_idx/,
    },
    {
      what: "an index on a column of somebody else",
      sql: "ALTER TABLE orders ADD extra int; CREATE INDEX orders_user_id_idx ON orders (extra)",
      wants: indexed,
      says: /index orders_user_id_idx/,
    },
    {
      what: "an index of another table",
      sql: "CREATE INDEX orders_user_id_idx ON customers (name)",
      wants: indexed,
      says: /index orders_user_id_idx .* cannot be made: the index on the table customers/,
    },
    {
      what: "a sequence",
      sql: "CREATE SEQUENCE orders_user_id_idx",
      wants: indexed,
      says: /the sequence, which svc did not make/,
    },
    {
      what: "a foreign key with another action",
      sql: "CREATE INDEX orders_user_id_idx ON orders (user_id); ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES buyers ON DELETE CASCADE",
      wants: referring,
      says: /foreign key orders_user_id_fkey.* asks for: ALTER TABLE "orders" DROP CONSTRAINT "orders_user_id_fkey"; ALTER TABLE "orders" ADD CONSTRAINT .* ON DELETE RESTRICT/,
    },
    {
      what: "a check under the name of a foreign key",
      sql: "ALTER TABLE orders ADD CONSTRAINT orders_user_id_fkey CHECK (user_id > 0)",
      wants: referring,
      says: /check orders_user_id_fkey/,
    },
    {
      what: "a column of another type",
      sql: "ALTER TABLE orders ADD paid_at text DEFAULT 'now'",
      wants: paidAt,
      says: /column paid_at/,
    },
    {
      what: "a column of times without a zone, which are UTC to svc",
      sql: "ALTER TABLE orders ADD paid_at timestamp",
      wants: paidAt,
      says: /column paid_at.* asks for: ALTER TABLE "orders" ALTER COLUMN "paid_at" SET DATA TYPE TIMESTAMPTZ\(3\) USING "paid_at" AT TIME ZONE 'UTC'\)/,
    },
    {
      what: "a column of a type that no value can be cast from",
      sql: "ALTER TABLE orders ADD paid_at int[]",
      wants: paidAt,
      says: /column paid_at/,
    },
    {
      what: "a column with a default",
      sql: "ALTER TABLE orders ADD paid_at timestamptz(3) DEFAULT now()",
      wants: paidAt,
      says: /column paid_at/,
    },
    {
      what: "a check of values",
      sql: "ALTER TABLE orders ADD CONSTRAINT orders_notes_svc_values CHECK (notes <> '')",
      wants: withField("notes", { type: "Enum", values: ["a"] }),
      says: /check orders_notes_svc_values/,
    },
    {
      what: "its own index, made again in another way",
      sql: "DROP INDEX orders_customer_id_idx; CREATE UNIQUE INDEX orders_customer_id_idx ON orders (customer_id)",
      wants: market,
      says: /unique index orders_customer_id_idx .*somebody made it again/,
    },
    {
      what: "its own check, made again in another way",
      sql: "ALTER TABLE orders DROP CONSTRAINT orders_status_svc_values; ALTER TABLE orders ADD CONSTRAINT orders_status_svc_values CHECK (status <> ''); COMMENT ON CONSTRAINT orders_status_svc_values ON orders IS 'by hand'",
      wants: market,
      says: /check orders_status_svc_values/,
    },
  ]) {
    it(`refuses ${what} under a name that the file requires, also when losses are allowed`, async () => {
      await scene.client.query(`INSERT INTO customers (name) VALUES ('Ann'); ${sql}`);
      const was = await scene.shape();

      expect((await scene.plan(wants)).impossible.join("\n")).to.match(says);
      expect(await scene.apply(wants)).to.match(says);
      expect(await scene.apply(wants, true))
        .to.match(/do not allow the migration/)
        .and.match(says);

      expect(await scene.shape()).to.equal(was);
    });
  }

  it("refuses indexes and foreign keys that are only similar to those of the file, each by its name", async () => {
    await scene.client.query("INSERT INTO customers (name) VALUES ('Ann'), ('Ann')");
    await scene.client.query(`
      ALTER TABLE orders ADD CONSTRAINT orders_user_id_key UNIQUE (user_id) DEFERRABLE;
      CREATE UNIQUE INDEX orders_amount_key ON orders (amount) INCLUDE (notes);
      CREATE UNIQUE INDEX orders_notes_key ON orders (notes COLLATE "C");
      CREATE UNIQUE INDEX orders_status_key ON orders ((status || 'x'));
      ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES buyers ON UPDATE CASCADE ON DELETE RESTRICT NOT VALID`);
    // Two customers of one name leave an index that PostgreSQL could not finish. It enforces
    // nothing.
    await scene.client
      .query("CREATE UNIQUE INDEX CONCURRENTLY customers_name_key ON customers (name)")
      .catch(() => undefined);
    await scene.client.query("UPDATE customers SET name = concat(name, id)");
    const was = await scene.shape();
    const alone = ["user_id", "amount", "notes", "status"];
    const wanted = ordersWith((one) => ({
      ...one,
      ...(alone.includes(one.name) && { isUnique: true }),
      ...(one.name === "user_id" && {
        references: { resource: "buyers", field: "id", as: "buyer", onDelete: "restrict" },
      }),
    }));
    const named = withFields(customers, [field("name", "String", { isUnique: true })]);

    const message = await scene.apply(definitionsOf(named, buyers, wanted), true);

    for (const name of [
      ...alone.map((column) => `orders_${column}_key`),
      "customers_name_key",
      "orders_user_id_fkey",
    ])
      expect(message).to.match(new RegExp(` ${name} of the table .* svc did not make it`));
    expect(message)
      .to.include("The deferrable unique constraint orders_user_id_key")
      .and.include("The invalid unique index customers_name_key");
    expect(await scene.shape()).to.equal(was);
  });
});
