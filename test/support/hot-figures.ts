import type { Sql } from "../../src/db/sql.ts";
import { createFigures, forgetOld } from "../../src/deliveries/figures.ts";
import { readStats } from "../../src/operations/stats.ts";
import type { HotWork } from "./hot-work.ts";
import { createMemoryLog } from "./http.ts";

/** Statements that count, and those of `GET /stats`. */
export const figureWorks: readonly HotWork[] = [
  {
    name: "stats: of all",
    pool: "lists",
    mostRead: 5_500,
    isByIndex: true,
    run: (sql) => readStats(sql, { caller: { id: 1, isAdmin: true }, showsWebhooks: true }),
  },
  {
    name: "stats: of a user",
    pool: "lists",
    mostRead: 4_000,
    isByIndex: true,
    run: (sql) => readStats(sql, { caller: { id: 50, isAdmin: false }, showsWebhooks: true }),
  },
  { name: "figures: write", pool: "dispatcher", mostRead: 10, run: writeFigures },
  { name: "figures: forget", pool: "dispatcher", mostRead: 4_000, run: forgetOld },
];

async function writeFigures(sql: Sql): Promise<void> {
  const { log } = createMemoryLog();
  const figures = createFigures({ sql, log, drained: () => Promise.resolve() });
  for (let userId = 1; userId <= 200; userId += 1) figures.attempted(userId, true);
  await figures.run(AbortSignal.abort());
}
