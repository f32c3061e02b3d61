import { expect } from "chai";
import type { Definitions } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import {
  market,
  openScene,
  sceneOfSuite,
  without,
  withField,
  type Scene,
} from "../support/migration-scene.ts";

const dropped = without("amount");
const retyped = withField("amount", { precision: 14 });
const text = withField("amount", { type: "String" });

const stay =
  "CREATE FUNCTION stay() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END'; CREATE TRIGGER";

/** Objects of others on a column, their names in the plan, and how to remove them. */
const blocking: readonly {
  readonly sql: string;
  readonly object: string;
  readonly undo: string;
  /** Default: a drop and a retype. */
  readonly refuses?: readonly Definitions[];
}[] = [
  {
    sql: "CREATE SCHEMA far; CREATE VIEW far.seen AS SELECT amount FROM orders",
    object: "view far.seen",
    undo: "DROP VIEW far.seen",
  },
  {
    sql: 'CREATE MATERIALIZED VIEW "Kept" AS SELECT amount FROM orders',
    object: 'materialized view public."Kept"',
    undo: 'DROP MATERIALIZED VIEW "Kept"',
  },
  {
    sql: "CREATE RULE stays AS ON DELETE TO orders WHERE old.amount < 0 DO INSTEAD NOTHING",
    object: "rule stays on public.orders",
    undo: "DROP RULE stays ON orders",
  },
  {
    sql: "CREATE TABLE log (amount numeric); CREATE RULE logs AS ON INSERT TO log WHERE new.amount = (SELECT max(amount) FROM orders) DO INSTEAD NOTHING",
    object: "rule logs on public.log",
    undo: "DROP TABLE log",
  },
  {
    sql: `${stay} looks BEFORE UPDATE OF amount ON orders FOR EACH ROW EXECUTE FUNCTION stay()`,
    object: "trigger looks on public.orders",
    undo: "DROP TRIGGER looks ON orders",
  },
  {
    sql: `${stay} looks BEFORE UPDATE ON orders FOR EACH ROW WHEN (new.amount > 1) EXECUTE FUNCTION stay()`,
    object: "trigger looks on public.orders",
    undo: "DROP TRIGGER looks ON orders",
  },
  {
    sql: "ALTER TABLE orders ADD twice numeric GENERATED ALWAYS AS (amount * 2) STORED",
    object: "generated column public.orders.twice",
    undo: "ALTER TABLE orders DROP twice",
  },
  {
    sql: "CREATE UNIQUE INDEX once ON orders (amount); CREATE TABLE letters (amount numeric(12,2) CONSTRAINT mine REFERENCES orders (amount))",
    object: "foreign key mine on public.letters",
    undo: "DROP TABLE letters; DROP INDEX once",
    refuses: [dropped, text],
  },
  {
    sql: "CREATE POLICY sees ON orders USING (amount > 1)",
    object: "policy sees on public.orders",
    undo: "DROP POLICY sees ON orders",
  },
  {
    sql: "CREATE PUBLICATION copies FOR TABLE orders (id, amount)",
    object: "publication copies",
    undo: "DROP PUBLICATION copies",
  },
  {
    sql: "CREATE PUBLICATION copies FOR TABLE orders WHERE (amount > 1)",
    object: "publication copies",
    undo: "DROP PUBLICATION copies",
  },
  {
    sql: "CREATE FUNCTION total() RETURNS numeric BEGIN ATOMIC SELECT sum(amount) FROM orders; END",
    object: "function public.total()",
    undo: "DROP FUNCTION total()",
  },
  {
    sql: "CREATE TABLE child () INHERITS (orders); CREATE VIEW below AS SELECT amount FROM child",
    object: "view public.below",
    undo: "DROP VIEW below",
  },
  {
    sql: "CREATE TABLE whole (orders orders[])",
    object: "column public.whole.orders",
    undo: "DROP TABLE whole",
    refuses: [retyped],
  },
];

/** Returns letters with such a key, which the database does not fill. */
function lettersOf(type: "Int" | "BigInt"): Definitions {
  return definitionsOf(definition({ name: "letters", fields: [field("id", type, { isKey: true })] }));
}

