import { expect } from "chai";
import type { PoolClient } from "pg";
import { createTextSql, type TextSql } from "../../src/db/text-sql.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { always, type Condition } from "../../src/querying/condition.ts";
import { linkOf } from "../../src/querying/links.ts";
import { reversed, type OrderItem } from "../../src/querying/order.ts";
import { readCountedPage, readPositions, readRecords, totalOrder } from "../../src/querying/read.ts";
import { selectionOf, type RelatedNeed, type SelectionStatement } from "../../src/querying/selection.ts";
import { databaseOfSuite } from "../support/own-database.ts";
import { definition, definitionsOf, field } from "../support/definitions.ts";
import { createExplainingSql, type Plan, type PlanMode } from "../support/plans.ts";

const rows = 200_000;
/** Number of the records with a value; later records have none. */
const sold = 180_000;
/** Number of the records with each price, and of those without one. */
const ties = 200;
const take = 51;

const definitions = definitionsOf(
  definition({ name: "makers", fields: [field("name", "String")] }),
  definition({
    name: "wares",
    fields: [
      field("made_at", "DateTime", { isIndexed: true }),
      field("price", "Int", { isIndexed: true, isOptional: true }),
      field("sold", "Int", { isOptional: true }),
      field("maker_id", "Int", {
        references: { resource: "makers", field: "id", as: "maker", onDelete: "restrict" },
      }),
    ],
    indexes: [
      { fields: ["sold", "id"], type: "btree" },
      { fields: ["maker_id", "sold", "id"], type: "btree" },
    ],
  }),
  definition({
    name: "reviews",
    fields: [
      field("stars", "Int"),
      field("ware_id", "Int", {
        references: { resource: "wares", field: "id", as: "ware", onDelete: "cascade" },
      }),
    ],
  }),
);
const wares = definitions.get("wares") as Definition;

/**
 * As the migration makes them. Statistics of `price` are of all rows: a sample of 30,000 may have
 * so many of those without a price that the planner goes through the key instead of the index.
 */
const tables = `
  CREATE TABLE makers (id serial PRIMARY KEY, name text NOT NULL);
  CREATE TABLE wares (id serial PRIMARY KEY, made_at timestamptz(3) NOT NULL, price int, sold int, maker_id int NOT NULL);
  CREATE TABLE reviews (id serial PRIMARY KEY, stars int NOT NULL, ware_id int NOT NULL);
  INSERT INTO makers (name) SELECT 'maker ' || n FROM generate_series(1, 1000) AS n;
  INSERT INTO wares (made_at, price, sold, maker_id)
    SELECT '2020-01-01'::timestamptz + n * interval '1 minute', nullif(n % ${rows / ties}, 0), CASE WHEN n <= ${sold} THEN n % 1000 END, 1 + n % 10
    FROM generate_series(1, ${rows}) AS n;
  INSERT INTO reviews (stars, ware_id) SELECT n % 5, n * 5 FROM generate_series(1, ${rows / 5}) AS n;
  CREATE INDEX ON wares (made_at);
  CREATE INDEX ON wares (price);
  CREATE INDEX ON wares (maker_id);
  CREATE INDEX ON wares (sold, id);
  CREATE INDEX ON wares (maker_id, sold, id);
  CREATE INDEX ON reviews (ware_id);
  ALTER TABLE wares ADD FOREIGN KEY (maker_id) REFERENCES makers;
  ALTER TABLE reviews ADD FOREIGN KEY (ware_id) REFERENCES wares;
  ALTER TABLE wares ALTER price SET STATISTICS 10000, ALTER sold SET STATISTICS 10000;
  ANALYZE`;

const item = (name: string, direction: "asc" | "desc"): OrderItem => ({
  links: [],
  field: wares.fields.find((one) => one.name === name) ?? wares.key,
  direction,
  nulls: "last",
});

