import { expect } from "chai";
import { planMigration } from "../../src/app/plan-migration.ts";
import { openScene, market, type Scene } from "../support/migration-scene.ts";

const [role, other] = ["svc_test_migrates", "svc_test_other"];

describe("planMigration, where a managed table belongs to another role", function () {
  this.timeout(30_000);
  let scene: Scene;
  let url: string;

  before(async () => {
    scene = await openScene(market);
    await scene.client.query(`
      CREATE ROLE ${role}; CREATE ROLE ${other};
      GRANT USAGE, CREATE ON SCHEMA public, svc TO ${role}; GRANT ALL ON ALL TABLES IN SCHEMA svc TO ${role};
      ALTER TABLE customers OWNER TO ${role}; ALTER TABLE buyers OWNER TO ${role}; ALTER TABLE orders OWNER TO ${other}`);
    const asRole = new URL(scene.url);
    asRole.searchParams.set("options", `-c role=${role}`);
    url = asRole.href;
  });

  after(async () => {
    for (const one of [role, other])
      await scene.client.query(
        `REASSIGN OWNED BY ${one} TO CURRENT_USER; DROP OWNED BY ${one}; DROP ROLE ${one}`,
      );
    await scene.close();
  });

  const plan = (): ReturnType<typeof planMigration> => planMigration({ url, definitions: market });

  it("names the owner of the table, and two statements that each fix it", async () => {
    const error: unknown = await plan().catch((thrown: unknown) => thrown);

    const [, grant = ""] = /, (GRANT ALL ON .*)$/m.exec(String(error)) ?? [];
    const [, give = ""] = /needs (ALTER TABLE .*?), or/.exec(String(error)) ?? [];
    expect(String(error)).to.include(
      `the table "orders" belongs to the role ${other}, and ${role}, which migrates, may not read it`,
    );
    for (const statement of [grant, give]) {
      await scene.client.query(statement);
      expect(await plan()).to.deep.include({ steps: [], losses: [], impossible: [] });
      await scene.client.query(`REVOKE ALL ON orders FROM ${role}`);
    }
  });
});
