import { expect } from "chai";
import type { Definition, Definitions, Field, FieldType, TableIndex } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { openScene, sceneOfSuite, titlesOf, type Scene } from "../support/migration-scene.ts";

const customers = definition({
  name: "customers",
  table: "crm.customers",
  fields: [field("name", "String")],
});

/** A table in a schema of its own, with a key of two fields and a column of every new type. */
function lines(overrides: Partial<Definition> = {}): Definition {
  return definition({
    name: "lines",
    table: "sales.lines",
    fields: [
      field("customer_id", "Int", {
        isKey: true,
        references: { resource: "customers", field: "id", as: "customer", onDelete: "restrict" },
      }),
      field("day", "Date", { isKey: true, default: { kind: "now" } }),
      field("number", "Int"),
      field("starts", "Time", { default: { kind: "literal", value: "08:30" } }),
      field("lasts", "Interval", { default: { kind: "literal", value: "PT1H30M" } }),
      field("address", "String", { native: "inet", isOptional: true }),
      field("area", "String", { native: "int4range", default: { kind: "literal", value: "[1,5)" } }),
      field("days", "Date", { isList: true, default: { kind: "literal", value: ["2026-01-01"] } }),
      field("state", "Enum", { values: ["a", "b"] }),
      field("done", "Boolean"),
    ],
    uniques: [["customer_id", "number"]],
    indexes: [
      { fields: ["day"], where: "NOT done", type: "btree" },
      { fields: ["address"], type: "hash" },
    ],
    ...overrides,
  });
}

/** Items with a column of the type, and an index over it and another one beside it. */
function items(at: FieldType): Definitions {
  const fields = [field("at", at, { isOptional: true }), field("area", "String")];
  const indexes: readonly TableIndex[] = [
    { fields: ["at"], type: "btree" },
    { fields: ["area"], where: "at IS NOT NULL", type: "btree" },
  ];
  return definitionsOf(definition({ name: "items", table: "sales.items", fields, indexes }));
}

/** Tickets with such a number, and such a key. */
function tickets(number: Partial<Field>, id = keyField()): Definitions {
  const fields = [id, field("number", "Int", number)];
  return definitionsOf(definition({ name: "tickets", table: "sales.tickets", fields }));
}