describe(`the plans of lists at the end of ${rows} records`, function () {
  // It takes 3 s on two idle cores.
  this.timeout(300_000);

  const database = databaseOfSuite({ poolSize: 1, queryTimeoutMs: 300_000 });
  let client: PoolClient;

  before(async () => {
    client = await database.pool.connect();
    await client.query("SET statement_timeout = 0");
    await client.query(tables);
  });

  after(async () => {
    client.release();
  });

  /** Returns the plans of the statements that `work` runs. */
  async function plansOf(mode: PlanMode, work: (sql: TextSql) => Promise<unknown>): Promise<readonly Plan[]> {
    const plans: Plan[] = [];
    const explain = createExplainingSql({ client, settings: "", mode, note: (plan) => plans.push(plan) });
    const plain = createTextSql(client, () => undefined);
    await work(async (text, values) => {
      await explain(text, values);
      return plain(text, values);
    });
    return plans;
  }

  const all: SelectionStatement = selectionOf(wares, definitions, { fields: undefined, related: new Map() });

  /** Reads the last page of an order, by its cursor: 51 records. Returns the rows that it read. */
  async function lastPage(
    mode: PlanMode,
    sort: readonly OrderItem[],
    skip = rows - take - 1,
  ): Promise<Plan | undefined> {
    const order = totalOrder(sort, wares);
    const [at] = await readPositions(
      createTextSql(client, () => undefined),
      all,
      {
        condition: always,
        order,
        skip,
        take: 1,
      },
    );
    const after = { values: at?.position ?? [], isInclusive: false };
    const plans = await plansOf(mode, async (sql) => {
      const found = await readPositions(sql, all, { condition: always, order, take, after });
      expect(found).to.have.lengthOf(take);
    });
    return plans[0];
  }

  for (const mode of ["custom", "generic"] as const)
    for (const [what, sort] of [
      ["the key", [item("id", "asc")]],
      ["the key, descending", [item("id", "desc")]],
      ["an indexed field", [item("made_at", "asc")]],
      ["an indexed field, descending", [item("made_at", "desc")]],
      ["an indexed field and the key, both descending", [item("made_at", "desc"), item("id", "desc")]],
    ] as const)
      it(`read the rows of the page, by ${what} (${mode} plan)`, async () => {
        const plan = await lastPage(mode, sort);
        expect(plan?.wholeTables).to.deep.equal([]);
        expect(plan?.rowsRead).to.be.within(take, take + 10);
        expect(plan?.pages).to.be.below(30);
      });

  for (const mode of ["custom", "generic"] as const)
    it(`read related records by their index, those of each record and no others (${mode} plan)`, async () => {
      const relation = wares.relations.find(({ name }) => name === "reviews");
      if (relation === undefined) throw new Error("no reviews");
      const link = linkOf(wares, relation, definitions);
      const maker: RelatedNeed = { need: { fields: undefined, related: new Map() } };
      const statement = selectionOf(wares, definitions, {
        fields: undefined,
        related: new Map<string, RelatedNeed>([
          ["maker", maker],
          ["reviews", { ...maker, take: 100 }],
        ]),
      });
      expect(link.isMany).to.equal(true);
      const plans = await plansOf(mode, (sql) =>
        readRecords(sql, statement, { condition: always, order: [item("id", "desc")], take }),
      );
      expect(
        plans.flatMap(({ wholeTables }) => wholeTables.filter(({ rows: read }) => read > 1000)),
      ).to.deep.equal([]);
      expect(plans.map(({ rowsRead }) => rowsRead <= 51 + 1000)).to.deep.equal([true, true]);
      expect(plans[1]?.rowsRead).to.be.below(2 * take);
    });

  for (const mode of ["custom", "generic"] as const)
    it(`count only from a page that reaches the place to count at, by a ${mode} plan`, async () => {
      const reading = { condition: always, order: [item("id", "desc")], take };
      const plans = await plansOf(mode, async (sql) => {
        const full = await readCountedPage(sql, all, { reading, countAt: take });
        const short = await readCountedPage(sql, all, { reading, countAt: take + 1 });
        expect([full.total, short.total]).to.deep.equal([rows, undefined]);
        expect(full.rows.map(([id]) => Number(id))).to.deep.equal(
          Array.from({ length: take }, (_, n) => rows - n),
        );
      });
      expect(plans.map(({ rowsRead }) => rowsRead >= rows)).to.deep.equal([true, false]);
      expect(plans.map(({ mostSorted }) => mostSorted)).to.deep.equal([0, 0]);
      expect(plans[1]?.rowsRead).to.equal(take);
    });

  for (const direction of ["asc", "desc"] as const) {
    const sort = [item("price", direction)];

    it(`read the rows of the page and its ties, by an indexed field that may be missing, ${direction}`, async () => {
      const [middle, end] = [await lastPage("custom", sort, rows / 2), await lastPage("custom", sort)];
      expect(middle?.rowsRead).to.be.within(take, take + 2 * ties);
      expect(end?.rowsRead).to.be.within(take, take + 2 * ties);
    });

    it(`begin at its first record, ${direction}`, async () => {
      const reading = { condition: always, order: totalOrder(sort, wares), take };
      for (const read of [readPositions, readRecords]) {
        const plans = await plansOf("custom", (sql) => read(sql, all, reading));
        expect(plans.map(({ rowsRead }) => rowsRead < 2 * ties)).to.deep.equal([true]);
      }
    });
  }

  const ofMaker: Condition = {
    kind: "compare",
    field: wares.fields.find(({ name }) => name === "maker_id") ?? wares.key,
    operator: "=",
    value: "6",
  };
  const [middle, near] = [String(sold + 5_000), String(rows - 500)];
  const upwards = totalOrder([item("sold", "asc")], wares);
  const downwards = [item("sold", "desc"), item("id", "desc")];
  for (const mode of ["custom", "generic"] as const)
    // The planner multiplies the shares of the id, NULL and the maker, and sorts 1,500 for 30.
    for (const [whose, condition, most] of [
      ["all", always, take + 10],
      ["a filter", ofMaker, 1_500],
    ] as const)
      for (const [from, order, values] of [
        ["the last one with a value", upwards, ["999", String(sold)]],
        ["one without", upwards, [null, middle]],
        ["one without, backwards", reversed(upwards), [null, near]],
        ["the last one with a value, descending", downwards, ["0", "1"]],
        ["one without, descending", downwards, [null, near]],
        ["one without, by the key ascending", totalOrder([item("sold", "desc")], wares), [null, middle]],
      ] as const)
        it(`read the rows of the page of records without a value, of ${whose}, from ${from} (${mode} plan)`, async () => {
          const after = { values, isInclusive: false };
          const plans = await plansOf(mode, async (sql) => {
            const found = await readPositions(sql, all, { condition, order, take, after });
            expect(found.map(({ position }) => position[0])).to.deep.equal(Array(take).fill(null));
          });
          expect(plans.reduce((sum, { rowsRead }) => sum + rowsRead, 0)).to.be.within(take, most);
        });
});
