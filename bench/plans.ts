/**
 * What each statement of the hot path, of the lists and of `prune` reads in a database of 2 million events and 4 million deliveries, on a
 * PostgreSQL of its own. By itself: `node --import tsx bench/plans.ts`, about ten minutes; BENCH_SCALE=0.1 shortens it.
 */
import { Client } from "pg";
import { coreSteps, loadCoreMigrations, runSteps } from "../src/db/migrate.ts";
import type { Sql } from "../src/db/sql.ts";
import { hotWorks } from "../test/support/hot-statements.ts";
import { learnStatistics, makeLongHistory, type LongHistory } from "../test/support/long-history.ts";
import { createExplainingSql, type Plan, type PlanMode } from "../test/support/plans.ts";
import { startPrivatePostgres } from "../test/support/postgres.ts";

/** The worst of the statements of one kind of work. */
export interface PlanResult {
  readonly statistics: "of the empty tables" | "fresh";
  readonly mode: PlanMode;
  readonly name: string;
  readonly statements: number;
  readonly ms: number;
  readonly rowsRead: number;
  readonly pages: number;
  readonly mostSorted: number;
  /** Tables of more than a thousand rows that were read as a whole. */
  readonly wholeTables: readonly string[];
  readonly plans: readonly Plan[];
}

/** Takes the plans of everything, with statistics of the empty tables and with fresh ones. */
export async function measurePlans({
  history,
  progress,
}: {
  readonly history: LongHistory;
  readonly progress: (text: string) => void;
}): Promise<readonly PlanResult[]> {
  const server = await startPrivatePostgres({ settings: { shared_buffers: "512MB", max_wal_size: "4GB" } });
  const client = new Client({ connectionString: server.url });
  try {
    await client.connect();
    await runSteps(client, coreSteps(await loadCoreMigrations()));
    const sql: Sql = async <R>(text: string, values: readonly unknown[] = []) =>
      (await client.query(text, [...values])).rows as R[];
    progress(`making ${history.events} events`);
    await makeLongHistory(sql, history);
    const results: PlanResult[] = [];
    for (const statistics of ["of the empty tables", "fresh"] as const) {
      progress(`plans with statistics ${statistics}`);
      if (statistics === "fresh") await learnStatistics(sql);
      results.push(...(await plansOf(client, sql, statistics)));
    }
    return results;
  } finally {
    await client.end();
    await server.dispose();
  }
}

async function plansOf(
  client: Client,
  sql: Sql,
  statistics: PlanResult["statistics"],
): Promise<readonly PlanResult[]> {
  const results: PlanResult[] = [];
  for (const mode of ["custom", "generic"] as const)
    for (const { name, run } of await hotWorks(sql)) {
      const plans: Plan[] = [];
      await run(createExplainingSql({ client, mode, note: (plan) => plans.push(plan) }));
      const most = (figure: (plan: Plan) => number): number => Math.max(0, ...plans.map(figure));
      results.push({
        statistics,
        mode,
        name,
        statements: plans.length,
        ms: most(({ ms }) => ms),
        rowsRead: most(({ rowsRead }) => rowsRead),
        pages: most(({ pages }) => pages),
        mostSorted: most(({ mostSorted }) => mostSorted),
        wholeTables: plans.flatMap((plan) =>
          plan.wholeTables.filter(({ rows }) => rows > 1_000).map(({ table }) => table),
        ),
        plans,
      });
    }
  return results;
}

/** A table: the slowest statement of each work, with its milliseconds, rows read, pages and sorted rows. */
export function reportOfPlans(results: readonly PlanResult[]): string {
  const head =
    "| Statistics | Plan | Work | ms | Rows read | Pages | Sorted | Whole tables |\n|---|---|---|---:|---:|---:|---:|---|";
  const lines = results.map(
    ({ statistics, mode, name, ms, rowsRead, pages, mostSorted, wholeTables }) =>
      `| ${statistics} | ${mode} | ${name} | ${ms.toFixed(1)} | ${rowsRead} | ${pages} | ${mostSorted} | ${wholeTables.join(", ")} |`,
  );
  return [head, ...lines].join("\n");
}

if (process.argv[1] === import.meta.filename) {
  const scale = Number(process.env["BENCH_SCALE"] ?? 1);
  const results = await measurePlans({
    history: { events: Math.round(1_000_000 * scale) * 2, waiting: 50_000 },
    progress: (text) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`),
  });
  console.log(reportOfPlans(results));
}