describe("applyMigration of tables in schemas of their own", () => {
  const scene = sceneOfSuite();

  const indexesOf = async (): Promise<readonly string[]> => {
    const { rows } = await scene.client.query<{ indexdef: string }>(
      "SELECT indexdef FROM pg_indexes WHERE schemaname = 'sales' ORDER BY indexname",
    );
    return rows.map(({ indexdef }) => indexdef);
  };

  it("distinguishes its index of a column `svc` from those that the key `indexes` requires", async () => {
    const fields = [field("svc", "String", { isIndexed: true })];
    const indexes: readonly TableIndex[] = [{ fields: ["svc"], where: "svc <> ''", type: "btree" }];
    const hosts = definitionsOf(definition({ name: "hosts", table: "sales.hosts", fields, indexes }));

    await scene.migrate(hosts);

    expect(await scene.plan(hosts)).to.deep.include({ steps: [], losses: [], leftAlone: [] });
    const names = ["hosts_svc_idx", "hosts_svc_svc_idx"];
    expect(await scene.record()).to.include.members(names.map((name) => `sales.hosts index ${name}`));
    await scene.migrate(definitionsOf(), true);
    await scene.client.query("DROP TABLE sales.hosts");
  });

  it("adds and removes a counter of a column, beside a sequence of that name in public", async () => {
    const sequences = (): Promise<readonly unknown[]> =>
      scene.rows(
        "SELECT oid::regclass::text AS name FROM pg_class WHERE relkind = 'S' AND relname LIKE 'tickets%'",
      );
    await scene.client.query("CREATE SEQUENCE tickets_id_seq");
    await scene.apply(tickets({}));

    const gained = await scene.apply(tickets({ default: { kind: "autoincrement" } }));
    const lost = await scene.apply(tickets({}, field("id", "String", { isKey: true })), true);

    expect([gained, lost]).to.deep.equal(["done", "done"]);
    expect(await sequences()).to.deep.equal([{ name: "tickets_id_seq" }]);
    // Two tables of svc may have sequences of one name.
    const twins = (id = keyField()): Definitions =>
      new Map([
        ...tickets({}),
        ["others", definition({ name: "others", table: "tickets", model: "Other", fields: [id] })],
      ]);
    await scene.client.query("DROP TABLE sales.tickets; DROP SEQUENCE tickets_id_seq");
    const made = [
      await scene.apply(twins()),
      await scene.apply(twins(field("id", "String", { isKey: true })), true),
    ];
    expect(made).to.deep.equal(["done", "done"]);
    expect(await sequences()).to.deep.equal([{ name: "sales.tickets_id_seq" }]);
    // Both may lose their counter at once.
    await scene.client.query("DROP TABLE tickets, sales.tickets");
    const ended = new Map([
      ...twins(field("id", "String", { isKey: true })),
      ...tickets({}, field("id", "String", { isKey: true })),
    ]);
    expect([await scene.apply(twins()), await scene.apply(ended, true)]).to.deep.equal(["done", "done"]);
    expect(await sequences()).to.deep.equal([]);
    await scene.client.query("DROP TABLE tickets, sales.tickets");
  });

  it("makes them complete, with keys, uniques, indexes, references over schemas, and then makes no change", async () => {
    expect(await scene.apply(definitionsOf(customers, lines()))).to.equal("done");

    const { steps, leftAlone } = await scene.plan(definitionsOf(customers, lines()));
    expect([steps, leftAlone]).to.deep.equal([[], []]);
    expect(await indexesOf()).to.deep.equal([
      "CREATE INDEX lines_address_svc_idx ON sales.lines USING hash (address)",
      "CREATE UNIQUE INDEX lines_customer_id_number_key ON sales.lines USING btree (customer_id, number)",
      "CREATE INDEX lines_day_svc_idx ON sales.lines USING btree (day) WHERE (NOT done)",
      "CREATE UNIQUE INDEX lines_pkey ON sales.lines USING btree (customer_id, day)",
    ]);
    expect(await scene.record()).to.include.members([
      "sales.lines table sales.lines",
      "sales.lines index lines_day_svc_idx",
      "sales.lines index lines_customer_id_number_key",
      "sales.lines constraint lines_customer_id_fkey",
      "sales.lines constraint lines_state_svc_values",
    ]);
    const { rows } = await scene.client
      .query(
        "INSERT INTO crm.customers (name) VALUES ('a'); INSERT INTO sales.lines (customer_id, number, state, done) VALUES (1, 1, 'a', true) RETURNING starts, lasts, area, days",
      )
      .then((results) => (results as unknown as { rows: unknown[] }[])[1] ?? { rows: [] });
    expect(rows).to.have.length(1);
  });

  it("changes, replaces and drops only its own objects", async () => {
    await scene.client.query(
      "CREATE INDEX mine ON sales.lines (state); CREATE TABLE sales.theirs (id int); CREATE INDEX lines_done_idx ON sales.theirs (id)",
    );
    const moved: readonly TableIndex[] = [{ fields: ["day"], where: "done", type: "btree" }];
    const without = definitionsOf(customers, lines({ indexes: moved, uniques: [] }));
    const wider = lines({ indexes: moved });
    const changed = definitionsOf(customers, {
      ...wider,
      fields: wider.fields.map((one) => (one.name === "number" ? { ...one, type: "BigInt" } : one)),
    });

    expect(await scene.apply(without)).to.match(/lines_customer_id_number_key.*lines_address_svc_idx/s);
    expect(await scene.apply(changed)).to.match(/lines_address_svc_idx .* no longer in the mapping file/);
    expect(await scene.apply(changed, true)).to.equal("done");

    expect((await indexesOf()).filter((one) => / lines_day_| mine /.test(one))).to.deep.equal([
      "CREATE INDEX lines_day_svc_idx ON sales.lines USING btree (day) WHERE done",
      "CREATE INDEX mine ON sales.lines USING btree (state)",
    ]);
    const plan = await scene.plan(changed);
    expect(titlesOf(plan)).to.deep.equal([]);
    expect(plan.leftAlone).to.have.length(1);
  });

  it("makes an index again that is dropped together with a column that is made again", async () => {
    await scene.migrate(items("String"));
    await scene.client.query("INSERT INTO sales.items (at, area) VALUES ('12', 'a')");

    const { losses } = await scene.plan(items("Int"));
    expect(losses).to.have.length(1);
    expect(losses[0]).to.match(/The `at` column .* would be dropped and recreated/);
    await scene.migrate(items("Int"), true);

    expect((await indexesOf()).filter((one) => one.includes("items_"))).to.deep.equal([
      "CREATE INDEX items_area_svc_idx ON sales.items USING btree (area) WHERE (at IS NOT NULL)",
      "CREATE INDEX items_at_svc_idx ON sales.items USING btree (at)",
      "CREATE UNIQUE INDEX items_pkey ON sales.items USING btree (id)",
    ]);
    expect(await scene.record()).to.include("sales.items index items_area_svc_idx");
    expect(titlesOf(await scene.plan(items("Int")))).to.deep.equal([]);
  });

  it("names an index of others that is dropped together with a column that is made again, also of an empty table", async () => {
    await scene.migrate(items("String"), true);
    await scene.client.query(`DELETE FROM sales.items; DROP INDEX sales.items_area_svc_idx;
      CREATE INDEX items_area_svc_idx ON sales.items (area) WHERE at <> ''`);

    expect(await scene.apply(items("Int"))).to.match(
      /would lose data[^]*The index items_area_svc_idx .* was not made by svc, and would go together with a column/,
    );
  });

  it("refuses an index of others under the name that it would use", async () => {
    await scene.client.query("CREATE INDEX lines_done_svc_idx ON sales.lines (done)");
    const wanted = lines({ indexes: [{ fields: ["done"], type: "btree" }] });

    expect(await scene.apply(definitionsOf(customers, wanted), true)).to.match(
      /The index lines_done_svc_idx of the table sales.lines is .*svc did not make it/,
    );
  });
});

