import { expect } from "chai";
import { readFile } from "node:fs/promises";
import { Client } from "pg";
import { coreSteps, loadCoreMigrations, runSteps } from "../src/db/migrate.ts";
import { createLog } from "../src/log.ts";
import { applyMigration, planMigration, type MigrationPlan } from "../src/migration.ts";
import type { Definition, Definitions, Field } from "../src/resources/definition.ts";
import { createTestDatabase, type TestDatabase } from "./support/database.ts";
import { definition, definitionsOf, field } from "./support/definitions.ts";
import { customers, orders, shop as smallShop, withFields } from "./support/shop.ts";

const log = createLog({ level: "silent" });

const own = orders.fields.slice(1);

const buyers = definition({ name: "buyers", fields: [] });
const shop = definitionsOf(customers, buyers, orders);

/** Orders with other fields; the function may give undefined to leave one out. */
function ordersWith(change: (given: Field) => Field | undefined, ...more: readonly Field[]): Definition {
  return withFields(orders, [...own.flatMap((one) => change(one) ?? []), ...more]);
}

function shopWith(change: (given: Field) => Field | undefined, ...more: readonly Field[]): Definitions {
  return definitionsOf(customers, buyers, ordersWith(change, ...more));
}

function withField(name: string, overrides: Partial<Field>): Definitions {
  return shopWith((one) => (one.name === name ? { ...one, ...overrides } : one));
}

function without(...names: readonly string[]): Definitions {
  return shopWith((one) => (names.includes(one.name) ? undefined : one));
}

const paidAt = shopWith((one) => one, field("paid_at", "DateTime", { isOptional: true }));
const indexed = withField("user_id", { isIndexed: true });
const unique = withField("user_id", { isUnique: true });
const referring = withField("user_id", {
  references: { resource: "buyers", field: "id", as: "buyer", onDelete: "restrict" },
});

