import { setInterval } from "node:timers/promises";
import type { Sql } from "../../src/db/sql.ts";

/** What the database tells of the service's statements. */
export interface MeterReport {
  readonly longest: { readonly ms: number; readonly text: string };
  readonly deadlocks: number;
}

const sampleMs = 100;
/** Of the service's role: what the bench itself does is none of it. */
const runningText = `
  SELECT (1000 * extract(epoch FROM clock_timestamp() - query_start))::float8 AS ms, query AS text
  FROM pg_stat_activity WHERE datname = current_database() AND usename = 'postgres' AND state = 'active'
  ORDER BY query_start LIMIT 1`;
/** Those that came to their end: what was cut off is not among them. */
const doneText = `
  SELECT max_exec_time AS ms, query AS text FROM pg_stat_statements
  WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = 'postgres'::regrole
  ORDER BY max_exec_time DESC LIMIT 1`;

type Row = MeterReport["longest"];

/** Looks at what runs ten times a second, until it is asked for its report. */
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
