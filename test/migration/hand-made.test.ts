import { expect } from "chai";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { createLog } from "../../src/telemetry/log.ts";
import { applyMigration } from "../../src/app/apply-migration.ts";
import { planMigration, type MigrationPlan } from "../../src/app/plan-migration.ts";
import type { Definitions } from "../../src/mapping/definition.ts";
import { openNewEmbedded } from "../support/embedded.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { definitionsOf, field } from "../support/definitions.ts";
import { handMade } from "../support/hand-made.ts";
import { psql } from "../support/psql.ts";
import { customerId, customers, orders, status, withFields } from "../support/shop.ts";

const log = createLog({ level: "silent" });

const city = field("city", "String", { isOptional: true });
const named = withFields(customers, [field("name", "String"), city]);
const shop = definitionsOf(named, orders);
/** Adds a part of every kind, and removes two of the service's own: a column, a unique index. */
const changed = definitionsOf(
  withFields(named, [field("name", "String"), city, field("phone", "String", { isOptional: true })]),
  withFields(orders, [
    field("reference", "String", { length: 40 }),
    { ...status, values: ["open", "paid", "shipped"] },
    field("amount", "Decimal", { precision: 12, scale: 2 }),
    field("paid_at", "DateTime", { isOptional: true, isUnique: true }),
    field("user_id", "Int", { isIndexed: true }),
    customerId,
  ]),
);

/** Returns the two tables as psql shows them, and the views. */
async function look(url: string): Promise<string> {
  return psql(url, { file: "test/fixtures/look.psql" });
}

function leftAloneOf({ leftAlone }: MigrationPlan): string {
  return leftAlone.join("\n");
}

describe("applyMigration, with what somebody else made on a managed table", () => {
  let template: TestDatabase;

  before(async () => {
    template = await createTestDatabase();
    await applyMigration({ url: template.url, definitions: shop, allowDestructive: false, log });
  });

  after(async () => {
    await template.drop();
  });

  for (const { title, sql, shows, says } of handMade) {
    it(`names ${title} in the plan, and never changes it`, async () => {
      const copy = await createTestDatabase({ template: new URL(template.url).pathname.slice(1) });
      const { url } = copy;
      const plan = (definitions: Definitions): Promise<MigrationPlan> => planMigration({ url, definitions });
      const apply = (definitions: Definitions, allowDestructive: boolean): Promise<string> =>
        applyMigration({ url, definitions, allowDestructive, log }).then(() => "done", String);
      try {
        await psql(url, { sql });
        const was = await look(url);
        expect(was).to.match(shows);

        const atRest = await plan(shop);
        expect(atRest).to.deep.include({ steps: [], losses: [], impossible: [] });
        expect(leftAloneOf(atRest)).to.match(says);
        expect(await apply(shop, false)).to.equal("done");
        expect(await look(url)).to.equal(was);

        const planned = await plan(changed);
        expect(planned.impossible).to.deep.equal([]);
        expect(planned.losses.join()).to.match(/orders_reference_key/);
        expect(planned.losses.join()).to.not.match(/hand_made/);
        expect(leftAloneOf(planned)).to.match(says);
        expect(await apply(changed, false)).to.match(/would lose data/);
        expect(await look(url)).to.equal(was);

        expect(await apply(changed, true)).to.equal("done");
        expect(await look(url))
          .to.match(shows)
          .and.to.match(/"orders_user_id_idx" btree \(user_id\)/)
          .and.to.match(/paid_at/)
          .and.to.not.match(/orders_reference_key|notes/);
        const last = await plan(changed);
        expect(last).to.deep.include({ steps: [], losses: [], impossible: [] });
        expect(leftAloneOf(last)).to.match(says);
      } finally {
        await copy.drop();
      }
    });
  }
});

describe("applyMigration, with what somebody else made, on the embedded database", () => {
  it("names an index, a column and a default in the plan, and does not change them", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "svc-hand-made-"));
    const embedded = await openNewEmbedded(dataDir);
    const client = new Client({ connectionString: embedded.url });
    await client.connect();
    try {
      const apply = (definitions: Definitions): Promise<unknown> =>
        applyMigration({ url: embedded.url, definitions, allowDestructive: true, log });
      await apply(shop);
      await client.query(
        "CREATE UNIQUE INDEX hand_made ON orders (amount); ALTER TABLE orders ADD by_hand text; ALTER TABLE orders ALTER amount SET DEFAULT 3",
      );

      await apply(changed);

      const { rows } = await client.query(
        `SELECT to_regclass('hand_made') IS NOT NULL AS index, to_regclass('orders_reference_key') IS NULL AS own,
           count(*) FILTER (WHERE attname = 'by_hand')::int AS columns, count(*) FILTER (WHERE attname = 'amount' AND atthasdef)::int AS defaults
         FROM pg_attribute WHERE attrelid = 'orders'::regclass`,
      );
      expect(rows).to.deep.equal([{ index: true, own: true, columns: 1, defaults: 1 }]);
      const plan = await planMigration({ url: embedded.url, definitions: changed });
      expect(plan.steps).to.deep.equal([]);
      expect(leftAloneOf(plan)).to.match(/column by_hand[^]*hand_made[^]*amount .*changed by hand/);
    } finally {
      await client.end();
      await embedded.close();
      await rm(dataDir, { recursive: true, force: true });
    }
  });
});
