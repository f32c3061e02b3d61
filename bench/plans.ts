/**
 * Shows the reads of each statement of the hot path, of the lists and of `prune` in a database of 2
 * million events and 4 million deliveries, on a private PostgreSQL. Run it alone with `node
 * --import tsx bench/plans.ts`, about ten minutes; BENCH_SCALE=0.1 shortens it.
 */
import type { LongHistory } from "../test/support/long-history.ts";
import { plansIn, type PlanResult } from "../test/support/plan-results.ts";
import { startPrivatePostgres } from "../test/support/postgres.ts";
import { markdownTable } from "./markdown.ts";

/** Takes the plans of all statements, with statistics of the empty tables and with fresh ones. */
export async function measurePlans({
  history,
  progress,
}: {
  readonly history: LongHistory;
  readonly progress: (text: string) => void;
}): Promise<readonly PlanResult[]> {
  const server = await startPrivatePostgres({ settings: { shared_buffers: "512MB", max_wal_size: "4GB" } });
  try {
    return await plansIn({ url: server.url, history, progress });
  } finally {
    await server.dispose();
  }
}

/**
 * Returns a table with the slowest statement of each work, with its milliseconds, rows read, pages
 * and sorted rows.
 */
export function planTable(results: readonly PlanResult[]): string {
  return markdownTable(
    ["Work", "statistics", "plan", "ms", "rows read", "pages", "sorted", "whole tables"],
    results.map(({ statistics, mode, name, ms, rowsRead, pages, mostSorted, wholeTables }) => [
      name,
      statistics,
      mode,
      ms.toFixed(1),
      rowsRead,
      pages,
      mostSorted,
      wholeTables.join(", "),
    ]),
  );
}

if (process.argv[1] === import.meta.filename) {
  const scale = Number(process.env["BENCH_SCALE"] ?? 1);
  const results = await measurePlans({
    history: { events: Math.round(1_000_000 * scale) * 2, waiting: 50_000 },
    progress: (text) => console.error(`${new Date().toISOString().slice(11, 19)} ${text}`),
  });
  console.log(planTable(results));
}