describe("applyMigration beside tables that no mapping file can name", () => {
  const scene = sceneOfSuite();

  it("leaves them unchanged, in the schema public and in another one", async () => {
    await scene.client.query(
      'CREATE TABLE "dotted.name" (id int); CREATE SCHEMA sales; CREATE TABLE sales."dotted.name" (id int)',
    );

    await scene.migrate(definitionsOf(customers));
    await scene.migrate(items("String"));

    expect(titlesOf(await scene.plan(items("String")))).to.deep.equal([]);
  });
});

describe("applyMigration beside foreign keys into a schema without a managed table", () => {
  const scene = sceneOfSuite();

  it("leaves those of others alone", async () => {
    await scene.migrate(definitionsOf(customers, lines()));
    await scene.client.query(`CREATE SCHEMA auth; CREATE TABLE auth.users (id int PRIMARY KEY);
      CREATE TABLE sales.profiles (id int PRIMARY KEY REFERENCES auth.users);
      ALTER TABLE sales.lines ADD CONSTRAINT mine FOREIGN KEY (number) REFERENCES auth.users`);
    const fields = [...lines().fields, field("note", "String", { isOptional: true })];

    const { steps, leftAlone } = await scene.plan(definitionsOf(customers, lines({ fields })));

    expect(steps.map(({ sql }) => sql)).to.include('ALTER TABLE "sales"."lines" ADD COLUMN     "note" TEXT');
    expect(leftAlone.join("\n")).to.match(/The foreign key mine of the table sales.lines/);
  });

  it("drops its own when neither the reference nor its resource is in the mapping files", async () => {
    const alone = [field("customer_id", "Int", { isKey: true }), ...lines().fields.slice(1)];
    expect(await scene.record()).to.include("sales.lines constraint lines_customer_id_fkey");

    await scene.migrate(definitionsOf(lines({ fields: alone })), true);

    expect(await scene.record()).to.not.include("sales.lines constraint lines_customer_id_fkey");
    await scene.migrate(definitionsOf(customers, lines()));
  });

  it("does not change its own, of a table that the mapping files no longer have", async () => {
    await scene.migrate(items("String"));

    expect(await scene.record()).to.include("sales.items table sales.items");
  });
});

/** Orders with these fields, in the schemas public and sales. */
function both(ours: readonly Field[], sales: readonly Field[]): Definitions {
  return definitionsOf(
    definition({ name: "orders", fields: ours }),
    definition({ name: "sold", table: "sales.orders", fields: sales }),
  );
}

