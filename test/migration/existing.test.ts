import { expect } from "chai";
import { type Client, Pool } from "pg";
import { migrationDue } from "../../src/app/migration-due.ts";
import type { Definition, Definitions, Field } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field, keyField } from "../support/definitions.ts";
import { openScene, type Scene } from "../support/migration-scene.ts";
import { customers, orders, withFields } from "../support/shop.ts";

function unmanaged(name: string): Definition {
  return definition({ name, isManaged: false, fields: [] });
}

/** Customers whose name may be null and has at most this many characters. */
function named(length: number, ...more: readonly Field[]): Definitions {
  const name = field("name", "String", { length, isOptional: true });
  return definitionsOf({ ...customers, fields: [keyField(), name, ...more] });
}

describe("applyMigration beside tables that exist", () => {
  let scene: Scene;
  let client: Client;

  beforeEach(async () => {
    scene = await openScene();
    client = scene.client;
  });

  afterEach(() => scene.close());

  it("changes only managed tables and types, and leads foreign keys to the others", async () => {
    await client.query(`
      CREATE TYPE mood AS ENUM ('good');
      CREATE TABLE customers (id serial PRIMARY KEY, name varchar(9) NOT NULL, extra mood, CHECK (name <> ''));
      CREATE TABLE letters (id serial PRIMARY KEY, customer_id int REFERENCES customers, kind "char");
      CREATE TABLE "_prisma_migrations" (id int);
      CREATE SCHEMA other; CREATE TABLE other.orders (id int);
      CREATE VIEW names AS SELECT name FROM customers`);
    const before = await scene.columns("customers");
    const existing = definitionsOf({ ...customers, isManaged: false }, orders);

    await scene.migrate(existing);

    expect(await scene.columns("customers")).to.deep.equal(before);
    expect(await scene.columns("letters")).to.include({ kind: '"char"' });
    expect(await scene.columns("other.orders")).to.deep.equal({ id: "integer" });
    expect(
      await scene.rows(
        "SELECT confrelid::regclass::text AS target FROM pg_constraint WHERE conrelid = 'orders'::regclass AND contype = 'f'",
      ),
    ).to.deep.equal([{ target: "customers" }]);
    expect((await scene.plan(existing)).steps).to.deep.equal([]);
  });

  it("counts a foreign key to a partitioned table as its own, with those to the partitions", async () => {
    await client.query(`
      CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL) PARTITION BY RANGE (id);
      CREATE TABLE customers_rest PARTITION OF customers DEFAULT`);
    const existing = definitionsOf({ ...customers, isManaged: false }, orders);

    await scene.migrate(existing);

    const { steps, leftAlone } = await scene.plan(existing);
    expect([steps, leftAlone]).to.deep.equal([[], []]);
  });

  it("refuses to change a table that it did not make, unless that is allowed", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, extra text)");

    expect(await scene.apply(definitionsOf(customers))).to.match(
      /The table customers exists and was not made by/,
    );
    expect(await scene.columns("customers")).to.not.have.property("name");
    await scene.migrate(definitionsOf(customers), true);

    expect(await scene.columns("customers")).to.have.keys(["id", "extra", "name"]);
  });

  it("changes a table of others only when that is allowed, also once it is in use", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name varchar(20))");
    expect(await scene.apply(named(20))).to.equal("done");
    const was = await scene.columns("customers");

    for (const next of [named(40), named(20, field("city", "String", { isOptional: true }))]) {
      expect(await scene.apply(next)).to.match(/The table customers exists and was not made by/);
      expect(await scene.columns("customers")).to.deep.equal(was);
    }
    expect(await scene.apply(named(40), true)).to.equal("done");
    expect(await scene.apply(named(40))).to.equal("done");
  });

  for (const [what, file] of [
    [
      "a check of values, which may refuse what others write",
      withFields(customers, [field("status", "Enum", { values: ["open", "paid"] })]),
    ],
    [
      "an index",
      {
        ...withFields(customers, [field("status", "String")]),
        indexes: [{ fields: ["status"], type: "btree" }],
      },
    ],
  ] as const) {
    it(`gives a table of others ${what}, only when that is allowed, and reports it once`, async () => {
      await client.query("CREATE TABLE customers (id serial PRIMARY KEY, status text NOT NULL)");
      const definitions = definitionsOf(file);
      const was = await scene.shape();

      expect((await scene.plan(definitions)).losses).to.deep.equal([
        'The table customers exists and was not made by this service, which would change it. Say "managed: false" in its mapping file to leave it as it is.',
      ]);
      expect(await scene.apply(definitions)).to.match(/--allow-destructive/);
      expect(await scene.shape()).to.equal(was);
      expect(await scene.apply(definitions, true)).to.equal("done");

      expect(await scene.shape()).to.not.equal(was);
      expect(await scene.plan(definitions)).to.deep.include({ steps: [], losses: [] });
    });
  }

  it("never makes a column of others again, whose values would be lost", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL)");
    expect(await scene.apply(definitionsOf(customers))).to.equal("done");
    await client.query("INSERT INTO customers (name) VALUES ('12')");
    const numbered = withFields(customers, [field("name", "Int")]);

    expect(await scene.apply(definitionsOf(numbered), true)).to.match(
      /do not allow the migration[^]*The column name of the table customers .* svc did not make it/,
    );
    expect(await scene.rows("SELECT name FROM customers")).to.deep.equal([{ name: "12" }]);
  });

  it("keeps the counter of a table of others when its key no longer counts", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL)");
    expect(await scene.apply(definitionsOf(customers))).to.equal("done");
    const { default: _, ...key } = customers.key;
    const uncounted = definitionsOf({ ...customers, fields: [key, field("name", "String")], key });

    expect(await scene.apply(uncounted, true)).to.equal("done");

    expect(
      await scene.rows(`SELECT pg_get_serial_sequence('customers', 'id') AS counter, column_default
        FROM information_schema.columns WHERE table_name = 'customers' AND column_name = 'id'`),
    ).to.deep.equal([{ counter: "public.customers_id_seq", column_default: null }]);
    expect((await scene.plan(uncounted)).steps).to.deep.equal([]);
  });

  it("adopts a table that matches the mapping file", async () => {
    await client.query("CREATE TABLE customers (id serial PRIMARY KEY, name text NOT NULL)");

    const { steps, notes } = await scene.migrate(definitionsOf(customers));

    expect(notes).to.deep.equal([
      "The table customers already exists as the mapping file has it, and is used. svc did not make it, and will never drop it.",
    ]);
    const titles = steps.map(({ title }) => title).filter((title) => !title.startsWith("core migration"));
    expect(titles).to.deep.equal([
      "customers: record what svc made",
      "customers: capture trigger on customers",
    ]);
  });

  it("uses a primary key of another name, and refuses one of another column", async () => {
    await client.query(`
      CREATE TABLE customers (id serial CONSTRAINT chosen PRIMARY KEY, name text NOT NULL);
      CREATE TABLE cards (id serial, number int CONSTRAINT numbered PRIMARY KEY)`);
    const cards = definition({ name: "cards", fields: [field("number", "Int")] });

    expect(await scene.apply(definitionsOf(customers))).to.equal("done");
    expect(await scene.apply(definitionsOf(customers, cards), true)).to.match(
      /do not allow the migration.*The primary key numbered of the table cards/s,
    );
    expect((await scene.plan(definitionsOf(customers))).steps).to.deep.equal([]);
    expect(
      await scene.rows(
        "SELECT conname FROM pg_constraint WHERE contype = 'p' AND conrelid = 'customers'::regclass",
      ),
    ).to.deep.equal([{ conname: "chosen" }]);
  });

  it("lists every difference to existing tables", async () => {
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

    const message = await scene.apply(
      definitionsOf({ ...customers, isManaged: false }, lines, {
        ...orders,
        fields: [keyField()],
        isManaged: false,
      }),
    );

    expect(message.split("\n")).to.deep.equal([
      "The mapping files do not fit the database:",
      '  resources/customers.yaml: name: there is no table "customers"; did you mean "customer"?',
      '  resources/lines.yaml: fields.amuont: there is no column "amuont"; did you mean "amount"? (the columns are order_id, line, amount, tags)',
      "  resources/lines.yaml: fields.amount: the column is numeric, which is Decimal, not Float",
      '  resources/lines.yaml: fields.tags: the column is text[], a list: say "list: true"',
      "  resources/lines.yaml: fields.line: the column is integer, which is Int or BigInt, not String",
      '  resources/lines.yaml: fields.order_id: the key of "lines" has several columns (order_id, line): say "id: true" at the field of each',
      '  resources/orders.yaml: name: "orders" is a view, whose changes cannot be captured; use the table beneath it, or no triggers',
    ]);
  });

  it("reports tables whose key is not the one of the mapping file", async () => {
    await client.query(`
      CREATE TABLE pairs (a int, b int, PRIMARY KEY (a, b));
      CREATE TABLE keyless (id int);
      CREATE TABLE others (id int, number int PRIMARY KEY);
      CREATE TABLE uniques (a int, b int, id int NOT NULL UNIQUE, PRIMARY KEY (a, b));
      CREATE TABLE nullable (id int UNIQUE)`);
    const message = await scene.apply(
      definitionsOf(
        unmanaged("pairs"),
        unmanaged("keyless"),
        unmanaged("others"),
        unmanaged("uniques"),
        unmanaged("nullable"),
        { ...unmanaged("silent"), table: "nullable", triggers: [] },
      ),
    );

    expect(message.split("\n").slice(1)).to.deep.equal([
      '  resources/pairs.yaml: fields.id: there is no column "id" (the columns are a, b)',
      '  resources/pairs.yaml: fields.id: the key of "pairs" has several columns (a, b): say "id: true" at the field of each',
      '  resources/keyless.yaml: fields.id: the table "keyless" has no primary key, and its column "id" is not unique by itself',
      '  resources/others.yaml: fields.id: the primary key of "others" is "number", and its column "id" is not unique by itself',
      '  resources/nullable.yaml: fields.id: the column "id" of the key may be null, and no program could write such a row any more: make it NOT NULL, or say "triggers: []"',
    ]);
  });

  it("requires a unique index where others refer to a field, and notes where only the file says unique", async () => {
    await client.query(`
      CREATE TABLE owners (id int PRIMARY KEY, code text NOT NULL, email text NOT NULL);
      CREATE UNIQUE INDEX ON owners (code) WHERE id > 0;
      CREATE TABLE pets (id int PRIMARY KEY, code text NOT NULL)`);
    const owners = definition({
      name: "owners",
      isManaged: false,
      supportsCreate: false,
      fields: [
        keyField(),
        field("code", "String", { isUnique: true }),
        field("email", "String", { isUnique: true }),
      ],
    });
    const code = field("code", "String", {
      references: { resource: "owners", field: "code", as: "owner", onDelete: "noAction" },
    });
    const pets = definition({ name: "pets", isManaged: false, supportsCreate: false, fields: [code] });

    expect((await scene.apply(definitionsOf(owners, pets))).split("\n").slice(1)).to.deep.equal([
      '  resources/owners.yaml: fields.code: no unique index of "owners" has only the column code, and "pets" refers to it: make such an index, or remove the reference',
    ]);
    await client.query("CREATE UNIQUE INDEX ON owners (code)");
    expect((await scene.plan(definitionsOf(owners, pets))).notes).to.deep.equal([
      'resources/owners.yaml: fields.email: no unique index of "owners" has only the column email: requests at the same moment may store a value twice.',
    ]);
  });

  it("lists rules that read missing tables and columns", async () => {
    await client.query(
      "CREATE TABLE countries (code text); CREATE VIEW cities AS SELECT code AS name FROM countries",
    );
    const looking = {
      ...customers,
      createRules: { name: "exists:countries,code|exists:cities", "name.code": "exists:countries" },
      updateRules: { name: ["exists:countries,cod", { unique: "planets" }, "unique:buyers,id"] },
    };
    const lookups = definitionsOf(looking, { ...orders, table: "buyers" });
    const pool = new Pool({ connectionString: scene.url });
    // Dropping the database may cut a connection that is about to end.
    pool.on("error", () => undefined);
    const due = (): Promise<unknown> =>
      migrationDue({ database: { pool }, definitions: lookups }).catch(String);

    const message = await scene.apply(lookups);

    expect(message.split("\n")).to.deep.equal([
      "The mapping files do not fit the database:",
      '  resources/customers.yaml: updateRules.name: exists: the table "countries" has no column "cod" (the columns are code)',
      '  resources/customers.yaml: updateRules.name: unique: there is neither a resource nor a table "planets"',
    ]);
    expect(await due()).to.equal(`OperatorError: ${message}`);
    await client.query("ALTER TABLE countries ADD cod text; CREATE TABLE planets (name text)");
    expect(await due()).to.include.members(["customers: not installed yet", "orders: not installed yet"]);
    await pool.end();
  });

  it("notes causes of failure for single requests on an existing table", async () => {
    await client.query(
      "CREATE TABLE customers (id serial PRIMARY KEY, name text, city text NOT NULL, at date NOT NULL DEFAULT now())",
    );

    const { notes } = await scene.migrate(definitionsOf({ ...customers, isManaged: false }));

    expect(notes).to.have.length(2);
    expect(notes[0]).to.match(/fields\.name: the column may be null/);
    expect(notes[1]).to.match(/"city" must have a value/);
  });

  it("notes values that an enum of others no longer has", async () => {
    await client.query(`
      CREATE TYPE mood AS ENUM ('good', 'bad');
      CREATE TABLE customers (id serial PRIMARY KEY, mood mood NOT NULL, moods mood[] NOT NULL)`);
    const values = ["good", "bad"];
    const fields = [
      keyField(),
      field("mood", "Enum", { values }),
      field("moods", "Enum", { values, isList: true }),
    ];
    const existing = definitionsOf({ ...customers, isManaged: false, fields });
    expect((await scene.migrate(existing)).notes).to.deep.equal([]);
    await client.query("ALTER TYPE mood ADD VALUE 'grand'; ALTER TYPE mood RENAME VALUE 'bad' TO 'sad'");

    const { notes } = await scene.plan(existing);

    expect(notes).to.have.length(2);
    expect(notes[0]).to.match(/fields\.mood\.values: the enum of the column has no bad: /);
  });

  it("finds required values beneath domains", async () => {
    await client.query(`
      CREATE DOMAIN filled AS text NOT NULL; CREATE DOMAIN town AS filled;
      CREATE TABLE customers (id serial PRIMARY KEY, name town, city town)`);

    const { notes } = await scene.migrate(definitionsOf({ ...customers, isManaged: false }));

    expect(notes).to.have.length(1);
    expect(notes[0]).to.match(/"city" must have a value/);
  });

  it("notes a key that neither the table gives nor, without a rule for it, the API", async () => {
    await client.query("CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL)");
    const existing = { ...customers, isManaged: false };

    const { notes } = await scene.migrate(definitionsOf(existing));
    const withRule = definitionsOf({ ...existing, createRules: { id: "required|integer" } });
    const withoutCreate = definitionsOf({ ...existing, supportsCreate: false });

    expect(notes).to.deep.equal([
      "resources/customers.yaml: fields.id: the column has no default: no record can be created unless `createRules` names the field.",
    ]);
    expect((await scene.plan(withRule)).notes).to.deep.equal([]);
    expect((await scene.plan(withoutCreate)).notes).to.deep.equal([]);
  });
});