describe("svc.made", () => {
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

  const plan = (definitions: Definitions): Promise<MigrationPlan> =>
    planMigration({ url: database.url, definitions });
  const apply = (definitions: Definitions, allowDestructive = false): Promise<string> =>
    applyMigration({ url: database.url, definitions, allowDestructive, log }).then(
      () => "done",
      (error: unknown) => (error as Error).message,
    );
  const record = async (): Promise<readonly string[]> => {
    const { rows } = await client.query<{ line: string }>(
      `SELECT concat_ws(' ', "table", kind, name, CASE WHEN NOT is_made THEN 'found' END) AS line FROM svc.made ORDER BY 1`,
    );
    return rows.map(({ line }) => line);
  };
  const shape = async (): Promise<string> => {
    const { rows } = await client.query<{ line: string }>(`
      SELECT concat_ws(' ', attrelid::regclass, attname, format_type(atttypid, atttypmod), attnotnull) AS line
      FROM pg_attribute WHERE attrelid IN (to_regclass('orders'), to_regclass('customers')) AND attnum > 0 AND NOT attisdropped
      UNION ALL SELECT indexdef FROM pg_indexes WHERE schemaname = 'public'
      UNION ALL SELECT concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) FROM pg_constraint
        WHERE connamespace = 'public'::regnamespace ORDER BY 1`);
    return rows.map(({ line }) => line).join("\n");
  };
  const titles = ({ steps }: MigrationPlan): readonly string[] => steps.map(({ title }) => title);

  it("names what was made, and follows it", async () => {
    expect(await apply(shop)).to.equal("done");
    expect((await record()).filter((line) => !line.startsWith("buyers"))).to.deep.equal([
      "customers column id",
      "customers column name",
      "customers index customers_pkey",
      "customers table customers",
      "orders column amount",
      "orders column customer_id",
      "orders column id",
      "orders column notes",
      "orders column reference",
      "orders column status",
      "orders column user_id",
      "orders constraint orders_customer_id_fkey",
      "orders constraint orders_status_svc_values",
      "orders index orders_customer_id_idx",
      "orders index orders_pkey",
      "orders index orders_reference_key",
      "orders table orders",
    ]);

    expect(await apply(without("customer_id", "reference", "status"), true)).to.equal("done");

    expect((await record()).filter((line) => line.startsWith("orders"))).to.deep.equal([
      "orders column amount",
      "orders column id",
      "orders column notes",
      "orders column user_id",
      "orders index orders_pkey",
      "orders table orders",
    ]);
  });

  it("forgets a table that somebody dropped", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query("DROP TABLE orders");

    await apply(definitionsOf(customers));

    expect((await record()).filter((line) => line.startsWith("orders"))).to.deep.equal([]);
  });

  for (const [what, fewer, named] of [
    ["a unique index", withField("reference", { isUnique: false }), "unique index orders_reference_key"],
    ["an index and a foreign key", without("customer_id"), "index orders_customer_id_idx"],
    [
      "a check",
      shopWith((one) => (one.name === "status" ? field("status", "String") : one)),
      "check orders_status_svc_values",
    ],
  ] as const) {
    it(`counts ${what} of its own that the file no longer has as a loss, also on an empty table`, async () => {
      expect(await apply(shop)).to.equal("done");

      const planned = await plan(fewer);

      expect(planned.losses.join("\n")).to.include(`The ${named} of the table orders`);
      expect(planned.leftAlone).to.deep.equal([]);
      expect(await apply(fewer)).to.match(/would lose data.*--allow-destructive/s);
      expect(await apply(fewer, true)).to.equal("done");
      expect(await shape()).to.not.include(named.split(" ").at(-1));
      expect((await plan(fewer)).steps).to.deep.equal([]);
    });
  }

  it("replaces what the file still has without a loss", async () => {
    expect(await apply(shop)).to.equal("done");
    const other = withField("customer_id", {
      references: { resource: "customers", field: "id", as: "customer", onDelete: "cascade" },
    });

    expect((await plan(other)).losses).to.deep.equal([]);
    expect(await apply(other)).to.equal("done");
    expect(await shape()).to.match(/orders_customer_id_fkey .* ON DELETE CASCADE/);
    expect((await plan(other)).steps).to.deep.equal([]);
  });

  it("names as a loss what somebody else made and a dropped column takes along", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query(`
      CREATE UNIQUE INDEX hand_made ON orders (notes, amount);
      CREATE INDEX by_notes ON orders (amount) WHERE notes <> '';
      ALTER TABLE orders ADD CONSTRAINT noted CHECK (notes <> 'x' OR amount > 1);
      CREATE STATISTICS both_of ON notes, amount FROM orders`);

    const planned = await plan(without("notes"));

    for (const name of [
      "unique index hand_made",
      "index by_notes",
      "check noted",
      "statistics object both_of",
    ])
      expect(planned.losses.join("\n")).to.match(
        new RegExp(`The ${name} of the table orders .*not made by svc, and would go together with a column`),
      );
    expect(await apply(without("notes"))).to.match(/hand_made/);
    expect(await apply(without("notes"), true)).to.equal("done");
  });

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
    it(`uses ${what} that is there just as the file asks for it, says so, and never drops it`, async () => {
      expect(await apply(shop)).to.equal("done");
      await client.query(sql);
      const was = await shape();
      const name = key.split(" ").at(-1) ?? "";

      const planned = await plan(wants);
      expect(planned.notes.join("\n")).to.match(
        new RegExp(`${name} of the table orders is there already as the mapping file has it`),
      );
      expect(planned).to.deep.include({ losses: [], impossible: [], leftAlone: [] });
      expect(await apply(wants)).to.equal("done");
      expect(await shape()).to.equal(was);
      expect(await record()).to.include(`${key} found`);
      expect(await plan(wants)).to.deep.include({ steps: [], notes: [] });

      expect(await apply(shop, true)).to.equal("done");
      expect(await shape()).to.equal(was);
      expect(await record()).to.not.include(`${key} found`);
      expect((await plan(shop)).leftAlone.join("\n")).to.include(name);
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
      says: /index orders_user_id_idx .* cannot be made: there is a index on the table customers/,
    },
    {
      what: "a sequence",
      sql: "CREATE SEQUENCE orders_user_id_idx",
      wants: indexed,
      says: /there is a sequence of that name/,
    },
    {
      what: "a foreign key with another action",
      sql: "CREATE INDEX orders_user_id_idx ON orders (user_id); ALTER TABLE orders ADD FOREIGN KEY (user_id) REFERENCES buyers ON DELETE CASCADE",
      wants: referring,
      says: /foreign key orders_user_id_fkey/,
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
      wants: shop,
      says: /unique index orders_customer_id_idx .*somebody made it again/,
    },
    {
      what: "its own check, made again in another way",
      sql: "ALTER TABLE orders DROP CONSTRAINT orders_status_svc_values; ALTER TABLE orders ADD CONSTRAINT orders_status_svc_values CHECK (status <> '')",
      wants: shop,
      says: /check orders_status_svc_values/,
    },
  ]) {
    it(`refuses ${what} under a name that the file asks for, whatever is allowed`, async () => {
      expect(await apply(shop)).to.equal("done");
      await client.query(`INSERT INTO customers (name) VALUES ('Ann'); ${sql}`);
      const was = await shape();

      expect((await plan(wants)).impossible.join("\n")).to.match(says);
      expect(await apply(wants)).to.match(says);
      expect(await apply(wants, true))
        .to.match(/cannot be done/)
        .and.match(says);

      expect(await shape()).to.equal(was);
    });
  }

  it("makes its own index again when somebody dropped it, and leaves one that was made again in another way and is not asked for", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query("DROP INDEX orders_reference_key");
    expect(titles(await plan(shop))).to.deep.equal([
      'CREATE UNIQUE INDEX "orders_reference_key" ON "orders"("reference")',
      "orders: note down what svc made",
    ]);
    await client.query("CREATE INDEX orders_reference_key ON orders (reference, amount)");
    const fewer = withField("reference", { isUnique: false });

    expect(await apply(fewer, true)).to.equal("done");

    expect(await shape()).to.match(/CREATE INDEX orders_reference_key ON public.orders/);
    expect((await plan(fewer)).leftAlone.join()).to.match(/index orders_reference_key/);
  });

  it("leaves its own parts alone that somebody changed in what the mapping file does not say, and never drops them then", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query(`
      ALTER TABLE orders ALTER CONSTRAINT orders_customer_id_fkey DEFERRABLE;
      DROP INDEX orders_reference_key; CREATE UNIQUE INDEX orders_reference_key ON orders (reference) WHERE amount > 0`);
    const was = await shape();

    expect(await apply(shop)).to.equal("done");
    expect(
      await apply(
        shopWith((one) => (one.isUnique ? { ...one, isUnique: false } : one)),
        true,
      ),
    ).to.equal("done");

    expect(await shape()).to.equal(was);
    const { leftAlone, steps } = await plan(shop);
    expect(leftAlone.join("\n")).to.match(
      /orders_customer_id_fkey .*DEFERRABLE[^]*orders_reference_key .*WHERE|orders_reference_key .*WHERE[^]*DEFERRABLE/,
    );
    expect(steps.map(({ sql }) => sql).join("\n")).to.not.match(/DROP|ALTER/);
  });

  it("does what the file changed about a column that somebody changed in another way", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query(
      "ALTER TABLE orders ALTER reference TYPE varchar(60), ALTER notes SET NOT NULL, ALTER amount SET DEFAULT 2",
    );
    const longer = shopWith((one) => {
      if (one.name === "reference") return { ...one, length: 80 };
      return one.name === "amount" ? { ...one, default: { kind: "literal", value: 1.5 } } : one;
    });

    const planned = await plan(longer);

    expect(titles(planned)[0]).to.match(
      /^ALTER TABLE "orders" ALTER COLUMN "reference" .*VARCHAR\(80\), ALTER COLUMN "amount" SET DEFAULT 1.5$/,
    );
    expect(planned.leftAlone.join())
      .to.match(/column notes .*DROP NOT NULL/)
      .and.not.match(/reference|amount/);
    expect(await apply(longer)).to.equal("done");
    expect(titles(await plan(longer))).to.deep.equal([]);
  });

  it("says when a column of somebody else is in the way of every new record", async () => {
    expect(await apply(shop)).to.equal("done");
    await client.query("ALTER TABLE orders ADD extra int NOT NULL, ADD fine int NOT NULL DEFAULT 1");

    const { notes } = await plan(shop);

    expect(notes).to.deep.equal([
      "The column extra of the table orders must have a value and has no default: no record can be created unless a field maps it, or it gets a default.",
    ]);
  });

  describe("in a database of the version before, which kept none", () => {
    beforeEach(async () => {
      const [first] = await loadCoreMigrations();
      await runSteps(client, coreSteps(first === undefined ? [] : [first]));
      await client.query("SET search_path = public");
      await client.query(await readFile("test/fixtures/before-made.sql", "utf8"));
    });

    it("takes over what is as the file has it, and leaves the rest alone", async () => {
      await client.query(`
        CREATE UNIQUE INDEX hand_made ON orders (amount); ALTER TABLE orders ADD extra text;
        ALTER TABLE orders ALTER notes SET NOT NULL, ADD CONSTRAINT positive CHECK (amount > 0);
        ALTER TABLE customers ADD CONSTRAINT customers_name_svc_values CHECK (name <> '')`);
      const was = await shape();

      const planned = await plan(smallShop);

      expect(planned).to.deep.include({ losses: [], impossible: [] });
      expect(titles(planned).filter((title) => !title.startsWith("core migration"))).to.deep.equal([
        "customers: note down what svc made",
        "orders: note down what svc made",
      ]);
      expect(planned.notes.join("\n")).to.match(
        /The table orders was made by a version of svc that kept no record/,
      );
      for (const name of ["hand_made", "extra", "positive", "customers_name_svc_values", "notes .*by hand"])
        expect(planned.leftAlone.join("\n")).to.match(new RegExp(name));
      expect(await apply(smallShop)).to.equal("done");
      expect(await shape()).to.equal(was);
      expect((await record()).filter((line) => line.startsWith("orders"))).to.deep.equal([
        "orders column amount",
        "orders column customer_id",
        "orders column id",
        "orders column notes",
        "orders column reference",
        "orders column status",
        "orders column user_id",
        "orders constraint orders_customer_id_fkey",
        "orders constraint orders_status_svc_values",
        "orders index orders_customer_id_idx",
        "orders index orders_pkey",
        "orders index orders_reference_key",
        "orders table orders",
      ]);
      expect(await plan(smallShop)).to.deep.include({ steps: [], notes: [] });
      expect(
        await apply(
          definitionsOf(
            customers,
            ordersWith((one) => (one.name === "customer_id" ? undefined : one)),
          ),
          true,
        ),
      ).to.equal("done");
      expect(await shape())
        .to.match(/hand_made/)
        .and.not.match(/orders_customer_id_idx/);
    });

    it("does what the file changed meanwhile, and drops nothing that it no longer has", async () => {
      const next = definitionsOf(
        customers,
        ordersWith(
          (one) => {
            if (one.name === "notes") return undefined;
            if (one.name === "reference") return { ...one, length: 80, isUnique: false };
            const references = {
              resource: "customers",
              field: "id",
              as: "customer",
              onDelete: "cascade",
            } as const;
            return one.name === "customer_id" ? { ...one, references } : one;
          },
          field("paid_at", "DateTime", { isOptional: true }),
        ),
      );

      const planned = await plan(next);

      expect(planned).to.deep.include({ losses: [], impossible: [] });
      expect(planned.leftAlone.join("\n")).to.match(/column notes[^]*index orders_reference_key/);
      expect(await apply(next)).to.equal("done");
      expect(await shape())
        .to.match(/orders notes text/)
        .and.to.match(/orders_reference_key/)
        .and.to.match(/orders reference character varying\(80\)/)
        .and.to.match(/orders_customer_id_fkey .* ON DELETE CASCADE/);
      expect((await plan(next)).steps).to.deep.equal([]);
    });

    it("refuses to undo an index that somebody made again under the name of its own", async () => {
      await client.query(
        "DROP INDEX orders_customer_id_idx; CREATE UNIQUE INDEX orders_customer_id_idx ON orders (customer_id)",
      );

      expect(await apply(smallShop, true)).to.match(/cannot be done.*unique index orders_customer_id_idx/s);
    });
  });
});
