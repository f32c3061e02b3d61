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
import { createTestDatabase } from "../support/database.ts";
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

/** Results of each step in a database with objects of others. */
interface Seen {
  /** Output of psql after the objects were made, then after each migration. */
  readonly looks: readonly string[];
  readonly plans: readonly MigrationPlan[];
  /** "done", or the refusal. */
  readonly outcomes: readonly string[];
}

/** Runs the statements. Migrates to the same files, to others, and to these with losses allowed. */
async function migrateBeside(statements: readonly string[]): Promise<Seen> {
  const database = await createTestDatabase();
  const { url } = database;
  const [looks, plans, outcomes]: [string[], MigrationPlan[], string[]] = [[], [], []];
  const apply = (definitions: Definitions, allowDestructive: boolean): Promise<string> =>
    applyMigration({ url, definitions, allowDestructive, log }).then(() => "done", String);
  try {
    await apply(shop, false);
    await psql(url, { sql: statements.join(";\n") });
    looks.push(await look(url));
    for (const [definitions, allowDestructive] of [
      [shop, false],
      [changed, false],
      [changed, true],
    ] as const) {
      plans.push(await planMigration({ url, definitions }));
      outcomes.push(await apply(definitions, allowDestructive));
      looks.push(await look(url));
    }
    plans.push(await planMigration({ url, definitions: changed }));
    return { looks, plans, outcomes };
  } finally {
    await database.drop();
  }
}

describe("applyMigration, with what somebody else made on a managed table", () => {
  for (const [what, things] of Object.entries(handMade)) {
    describe(what, () => {
      let seen: Seen;

      before(async () => {
        seen = await migrateBeside(things.map(({ sql }) => sql));
      });

      for (const { title, shows, says } of things) {
        it(`names ${title} in the plan, and never changes it`, () => {
          for (const shown of seen.looks) expect(shown).to.match(shows);
          for (const plan of seen.plans) expect(leftAloneOf(plan)).to.match(says);
        });
      }

      it("changes what the mapping files change, and nothing else", () => {
        const [was, , refused, last] = seen.looks;
        expect(seen.outcomes[0]).to.equal("done");
        expect(seen.outcomes[1]).to.match(/would lose data/);
        expect(seen.outcomes[2]).to.equal("done");
        expect(new Set(seen.looks.slice(0, 3))).to.deep.equal(new Set([was]));
        expect(refused).to.match(/orders_reference_key/);
        expect(last)
          .to.match(/"orders_user_id_idx" btree \(user_id\)/)
          .and.to.match(/paid_at/)
          .and.to.not.match(/orders_reference_key|notes/);

        const done = { steps: [], losses: [], impossible: [] };
        const [atRest, planned, , after] = seen.plans;
        expect(atRest).to.deep.include(done);
        expect(planned?.impossible).to.deep.equal([]);
        expect(planned?.losses.join())
          .to.match(/orders_reference_key/)
          .and.to.not.match(/hand_made/);
        expect(after).to.deep.include(done);
      });
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
