import { Client, type PoolClient } from "pg";
import { openDatabase } from "../../src/db/client.ts";
import { onlyIndexes, type Sql } from "../../src/db/sql.ts";
import { migrateCore } from "./core-database.ts";
import { hotWorks } from "./hot-statements.ts";
import type { HotWork } from "./hot-work.ts";
import { believeEmptied, learnStatistics, makeLongHistory, type LongHistory } from "./long-history.ts";
import { createExplainingSql, type Plan, type PlanMode } from "./plans.ts";

/** Result of a kind of work; each figure is that of its worst statement. */
export interface PlanResult {
  /** Statistics of the planner. */
  readonly statistics: "of empty tables" | "of emptied tables" | "fresh";
  readonly mode: PlanMode;
  readonly name: string;
  readonly mostRead: number;
  readonly ms: number;
  readonly rowsRead: number;
  readonly pages: number;
  readonly mostSorted: number;
  /** Tables of more than a few thousand rows that were read as a whole. */
  readonly wholeTables: readonly string[];
  readonly plans: readonly Plan[];
}

/** A thousand subscriptions are one page of a join. */
const fewRows = 2_000;

/**
 * Creates a long history in an empty database and takes the plans of all hot statements: with
 * statistics of the empty tables and with fresh ones, each with custom and with generic plans.
 */
export async function plansIn({
  url,
  history,
  progress = () => undefined,
}: {
  readonly url: string;
  readonly history: LongHistory;
  readonly progress?: (text: string) => void;
}): Promise<readonly PlanResult[]> {
  const database = await openDatabase({
    url,
    poolSize: 4,
    lists: { connections: 1, statementTimeoutMs: 600_000, maxResultBytes: 10 ** 8, maxRowBytes: 10 ** 8 },
    relays: true,
    dispatches: true,
    isEmbedded: false,
    queryTimeoutMs: 600_000,
  });
  const builder = new Client({ connectionString: url });
  const clients = new Map<HotWork["pool"], PoolClient>();
  try {
    for (const pool of ["pool", "lists", "relay", "dispatcher"] as const) {
      const client = await database[pool].connect();
      clients.set(pool, client);
      await client.query("SET statement_timeout = 0");
    }
    await migrateCore(database.pool);
    // Has no time limit.
    await builder.connect();
    const sql: Sql = async <R>(text: string, values: readonly unknown[] = []) =>
      (await builder.query(text, [...values])).rows as R[];
    progress(`making ${history.events} events`);
    await makeLongHistory(sql, history);
    const results: PlanResult[] = [];
    for (const statistics of ["of empty tables", "of emptied tables", "fresh"] as const) {
      if (statistics === "of emptied tables") await believeEmptied(sql);
      if (statistics === "fresh") await learnStatistics(sql);
      const works = await hotWorks(sql);
      for (const mode of ["custom", "generic"] as const) {
        progress(`${mode} plans, statistics ${statistics}`);
        for (const work of works) {
          const connection = clients.get(work.pool);
          if (connection === undefined) throw new Error("not connected");
          results.push({ statistics, mode, ...(await resultOf(work, connection, mode)) });
        }
      }
    }
    return results;
  } finally {
    for (const client of clients.values()) client.release();
    await builder.end();
    await database.close();
  }
}

async function resultOf(
  { name, mostRead, isByIndex, run }: HotWork,
  client: PoolClient,
  mode: PlanMode,
): Promise<Omit<PlanResult, "statistics" | "mode">> {
  const plans: Plan[] = [];
  await run(
    createExplainingSql({
      client,
      settings: isByIndex ? onlyIndexes : "",
      mode,
      note: (plan) => plans.push(plan),
    }),
  );
  const most = (figure: (plan: Plan) => number): number => Math.max(0, ...plans.map(figure));
  return {
    name,
    mostRead,
    ms: most(({ ms }) => ms),
    rowsRead: most(({ rowsRead }) => rowsRead),
    pages: most(({ pages }) => pages),
    mostSorted: most(({ mostSorted }) => mostSorted),
    wholeTables: plans.flatMap(({ wholeTables }) =>
      wholeTables.filter(({ rows }) => rows > fewRows).map(({ table }) => table),
    ),
    plans,
  };
}
