import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { Client } from "pg";
import { openDatabase } from "../../src/db/client.ts";
import { createSql } from "../../src/db/sql.ts";
import type { NewDelivery } from "../../src/deliveries/insert-deliveries.ts";
import { createDeliveryStore } from "../../src/deliveries/store.ts";
import type { Outcome } from "../../src/deliveries/outcome.ts";
import { migrateCore } from "../support/core-database.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { inHand } from "../support/long-history.ts";
import { plansIn, type PlanResult } from "../support/plan-results.ts";
import { until } from "../support/wait.ts";

function mostSorted(name: string): number {
  if (name.startsWith("list: ")) return 10_001 + inHand;
  // A batch of each resource.
  if (name.startsWith("feed: ")) return 2_002;
  // The new events that a read examines for those of every owner.
  return name === "outbox: read" ? 3_100 : 1_000;
}

/**
 * The figures are for 400 written rows, and no row read. Without held deliveries, and with few ids,
 * only the index is read. A page of a prune reads the outbox once: by the wrong index, once for
 * each of 500 events, it had 39,537 pages.
 */
function mostPages({ name, mostRead }: PlanResult): number {
  if (name.startsWith("prune")) return 6_000;
  if (/^held: take, of none|^cursor: webhook with most, (?:asc|desc), fromId, toId/.test(name)) return 100;
  return 20 * mostRead + (name === "figures: write" ? 5_000 : 300);
}

describe("the plans of statements in a long history", function () {
  // It takes 15 s on two idle cores.
  this.timeout(300_000);

  let database: TestDatabase;
  let results: readonly PlanResult[];

  before(async () => {
    database = await createTestDatabase();
    results = await plansIn({ url: database.url, history: { events: 120_000, waiting: 15_000 } });
  });

  after(() => database.drop());

  const those = (isBad: (result: PlanResult) => boolean): readonly string[] =>
    results
      .filter(isBad)
      .map(
        ({ name, statistics, mode, rowsRead, mostRead, wholeTables, ...result }) =>
          `${name} (${mode}, statistics ${statistics}): ${rowsRead} read of ${mostRead}, ${result.pages} pages, ${result.mostSorted} sorted, ${wholeTables.join(", ")}`,
      );

  it("are taken of everything", () => {
    expect(those(({ plans }) => plans.length === 0)).to.deep.equal([]);
    expect(results.length).to.be.greaterThan(300);
  });

  it("read no table as a whole", () => {
    expect(those(({ wholeTables }) => wholeTables.length > 0)).to.deep.equal([]);
  });

  it("read only few rows more than they return", () => {
    expect(those(({ rowsRead, mostRead }) => rowsRead > mostRead)).to.deep.equal([]);
  });

  it("look through no index", () => {
    // A condition on its second column reads an index from one end to the other, and counts no row:
    // takeDue had 102,908 pages.
    expect(those((result) => result.pages > mostPages(result))).to.deep.equal([]);
  });

  it("sort no more than a page, or the rows that a list counts", () => {
    expect(those((result) => result.mostSorted > mostSorted(result.name))).to.deep.equal([]);
  });
});

describe("the outcome of a delivery", () => {
  it("changes no index when it is delivered", async () => {
    const database = await createTestDatabase();
    const core = await openDatabase({ url: database.url, poolSize: 1, isEmbedded: false });
    const watcher = new Client({ connectionString: database.url });
    try {
      await migrateCore(core.pool);
      const sql = createSql({ pool: core.pool, isEmbedded: false });
      const store = createDeliveryStore({ sql });
      const events = await sql<{ id: string; uuid: string }>(
        `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
         SELECT 'notes', 'on_create', '1', '{"title": "A note"}' FROM generate_series(1, 10000) RETURNING id, uuid`,
      );
      for (let at = 0; at < events.length; at += 50) {
        const portion = events.slice(at, at + 50);
        const deliveries = portion.map(({ id }): NewDelivery => ({
          uuid: randomUUID(),
          eventId: id,
          eventUuid: randomUUID(),
          subscriptionId: 1,
          userId: 1,
          resource: "notes",
          url: "https://receiver.example.com/webhooks/of/a/usual/length",
          maxAttempts: 10,
          isTaken: true,
        }));
        const { ids, flightId = "0" } = await store.insert({
          events: portion.map(({ id, uuid }) => ({ id, uuid, data: "{}" })),
          deliveries,
          isComplete: true,
          flightMs: 60_000,
        });
        const outcomes = deliveries.map(({ uuid }): Outcome => ({
          id: ids.get(uuid) ?? "0",
          uuid,
          status: "delivered",
          attemptsBefore: 0,
          result: { startedAt: new Date(), durationMs: 1, statusCode: 200, isResponseTruncated: false },
        }));
        await store.record({ outcomes, endedFlights: [flightId] });
      }
      // A connection reports its counters when it ends.
      await core.close();
      await watcher.connect();
      const written = await until(() => updatesIn(watcher), { what: "the numbers of 10,000 updates" });
      expect(written.hot).to.be.greaterThan(0.95 * written.all);
    } finally {
      await watcher.end();
      await database.drop();
    }
  });
});

async function updatesIn(
  client: Client,
): Promise<{ readonly all: number; readonly hot: number } | undefined> {
  const { rows } = await client.query<{ all: number; hot: number }>(
    `SELECT n_tup_upd::int AS all, n_tup_hot_upd::int AS hot FROM pg_stat_user_tables WHERE relname = 'deliveries'`,
  );
  return rows.find(({ all }) => all >= 10_000);
}