/** Two columns of one name, of which a text has the length. */
function times(type: FieldType, length: number): Definitions {
  return both([field("at", type)], [field("at", "String", { length })]);
}

function price(precision: number, scale: number, length = 9): readonly Field[] {
  return [field("amount", "Decimal", { precision, scale }), field("code", "String", { length })];
}

describe("applyMigration of tables of one name in two schemas", () => {
  let scene: Scene;

  beforeEach(async () => (scene = await openScene()));
  afterEach(() => scene.close());

  const insert = (table: string, amount: string): Promise<unknown> =>
    scene.client.query(`INSERT INTO ${table} (amount, code) VALUES (${amount}, 'abc')`);
  const amounts = async (): Promise<readonly unknown[]> =>
    Promise.all(["orders", "sales.orders"].map(async (table) => (await scene.columns(table))["amount"]));

  it("names the loss in the one, also where a change by hand of the other stays", async () => {
    await scene.migrate(both(price(12, 4), price(12, 4)));
    await insert("orders", "1.2345");
    await insert("sales.orders", "1.2345");
    await scene.client.query("ALTER TABLE sales.orders ALTER amount TYPE numeric(14,6)");
    const narrower = both(price(12, 2), price(12, 4));

    expect(await scene.apply(both(price(12, 4), price(12, 4)))).to.equal("done");
    expect(await scene.apply(narrower)).to.match(/would lose data.*`amount` on the `orders` table/s);
    expect(await amounts()).to.deep.equal(["numeric(12,4)", "numeric(14,6)"]);
    expect(await scene.apply(narrower, true)).to.equal("done");
    expect(await amounts()).to.deep.equal(["numeric(12,2)", "numeric(14,6)"]);
  });

  it("names the loss in the one, also where the type of the other changes without one", async () => {
    await scene.migrate(times("DateTime", 9));
    await scene.client.query(
      "INSERT INTO orders (at) VALUES (now()); INSERT INTO sales.orders (at) VALUES ('abc')",
    );

    expect(await scene.apply(times("DateTime", 5))).to.equal("done");
    expect(await scene.apply(times("Date", 3))).to.match(/would lose data.*`at` on the `orders` table/s);
  });

  it("ignores NULLs in the one where NOT NULL was removed by hand", async () => {
    const required = [field("note", "String")];
    await scene.migrate(both([field("note", "String", { isOptional: true })], required));
    await scene.client.query(
      "ALTER TABLE sales.orders ALTER note DROP NOT NULL; INSERT INTO sales.orders DEFAULT VALUES",
    );

    expect(await scene.apply(both(required, required))).to.equal("done");
  });

  it("drops an index of the one, and keeps that of the same name of the other", async () => {
    const code = field("code", "String");
    const indexed = [{ ...code, isIndexed: true }];
    await scene.migrate(both(indexed, indexed));

    const { losses } = await scene.plan(both(indexed, [code]));
    await scene.migrate(both(indexed, [code]), true);

    expect(losses.join("\n")).to.match(/^The index orders_code_idx of the table sales\.orders [^\n]*$/);
    expect((await scene.record()).filter((line) => line.includes(" index orders_code_idx"))).to.deep.equal([
      "orders index orders_code_idx",
    ]);
    expect((await scene.plan(both(indexed, [code]))).steps).to.deep.equal([]);
  });

  it("counts the values in the one that changes", async () => {
    await scene.migrate(both(price(12, 2), price(12, 2)));
    await insert("orders", "1");
    await insert("sales.orders", "123456");
    const tooNarrow =
      /^The existing rows .*\n  - The column amount of the table sales\.orders is to hold at most 3 digits .* 1 row has [^\n]*$/;

    expect(await scene.apply(both(price(12, 2), price(5, 2)), true)).to.match(tooNarrow);
    expect(await scene.apply(both(price(5, 2), price(5, 2)), true)).to.match(tooNarrow);
    expect(await scene.apply(both(price(5, 2), price(12, 2)), true)).to.equal("done");
    expect(await scene.apply(both(price(5, 2, 3), price(12, 2, 3)))).to.equal("done");
  });
});
