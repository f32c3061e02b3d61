import { expect } from "chai";
import { planMigration } from "../../src/app/plan-migration.ts";
import { openScene, without, withField, market, type Scene } from "../support/migration-scene.ts";

const role = "svc_test_hidden";

/**
 * A role that owns the tables but sees no row of the orders, as with one policy for each tenant.
 */
const setUp = `
  CREATE ROLE ${role};
  GRANT USAGE, CREATE ON SCHEMA public, svc TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA svc TO ${role};
  ALTER TABLE customers OWNER TO ${role}; ALTER TABLE buyers OWNER TO ${role}; ALTER TABLE orders OWNER TO ${role};
  ALTER TABLE orders ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY`;

describe("planMigration, where policies hide rows from the role that migrates", function () {
  this.timeout(30_000);
  let scene: Scene;
  let url: string;

  before(async () => {
    scene = await openScene(market);
    await scene.client.query(`
      INSERT INTO customers (name) VALUES ('Ada');
      INSERT INTO orders (reference, amount, notes, user_id, customer_id) VALUES ('r', 1, 'kept', 1, 1); ${setUp}`);
    const asRole = new URL(scene.url);
    asRole.searchParams.set("options", `-c role=${role}`);
    url = asRole.href;
  });

  after(async () => {
    await scene.client.query(
      `REASSIGN OWNED BY ${role} TO CURRENT_USER; DROP OWNED BY ${role}; DROP ROLE ${role}`,
    );
    await scene.close();
  });

  it("treats no column as empty whose values it cannot see", async () => {
    const error: unknown = await planMigration({ url, definitions: without("notes") }).catch(
      (thrown: unknown) => thrown,
    );

    expect(String(error)).to.include('row-level security policy for table "orders"');
  });

  it("names the table where it counts rows itself", async () => {
    const definitions = withField("amount", { precision: 3, scale: 0 });
    const error: unknown = await planMigration({ url, definitions }).catch((thrown: unknown) => thrown);

    expect(String(error)).to.include('row-level security policy for table "orders"');
  });

  it("plans the steps that need no read of the rows", async () => {
    expect((await planMigration({ url, definitions: market })).impossible).to.deep.equal([]);
  });
});
