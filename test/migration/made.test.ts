import { expect } from "chai";
import type { Definition } from "../../src/mapping/definition.ts";
import { customers } from "../support/shop.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import {
  buyers,
  market,
  marketWith,
  openScene,
  ordersWith,
  recordOfOrders,
  titlesOf,
  without,
  withField,
  type Scene,
} from "../support/migration-scene.ts";

function indexed(given: Definition, column: string): Definition {
  return { ...given, indexes: [{ fields: [column], type: "btree" }] };
}

describe("svc.made", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene(market);
  });

  afterEach(() => scene.close());

  it("names the objects that were made, and follows them", async () => {
    expect((await scene.record()).filter((line) => !line.startsWith("buyers"))).to.deep.equal([
      "customers column id",
      "customers column name",
      "customers index customers_pkey",
      "customers table customers",
      ...recordOfOrders,
    ]);

    expect(await scene.apply(without("customer_id", "reference", "status"), true)).to.equal("done");

    expect((await scene.record()).filter((line) => line.startsWith("orders"))).to.deep.equal([
      "orders column amount",
      "orders column id",
      "orders column notes",
      "orders column user_id",
      "orders index orders_pkey",
      "orders table orders",
    ]);
  });

  it("names a check once that is dropped together with its column", async () => {
    expect((await scene.plan(without("status"))).losses).to.have.length(1);
  });

  it("forgets a table that was dropped by hand", async () => {
    await scene.client.query("DROP TABLE orders");

    await scene.apply(definitionsOf(customers));

    expect((await scene.record()).filter((line) => line.startsWith("orders"))).to.deep.equal([]);
  });

  it("remembers a table of a resource that is no longer mapped, also in a schema with no other", async () => {
    const away = definition({ name: "away", table: "far.away", fields: [] });
    await scene.migrate(definitionsOf(customers, away));

    await scene.migrate(definitionsOf(customers));
    await scene.migrate(definitionsOf(customers));

    expect(await scene.record()).to.include("far.away table far.away");
    const wider = { ...away, fields: [...away.fields, field("note", "String", { isOptional: true })] };
    expect(await scene.apply(definitionsOf(customers, wider))).to.equal("done");
  });

  for (const [what, fewer, named] of [
    ["a unique index", withField("reference", { isUnique: false }), "unique index orders_reference_key"],
    ["an index and a foreign key", without("customer_id"), "index orders_customer_id_idx"],
    [
      "a check",
      marketWith((one) => (one.name === "status" ? field("status", "String") : one)),
      "check orders_status_svc_values",
    ],
  ] as const) {
    it(`counts ${what} of its own that the file no longer has as a loss, also on an empty table`, async () => {
      const planned = await scene.plan(fewer);

      expect(planned.losses.join("\n")).to.include(`The ${named} of the table orders`);
      expect(planned.leftAlone).to.deep.equal([]);
      expect(await scene.apply(fewer)).to.match(/would lose data.*--allow-destructive/s);
      expect(await scene.apply(fewer, true)).to.equal("done");
      expect(await scene.shape()).to.not.include(named.split(" ").at(-1));
      expect((await scene.plan(fewer)).steps).to.deep.equal([]);
    });
  }

  it("counts a check and an index as losses although other columns, here or elsewhere, get new ones", async () => {
    const status = field("status", "Enum", { values: ["a"], isOptional: true });
    const before = ordersWith((one) => one);
    expect(await scene.apply(definitionsOf(customers, buyers, indexed(before, "status")))).to.equal("done");
    const after = ordersWith((one) => {
      if (one.name === "status") return field("status", "String");
      return one.name === "notes" ? { ...status, name: "notes", column: "notes" } : one;
    });

    const { losses } = await scene.plan(
      definitionsOf(
        { ...indexed(customers, "status"), fields: [...customers.fields, status] },
        buyers,
        indexed(after, "notes"),
      ),
    );

    expect(losses.map((loss) => loss.slice(0, loss.indexOf(" (")))).to.have.members([
      "The check orders_status_svc_values of the table orders",
      "The index orders_status_svc_idx of the table orders",
    ]);
    // The index guarantees nothing.
    expect(losses.filter((loss) => loss.endsWith(", with the guarantee that it gives."))).to.have.length(1);
  });

  it("does not change an index of its own that was made again in another way", async () => {
    const before = definitionsOf(
      customers,
      buyers,
      indexed(
        ordersWith((one) => one),
        "status",
      ),
    );
    expect(await scene.apply(before)).to.equal("done");
    await scene.client.query(
      "DROP INDEX orders_status_svc_idx; CREATE INDEX orders_status_svc_idx ON orders (status, amount)",
    );

    expect(await scene.apply(market, true)).to.equal("done");

    expect(await scene.shape()).to.match(/orders_status_svc_idx ON public\.orders .*\(status, amount\)/);
    expect((await scene.plan(market)).leftAlone.join("\n")).to.include("index orders_status_svc_idx");
  });

  for (const [when, sql] of [
    ["before", "DROP SCHEMA svc CASCADE"],
    ["after", "UPDATE svc.made SET is_made = false WHERE \"table\" = 'orders'"],
  ] as const) {
    it(`adopts a check of values that was restored without its record, ${when} a migration that found it`, async () => {
      await scene.client.query(sql);
      const more = withField("status", { values: ["open", "paid", "late"] });

      expect((await scene.plan(more)).impossible).to.deep.equal([]);
      expect(await scene.apply(more, true)).to.equal("done");

      expect(await scene.shape()).to.match(/orders_status_svc_values CHECK .*late/);
      expect((await scene.plan(more)).steps).to.deep.equal([]);
    });
  }

  it("replaces parts that the file still has without a loss", async () => {
    const other = withField("customer_id", {
      references: { resource: "customers", field: "id", as: "customer", onDelete: "cascade" },
    });

    expect((await scene.plan(other)).losses).to.deep.equal([]);
    expect(await scene.apply(other)).to.equal("done");
    expect(await scene.shape()).to.match(/orders_customer_id_fkey .* ON DELETE CASCADE/);
    expect((await scene.plan(other)).steps).to.deep.equal([]);
  });

  it("names as a loss the objects of others that go with a dropped column", async () => {
    await scene.client.query(`
      CREATE UNIQUE INDEX hand_made ON orders (notes, amount);
      CREATE INDEX by_notes ON orders (amount) WHERE notes <> '';
      ALTER TABLE orders ADD CONSTRAINT noted CHECK (notes <> 'x' OR amount > 1);
      CREATE STATISTICS both_of ON notes, amount FROM orders`);

    const planned = await scene.plan(without("notes"));

    for (const name of [
      "unique index hand_made",
      "index by_notes",
      "check noted",
      "statistics object both_of",
    ])
      expect(planned.losses.join("\n")).to.match(
        new RegExp(`The ${name} of the table orders .*not made by svc, and would go together with a column`),
      );
    expect(await scene.apply(without("notes"))).to.match(/hand_made/);
    expect(await scene.apply(without("notes"), true)).to.equal("done");
  });

  it("makes its own index again when it was dropped, and keeps one made again in another way that is not required", async () => {
    await scene.client.query("DROP INDEX orders_reference_key");
    expect(titlesOf(await scene.plan(market))).to.deep.equal([
      'CREATE UNIQUE INDEX "orders_reference_key" ON "orders"("reference")',
      "orders: record what svc made",
    ]);
    await scene.client.query("CREATE INDEX orders_reference_key ON orders (reference, amount)");
    const fewer = withField("reference", { isUnique: false });

    expect(await scene.apply(fewer, true)).to.equal("done");

    expect(await scene.shape()).to.match(/CREATE INDEX orders_reference_key ON public.orders/);
    expect((await scene.plan(fewer)).leftAlone.join()).to.match(/index orders_reference_key/);
  });

  it("keeps its own parts whose details outside the mapping file were changed by hand, and never drops them then", async () => {
    await scene.client.query(`
      ALTER TABLE orders ALTER CONSTRAINT orders_customer_id_fkey DEFERRABLE;
      DROP INDEX orders_reference_key; CREATE UNIQUE INDEX orders_reference_key ON orders (reference) WHERE amount > 0`);
    const was = await scene.shape();

    expect(await scene.apply(market)).to.equal("done");
    expect(
      await scene.apply(
        marketWith((one) => {
          if (one.name === "customer_id") return field("customer_id", "Int", { isIndexed: true });
          return one.isUnique ? { ...one, isUnique: false } : one;
        }),
        true,
      ),
    ).to.equal("done");

    expect(await scene.shape()).to.equal(was);
    const { leftAlone, steps } = await scene.plan(market);
    expect(leftAlone.join("\n")).to.match(
      /orders_customer_id_fkey .*DEFERRABLE[^]*orders_reference_key .*WHERE|orders_reference_key .*WHERE[^]*DEFERRABLE/,
    );
    expect(steps.map(({ sql }) => sql).join("\n")).to.not.match(/DROP|ALTER COLUMN|ALTER CONSTRAINT/);
  });

  it("makes the change of the file to a column that was changed in another way", async () => {
    await scene.client.query(
      "ALTER TABLE orders ALTER reference TYPE varchar(60), ALTER notes SET NOT NULL, ALTER amount SET DEFAULT 2",
    );
    const longer = marketWith((one) => {
      if (one.name === "reference") return { ...one, length: 80 };
      return one.name === "amount" ? { ...one, default: { kind: "literal", value: 1.5 } } : one;
    });

    const planned = await scene.plan(longer);

    expect(titlesOf(planned)[0]).to.match(
      /^ALTER TABLE "orders" ALTER COLUMN "reference" .*VARCHAR\(80\), ALTER COLUMN "amount" SET DEFAULT 1.5$/,
    );
    expect(planned.leftAlone.join())
      .to.match(/column notes .*DROP NOT NULL/)
      .and.not.match(/reference|amount/);
    expect(await scene.apply(longer)).to.equal("done");
    expect(titlesOf(await scene.plan(longer))).to.deep.equal([]);
  });

  it("names the loss of a change of the file also on a column that was changed in another way", async () => {
    await scene.client.query(`
      ALTER TABLE orders ALTER reference SET DEFAULT 'x', ALTER amount SET DEFAULT 1, ALTER notes SET NOT NULL;
      INSERT INTO customers (name) VALUES ('Ann');
      INSERT INTO orders (reference, amount, notes, user_id, customer_id) VALUES ('abcdef', 1.25, 'n', 1, 1)`);
    const shorter = withField("reference", { length: 3 });
    const rougher = withField("amount", { scale: 1 });

    expect(await scene.apply(shorter, true)).to.match(/at most 3 characters, and 1 row has/);
    expect(await scene.apply(rougher)).to.match(/would lose data.*`amount`/s);
    expect((await scene.plan(rougher)).leftAlone.join()).to.match(/column reference .*DROP DEFAULT/);
  });

  it("reports a column of others that blocks every new record", async () => {
    await scene.client.query("ALTER TABLE orders ADD extra int NOT NULL, ADD fine int NOT NULL DEFAULT 1");

    const { notes } = await scene.plan(market);

    expect((await scene.plan(without("amount"))).notes).to.deep.equal(notes);
    expect(notes).to.deep.equal([
      "The column extra of the table orders must have a value and has no default: no record can be created unless a field maps it, or it gets a default.",
    ]);
  });
});
