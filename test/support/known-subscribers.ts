import { getRow, type Sql } from "../../src/db/sql.ts";
import type { KnownAt } from "../../src/subscriptions/known-subscribers.ts";

/** Returns the current snapshot and time. */
export async function knownNow(sql: Sql): Promise<KnownAt> {
  return getRow(
    sql,
    `SELECT pg_current_snapshot()::text AS snapshot, (extract(epoch FROM now()) * 1000)::float8 AS "readAtMs"`,
  );
}

/**
 * Makes all connections of a pool accept earlier reads, like connections that are open for long.
 */
export async function agePool(sql: Sql): Promise<void> {
  // Keeps each connection busy, so that none is used twice.
  const text = "SELECT set_config('svc.session_since', '1', false), pg_sleep(0.02)";
  await Promise.all(Array.from({ length: 4 }, () => sql(text)));
}
