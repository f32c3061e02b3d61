import type { Sql } from "../../src/db/sql.ts";
import type { KnownAt } from "../../src/subscriptions/known-subscribers.ts";

/** What is known now. */
export async function knownNow(sql: Sql): Promise<KnownAt> {
  const [row] = await sql<{ snapshot: string; readAtMs: number }>(
    `SELECT pg_current_snapshot()::text AS snapshot, (extract(epoch FROM now()) * 1000)::float8 AS "readAtMs"`,
  );
  if (row === undefined) throw new Error("The statement returned no row.");
  return row;
}

/** Lets all connections of a pool believe what was read before: they are there for long. */
export async function agePool(sql: Sql, connections = 4): Promise<void> {
  // Each is busy meanwhile, so that no connection is asked twice.
  const text = "SELECT set_config('svc.session_since', '1', false), pg_sleep(0.02)";
  await Promise.all(Array.from({ length: connections }, () => sql(text)));
}
