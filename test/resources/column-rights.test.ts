import { expect } from "chai";
import { openDatabase, type Database } from "../../src/db/client.ts";
import { openServedDatabase, recordDatabaseOf, type ServedDatabase } from "./serving.ts";
import { ask, seed, startApi, type Api } from "./serving-api.ts";

const role = "svc_test_columns";

const lacking = (what: string): string =>
  `The database does not let this service ${what}: permission denied for table orders.`;

describe("a table with a column that the role may not read", () => {
  let served: ServedDatabase;
  let limited: Database;
  let api: Api;

  before(async () => {
    served = await openServedDatabase();
    await seed(served);
    const columns = "id, reference, status, amount, remarks, token, customer_id, user_id, created_at";
    await served.database.pool.query(`
      ALTER TABLE orders ADD COLUMN internal text NOT NULL DEFAULT 'secret';
      CREATE ROLE ${role} LOGIN PASSWORD 'x';
      GRANT SELECT (${columns}), INSERT (${columns}), UPDATE (${columns}), DELETE ON orders TO ${role};
      GRANT USAGE ON SEQUENCE orders_id_seq TO ${role}; GRANT SELECT ON customers TO ${role}`);
    const url = new URL(served.url);
    [url.username, url.password] = [role, "x"];
    limited = await openDatabase({ url: url.href, poolSize: 2, isEmbedded: false });
    const records = recordDatabaseOf({ database: limited, models: served.models });
    api = await startApi({ ...served, database: limited, records });
  });

  after(async () => {
    await api.server.close();
    await limited.close();
    await served.database.pool.query(`DROP OWNED BY ${role}; DROP ROLE ${role}`);
    await served.close();
  });

  it("accepts creates, updates with a condition, deletes and batches in the same way", async () => {
    const made = await ask(api, "ada", "POST /orders", { reference: "N-1", amount: 5, customer_id: 1 });
    const operations = [1, 2].map((n) => ({ method: "create", data: { reference: `C-${n}`, amount: n } }));
    const batch = await ask(api, "ada", "POST /orders/batch", { operations });
    const condition = { "If-Match": made.headers["etag"] ?? "" };
    const changed = await ask(api, "ada", "PUT /orders/4", { amount: 6 }, condition);
    const stale = await ask(api, "ada", "PUT /orders/4", { amount: 7 }, condition);
    const removed = await ask(api, "ada", "DELETE /orders/4", undefined, { "If-Match": "*" });

    const answers = [made, batch, changed, stale, removed];
    expect(answers.map(({ status }) => status)).to.deep.equal([201, 200, 200, 412, 204]);
  });

  it("answers a write of a column without the right with 422, and what the role lacks", async () => {
    const pool = served.database.pool;
    await pool.query(`REVOKE INSERT (remarks), UPDATE (remarks), DELETE ON orders FROM ${role}`);
    const made = { reference: "N-2", amount: 5, customer_id: 1 };
    const answers = [
      await ask(api, "ada", "POST /orders", { ...made, notes: "x" }),
      await ask(api, "ada", "PUT /orders/1", { notes: "x" }),
      await ask(api, "ada", "DELETE /orders/1"),
      await ask(api, "ada", "POST /orders/batch", {
        operations: [{ method: "create", data: { ...made, notes: "x" } }],
      }),
      await ask(api, "ada", "POST /orders", made),
    ];

    expect(answers.map(({ status }) => status)).to.deep.equal([422, 422, 422, 422, 201]);
    expect(answers.slice(0, 4).map(({ json }) => (json as { message: string }).message)).to.deep.equal([
      lacking("write the record"),
      lacking("write the record"),
      lacking("delete the record"),
      lacking("write the record"),
    ]);
  });
});