describe("planMigration, where something depends on a column that is dropped or retyped", () => {
  const scene = sceneOfSuite(market);

  for (const { sql, object, undo, refuses = [dropped, retyped] } of blocking) {
    it(`names the ${object} as the obstacle, and only while it exists: ${sql}`, async () => {
      await scene.client.query(`${sql}; INSERT INTO customers (name) VALUES ('Ann')`);
      try {
        for (const wanted of refuses) {
          const { impossible } = await scene.plan(wanted);
          expect(impossible).to.have.length(1);
          expect(impossible[0]).to.match(/depends on the column amount of the table orders, .* by hand/);
          expect(impossible[0]?.startsWith(`The ${object} depends on `), impossible[0]).to.equal(true);
          expect(await scene.apply(wanted, true)).to.match(/do not allow the migration; nothing was changed/);
        }
      } finally {
        await scene.client.query(undo);
        await scene.client.query("DROP FUNCTION IF EXISTS stay(); DROP TABLE IF EXISTS child");
      }
      for (const wanted of refuses) expect((await scene.plan(wanted)).impossible).to.deep.equal([]);
    });
  }

  it("names nothing that follows the change, and nothing on other columns", async () => {
    await scene.client.query(`
      CREATE VIEW other AS SELECT user_id FROM orders;
      CREATE STATISTICS counted ON amount, user_id FROM orders;
      CREATE INDEX rounded ON orders (round(amount)) WHERE amount > 1;
      ALTER TABLE orders ADD CONSTRAINT positive CHECK (amount > 0 AND user_id > 0);
      CREATE UNIQUE INDEX once ON orders (amount);
      CREATE TABLE letters (amount numeric(12,2) REFERENCES orders (amount))`);

    expect(await scene.apply(retyped)).to.equal("done");
    await scene.client.query("DROP TABLE letters");
    expect(await scene.apply(dropped, true)).to.equal("done");
  });

  it("names no column that a child keeps as its own", async () => {
    await scene.migrate(market);
    await scene.client.query(
      "CREATE TABLE own (amount numeric(12,2) NOT NULL) INHERITS (orders); CREATE VIEW kept AS SELECT amount FROM own",
    );

    expect((await scene.plan(retyped)).impossible.join("\n")).to.match(/^The view public\.kept depends on/);
    expect(await scene.apply(dropped, true)).to.equal("done");

    await scene.client.query("DROP TABLE own CASCADE");
  });

  it("names the partition key of a foreign table", async () => {
    await scene.client.query("CREATE TABLE letters (id int PRIMARY KEY) PARTITION BY RANGE (id)");
    expect(await scene.apply(lettersOf("Int"))).to.equal("done");

    expect((await scene.plan(lettersOf("BigInt"))).impossible.join("\n")).to.match(
      /^The partition key of the table public\.letters depends on the column id of the table letters, whose type would change/m,
    );
  });

  it("accepts the whole change made by hand", async () => {
    await scene.migrate(market);
    await scene.client.query("CREATE VIEW seen AS SELECT amount FROM orders");
    await scene.client.query(
      'DROP VIEW seen; ALTER TABLE "orders" ALTER COLUMN "amount" SET DATA TYPE DECIMAL(14,2); CREATE VIEW seen AS SELECT amount FROM orders',
    );

    expect(await scene.apply(retyped)).to.equal("done");
  });
});

/** Returns notes in a schema of their own, under such a key. */
function notes(type: "Int" | "Uuid"): Definitions {
  const kind = type === "Int" ? "autoincrement" : "uuid";
  const key = field("id", type, { isKey: true, default: { kind } });
  return definitionsOf(definition({ name: "notes", table: "sales.notes", fields: [key] }));
}

describe("planMigration, where something depends on a key that is dropped", () => {
  let scene: Scene;

  beforeEach(async () => {
    scene = await openScene(market);
  });

  afterEach(() => scene.close());

  it("names a foreign key made by others on a unique index", async () => {
    await scene.client.query(
      "CREATE TABLE letters (reference text CONSTRAINT mine REFERENCES orders (reference))",
    );

    const { impossible } = await scene.plan(withField("reference", { isUnique: false }));

    expect(impossible.join("\n")).to.match(
      /^The foreign key mine on public\.letters depends on the index orders_reference_key, which would be dropped: [^\n]*$/,
    );
  });

  it("names a foreign key and a counter made by others once each where the key is made again", async () => {
    await scene.migrate(notes("Int"));
    await scene.client.query(
      "CREATE TABLE letters (id int DEFAULT nextval('sales.notes_id_seq'), note int CONSTRAINT mine REFERENCES sales.notes)",
    );

    const { impossible } = await scene.plan(notes("Uuid"));

    expect(impossible.map((line) => line.slice(0, line.indexOf(" depends on ")))).to.deep.equal([
      "The column public.letters.id",
      "The foreign key mine on public.letters",
    ]);
  });

  it("drops a foreign key of its own before its target column", async () => {
    const code = field("code", "String", { isUnique: true, length: 8 });
    const goods = { resource: "goods", field: "code", as: "goods", onDelete: "restrict" } as const;
    const sold = field("code", "String", { length: 8, references: goods });
    const before = definitionsOf(
      definition({ name: "goods", fields: [code] }),
      definition({ name: "sold", fields: [sold] }),
    );
    const after = definitionsOf(
      definition({ name: "goods", fields: [] }),
      definition({ name: "sold", fields: [field("code", "String", { length: 8 })] }),
    );
    expect(await scene.apply(before)).to.equal("done");
    expect(await scene.record()).to.include("sold constraint sold_code_fkey");

    expect(await scene.apply(after, true)).to.equal("done");
  });
});
