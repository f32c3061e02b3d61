import { setInterval } from "node:timers/promises";
import type { Sql } from "../../src/db/sql.ts";

/** Figures of the database about the service's statements. */
export interface MeterReport {
  readonly longest: { readonly ms: number; readonly text: string };
  readonly deadlocks: number;
}

const sampleMs = 100;
/** Selects the running statements of the service's role, without those of the bench. */
const runningText = `
  SELECT (1000 * extract(epoch FROM clock_timestamp() - query_start))::float8 AS ms, query AS text
  FROM pg_stat_activity WHERE datname = current_database() AND usename = 'postgres' AND state = 'active'
  ORDER BY query_start LIMIT 1`;
/** Selects the completed statements, without aborted ones. */
const doneText = `
  SELECT max_exec_time AS ms, query AS text FROM pg_stat_statements
  WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = 'postgres'::regrole
  ORDER BY max_exec_time DESC LIMIT 1`;

type Row = MeterReport["longest"];

/** Samples the running statements ten times a second, until the report is requested. */
export async function startMeter(sql: Sql): Promise<() => Promise<MeterReport>> {
  await sql("SELECT pg_stat_statements_reset()");
  const seen: Row[] = [];
  const stopping = new AbortController();
  const looking = (async () => {
    for await (const _ of setInterval(sampleMs, undefined, { signal: stopping.signal }))
      seen.push(...(await sql<Row>(runningText)));
  })().catch((error: unknown) => {
    if (!stopping.signal.aborted) throw error;
  });
  return async () => {
    stopping.abort();
    await looking;
    seen.push(...(await sql<Row>(doneText)));
    const [{ deadlocks } = { deadlocks: 0 }] = await sql<{ deadlocks: number }>(
      "SELECT deadlocks::int FROM pg_stat_database WHERE datname = current_database()",
    );
    const longest = seen.toSorted((a, b) => b.ms - a.ms)[0] ?? { ms: 0, text: "" };
    return { longest: { ...longest, text: longest.text.replaceAll(/\s+/g, " ").trim() }, deadlocks };
  };
}
