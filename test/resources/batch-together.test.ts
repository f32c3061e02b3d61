import { expect } from "chai";
import { attempt, createInTransaction } from "../../src/db/transaction.ts";
import { createStatementNames } from "../../src/db/statement-name.ts";
import { AppError } from "../../src/kit/errors.ts";
import type { AccessRule, Definition } from "../../src/mapping/definition.ts";
import { createAccessConditions } from "../../src/resources/access.ts";
import type { BatchOperation } from "../../src/resources/batch-body.ts";
import { runBatch } from "../../src/resources/batch.ts";
import { databaseWithin } from "../../src/resources/record-database.ts";
import { createLookup } from "../../src/resources/lookup.ts";
import { createRecordOperations } from "../../src/resources/record-operations.ts";
import { createStore } from "../../src/resources/store.ts";
import { createViews } from "../../src/resources/record-view.ts";
import { createRandom, pick, upTo, type Random } from "../support/random.ts";
import { ownersOnly } from "../support/definitions.ts";
import { servedOfSuite, withVariant } from "./serving.ts";

const seed = Number(process.env["SVC_TEST_SEED"] ?? Date.now() % 1_000_000);
const count = Number(process.env["SVC_TEST_QUERIES"] ?? 600) / 4;

const ada = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };

const rows = `
  TRUNCATE orders, customers RESTART IDENTITY;
  INSERT INTO customers (name) VALUES ('Acme'), ('Bolt');
  INSERT INTO orders (reference, amount, customer_id, user_id) VALUES ('A-1', 1, 1, 7), ('A-2', 2, NULL, 7), ('A-3', 3, 2, 8)`;

const filter = (where: Readonly<Record<string, unknown>>): AccessRule => ({ kind: "filter", where });

/** Rules of create: for all, by a column, by another table, by earlier records. */
const creatable: readonly AccessRule[] = [
  { kind: "everyone" },
  filter({ status: { not: "paid" } }),
  filter({ OR: [{ customer_id: null }, { customer: { name: "Acme" } }] }),
  filter({ OR: [{ customer_id: null }, { customer: { orders: { some: { amount: { gt: 3 } } } } }] }),
];

/** Makes references that exist, that another operation may use, and new ones; seldom a fault. */
function operation(
  random: Random,
  place: number,
  { optional, deletes }: { readonly optional: number; readonly deletes: number },
): BatchOperation {
  const kind = random();
  const id = String(pick(random, kind > 0.999 ? [3, 9] : [1, 2, 4, 5, 6, 7]));
  if (kind > 1 - deletes) return { method: "delete", id, ifMatch: undefined };
  if (random() > 0.97)
    return { method: "update", id, data: { reference: `B-${upTo(random, 5)}` }, ifMatch: undefined };
  const reference = random() > 0.97 ? pick(random, ["A-1", "b-1", "B-1", ""]) : `C-${place}`;
  const rare = random();
  return {
    method: "create",
    data: {
      reference,
      amount: rare > 0.99 ? -1 : pick(random, [1, 2.5, "3.10"]),
      ...(random() < optional / 5 ? { status: rare > 0.97 ? "lost" : "paid" } : {}),
      ...(random() < optional ? { customer_id: rare > 0.98 ? 99 : pick(random, [1, 2, null]) } : {}),
    },
  };
}

describe("batches, their creates together and one by one", function () {
  this.timeout(120_000);
  const served = servedOfSuite();

  async function outcomeOf(
    operations: readonly BatchOperation[],
    { create, isTogether }: { readonly create: AccessRule; readonly isTogether: boolean },
  ): Promise<unknown> {
    const definitions = withVariant("orders", { access: { ...ownersOnly, create } });
    const definition = definitions.get("orders") as Definition;
    const access = createAccessConditions(definitions);
    const records = createRecordOperations({ definition, definitions, access });
    const views = createViews(definition, definitions);
    const inTransaction = createInTransaction(served.database.pool, createStatementNames(false));
    await served.database.pool.query(rows);
    try {
      const answer = await inTransaction(async (transaction) => {
        const { sql, text } = transaction;
        const within = databaseWithin(served.records, transaction);
        const store = createStore({ definition, definitions, views, database: within });
        const looking = { own: definition, definitions, access, over: { within: transaction } };
        const together = { ...store, text, attempt: <T>(work: () => Promise<T>) => attempt(sql, work) };
        const database = { store, lookup: createLookup(looking)(ada), ...(isTogether ? { together } : {}) };
        const request = { database, caller: ada, isLarge: true };
        return runBatch({
          operations,
          records,
          request,
          reserve: () => Promise.resolve(),
          now: () => 0,
          beganAt: 0,
        });
      });
      return [answer.replaceAll(/"id":\d+/g, ""), await stored()];
    } catch (error) {
      if (!(error instanceof AppError)) throw error;
      return [error.status, error.message, error.errors, await stored()];
    }
  }

  const stored = (): Promise<unknown[]> =>
    served.sql("SELECT reference, amount, status, customer_id, user_id FROM orders ORDER BY id");

  it(`answer and write the same (SVC_TEST_SEED=${seed})`, async () => {
    const random = createRandom(seed);
    let written = 0;
    for (let run = 0; run < count; run += 1) {
      const length = 2 + upTo(random, run % 10 === 0 ? 150 : 12);
      const part = { optional: pick(random, [0, 0.2, 0.9, 1]), deletes: pick(random, [0, 0.02, 0.5]) };
      const operations = Array.from({ length }, (_, place) => operation(random, place, part));

      const create = pick(random, creatable);
      const together = await outcomeOf(operations, { create, isTogether: true });
      const apart = await outcomeOf(operations, { create, isTogether: false });

      expect(together, `run ${run}: ${JSON.stringify([create, operations])}`).to.deep.equal(apart);
      if (typeof (apart as readonly unknown[])[0] === "string") written += 1;
    }
    expect(written / count).to.be.within(0.2, 0.95);
  });
});
