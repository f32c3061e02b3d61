import { expect } from "chai";
import { Client } from "pg";
import { conditionText, createParameters } from "../../src/querying/condition-text.ts";
import type { Condition } from "../../src/querying/condition.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { field } from "../support/definitions.ts";
import { listShop } from "../support/list-shop.ts";
import { shopTables } from "../support/shop-tables.ts";

const { shape } = listShop();

describe("filters on a PostgreSQL", () => {
  let database: TestDatabase;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(shopTables);
  });

  after(async () => {
    await client.end();
    await database.drop();
  });

  for (const [query, ...ids] of [
    ["filter[status]=open", 1, 4],
    ["filter[status]=paid,shipped", 2, 3],
    ["filter[status][not_in]=paid,shipped", 1, 4],
    ["filter[status][contains]=OPE", 1, 4],
    ["filter[amount]=10.5", 1],
    ["filter[amount][ne]=10.5", 2, 4],
    ["filter[amount][not_in]=10.5,0", 2],
    ["filter[amount][lt]=1e900", 1, 2, 4],
    ["filter[amount][between]=0,10.505", 1, 4],
    ["filter[amount][null]=true", 3],
    ["filter[amount][null]=false", 1, 2, 4],
    ["filter[or][0][amount][null]=true&filter[or][1][amount][ne]=10.5", 2, 3, 4],
    ["filter[weight][lte]=0.5", 1, 4],
    ["filter[weight][null]=true", 3],
    ["filter[not][weight]=2", 1, 4],
    ["filter[not][weight][gt]=0", 4],
    ["filter[not][weight][lt]=0", 1, 2],
    ["filter[not][weight][not_in]=2,-1", 2, 4],
    ["filter[not][weight][between]=-1,0.5", 2],
    ["filter[not][or][0][id]=1&filter[not][or][1][weight][lt]=0", 2],
    ["filter[serial]=9007199254740993", 1],
    ["filter[serial][in]=2,-1", 2, 4],
    ["filter[urgent]=true", 1],
    ["filter[due_at]=2026-03-28T14:30:00%2B02:00", 1],
    ["filter[due_at]=2026-03-28T14:30:00+02:00", 1],
    ["filter[due_at][ne]=2026-03-28T12:30:00Z", 2, 4],
    ["filter[due_at][not_in]=2026-03-28T12:30:00Z,0001-01-01", 2],
    ["filter[due_at][lte]=2026-03-28T12:30:00Z", 1, 4],
    ["filter[due_at][gt]=2026-03-28T12:30:00Z", 2],
    ["filter[due_at][between]=2026-03-28,2026-03-28T12:30:00Z", 1],
    ["filter[due_at][lte]=9999-12-31T23:59:59.999Z", 1, 2, 4],
    ["filter[due_at][in]=2026-03-29,0001-01-01", 2, 4],
    ["filter[due_at][lt]=2026-03-28T12:30:00.001Z", 1, 4],
    ["filter[token]=0A1B2C3D-0000-4000-8000-000000000000", 1],
    ["filter[reference]=", 4],
    ["filter[reference][contains]=A", 1, 2],
    ["filter[reference][contains]=_", 2],
    ["filter[reference][contains]=%25", 3],
    ["filter[reference][ends_with]=%5C%5C", 3],
    ["filter[reference][starts_with]=a-", 1],
    ["filter[tags][has]=b", 1, 2],
    ["filter[tags][has]=c%5C,d", 2],
    ["filter[tags][has_any]=a,c%5C,d", 1, 2],
    ["filter[tags][has_all]=a,b", 1],
    ["filter[not][tags][has]=b", 3, 4],
    ["filter[tags][null]=true"],
    ["filter[tags][null]=false", 1, 2, 3, 4],
    ["filter[meta.plan]=Pro", 1],
    ["filter[meta.plan][contains]=PR", 1],
    ["filter[meta.plan][ne]=Pro", 2],
    ["filter[meta.seats]=5", 1],
    ["filter[meta.tags.0]=x", 2],
    ["filter[meta.plan][in]=Pro,free", 1, 2],
    ["filter[meta.none][null]=false"],
    ["filter[meta.plan][null]=true", 3, 4],
    ["filter[customer.name]=Ada", 1, 4],
    ["filter[customer.name][ne]=Bob", 1, 4],
    ["filter[customer.name][null]=true", 2, 3],
    ["filter[customer.name][null]=false", 1, 4],
    ["filter[customer.more.vip]=1", 1, 4],
    ["filter[not][customer.name]=Ada", 2, 3],
    ["filter[lines.sku]=x", 1, 2],
    ["filter[lines.sku][in]=y,z", 1],
    ["filter[lines.quantity][null]=true", 1],
    ["filter[lines.quantity][between]=2,9", 2],
    ["filter[not][lines.sku]=x", 3, 4],
    ["filter[status]=open&filter[lines.sku]=x", 1],
    ["filter[or][0][status]=paid&filter[or][1][status]=open&filter[or][1][amount][gt]=1", 1, 2],
    ["filter[not][or][0][id]=1&filter[not][or][1][id]=2", 3, 4],
    ["filter[id][not_in]=1,2&filter[id][lt]=4", 3],
  ] as const) {
    it(`${query} finds ${ids.join(", ") || "nothing"}`, async () => {
      expect(await found(query)).to.deep.equal(ids);
    });
  }

  it("searches a text whose collation treats different texts as equal", async () => {
    await client.query("BEGIN");
    await client.query(
      "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
    );
    await client.query("ALTER TABLE orders ALTER reference TYPE varchar(40) COLLATE any_case");

    expect(await found("filter[reference]=a-1")).to.deep.equal([1]);
    expect(await found("filter[reference][starts_with]=A")).to.deep.equal([1, 2]);
    await client.query("ROLLBACK");
  });

  it("uses an index on any integer type for values of another", async () => {
    await client.query(
      "BEGIN; SET LOCAL enable_seqscan = off; SET LOCAL plan_cache_mode = force_generic_plan",
    );
    await client.query("CREATE TABLE sizes (small smallint, big bigint)");
    await client.query("CREATE INDEX ON sizes (small); CREATE INDEX ON sizes (big)");
    const conditions: readonly Condition[] = [
      { kind: "compare", field: field("small", "Int"), operator: "=", value: "40000" },
      { kind: "compare", field: field("small", "BigInt"), operator: ">", value: "40000" },
      { kind: "in", field: field("small", "Int"), values: ["40000", "1"] },
      { kind: "compare", field: field("big", "BigInt"), operator: "=", value: "1" },
    ];
    for (const condition of conditions) {
      const parameters = createParameters();
      const text = `EXPLAIN SELECT FROM sizes AS t WHERE ${conditionText(condition, "t", parameters)}`;
      const { rows } = await client.query<{ "QUERY PLAN": string }>(text, [...parameters.values]);
      expect(rows.map((row) => row["QUERY PLAN"]).join("\n"), text).to.contain("Index Cond");
    }
    await client.query("ROLLBACK");
  });

  for (const [what, condition] of [
    ["the same record", (n: number) => `filter[and][${n}][customer.name][contains]=a`],
    ["groups of one", (n: number) => `filter[and][${n}][or][0][customer.name][contains]=a`],
    ["several records", (n: number) => `filter[and][${n}][lines.sku][contains]=a`],
    ["none of several records", (n: number) => `filter[and][${n}][not][lines.sku]=none`],
  ] as const)
    it(`has PostgreSQL plan few joins for many conditions on ${what}`, async () => {
      const many = Array.from({ length: 12 }, (_, index) => condition(index)).join("&");
      const { text, values } = statementOf(many);
      const { rows } = await client.query<{ "QUERY PLAN": string }>(`EXPLAIN ${text}`, values);
      const joins = rows.filter((row) => /(Join|Nested Loop) .*cost=/.test(row["QUERY PLAN"]));

      expect(joins).to.have.length.within(1, 4);
      expect(await found(many)).to.deep.equal(await found(condition(0)));
    });

  async function found(query: string): Promise<readonly number[]> {
    const { text, values } = statementOf(query);
    return (await client.query<{ id: number }>(text, values)).rows.map(({ id }) => id);
  }
});

function statementOf(query: string): { readonly text: string; readonly values: unknown[] } {
  const { filter } = readListParameters(query, shape, { maxPerPage: 15 });
  const parameters = createParameters();
  const where = conditionText(filter, "t", parameters);
  return { text: `SELECT id FROM orders AS t WHERE ${where} ORDER BY id`, values: [...parameters.values] };
}
