import { expect } from "chai";
import { Client } from "pg";
import { conditionText, createParameters } from "../../src/querying/condition-text.ts";
import { readListParameters } from "../../src/querying/list-parameters.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { listShop } from "../support/list-shop.ts";

const { shape } = listShop();

const tables = `
  CREATE TYPE status AS ENUM ('open', 'paid', 'shipped');
  CREATE TABLE customers (id int PRIMARY KEY, name text, secret text, vip boolean);
  CREATE TABLE orders (id int PRIMARY KEY, reference varchar(40), status status, amount numeric(12, 2), weight float8, serial bigint,
    is_urgent boolean, due timestamptz(3), token uuid, tags text[], meta jsonb, logs jsonb[], blob bytea, hidden text, customer_id int REFERENCES customers);
  CREATE TABLE lines (id serial PRIMARY KEY, order_id int REFERENCES orders, sku text, quantity int);
  INSERT INTO customers VALUES (1, 'Ada', 's', true), (2, NULL, 's', NULL);
  INSERT INTO orders VALUES
    (1, 'A-1', 'open', 10.50, 0.5, 9007199254740993, true, '2026-03-28T12:30:00Z', '0a1b2c3d-0000-4000-8000-000000000000', '{a,b}', '{"plan": "Pro", "seats": 5, "none": null}', '{}', '', 'x', 1),
    (2, 'a_2', 'paid', 20, 2, 2, false, '2026-03-29T00:00:00Z', NULL, '{b,"c,d"}', '{"plan": "free", "tags": ["x"]}', '{}', '', 'x', 2),
    (3, '100%\\', 'shipped', NULL, NULL, NULL, NULL, NULL, NULL, '{}', NULL, '{}', NULL, 'x', NULL),
    (4, '', 'open', 0, -1, -1, false, '0001-01-01T00:00:00Z', NULL, NULL, '"text"', '{}', NULL, 'x', 1);
  INSERT INTO lines (order_id, sku, quantity) VALUES (1, 'x', 1), (1, 'y', NULL), (2, 'x', 7);`;

describe("filters on a PostgreSQL", () => {
  let database: TestDatabase;
  let client: Client;

  before(async () => {
    database = await createTestDatabase();
    client = new Client({ connectionString: database.url });
    await client.connect();
    await client.query(tables);
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
    ["filter[serial]=9007199254740993", 1],
    ["filter[serial][in]=2,-1", 2, 4],
    ["filter[urgent]=true", 1],
    ["filter[due_at]=2026-03-28T14:30:00%2B02:00", 1],
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
    ["filter[tags][null]=true", 4],
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
      const { filter } = readListParameters(query, shape, { maxPerPage: 15 });
      const parameters = createParameters();

      const where = conditionText(filter, "t", parameters);
      const { rows } = await client.query<{ id: number }>(
        `SELECT id FROM orders AS t WHERE ${where} ORDER BY id`,
        [...parameters.values],
      );

      expect(rows.map(({ id }) => id)).to.deep.equal(ids);
    });
  }
});
