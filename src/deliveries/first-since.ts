import type { Sql } from "../db/sql.ts";

/** Columns with times that follow the ids, but for transactions that were slow. */
const times = { events: "occurred_at", deliveries: "created_at" } as const;

/** Rows are committed within this time: their ids and their times differ in order by less. */
export const slackMs = 60_000;

/**
 * Finds the first event or delivery of a time or later, by halving the range of ids: 30 reads,
 * however many there are. Returns its id; without one, the id after the last. The caller leaves
 * `slackMs` for transactions that were slow.
 */
export async function findFirstSince(sql: Sql, table: keyof typeof times, since: Date): Promise<bigint> {
  const time = times[table];
  const [found] = await sql<{ id: string }>(
    `WITH RECURSIVE search (low, high) AS (
      SELECT min(id), max(id) + 1 FROM svc.${table}
      UNION ALL
      SELECT CASE WHEN probe.${time} < $1::timestamptz THEN probe.id + 1 ELSE low END,
        CASE WHEN probe.${time} < $1::timestamptz THEN high ELSE (low + high) / 2 END
      FROM search CROSS JOIN LATERAL (
        SELECT id, ${time} FROM svc.${table} WHERE id >= (low + high) / 2 ORDER BY id LIMIT 1) AS probe
      WHERE low < high
    )
    SELECT coalesce(max(low), 1)::text AS id FROM search`,
    [since],
  );
  return BigInt(found?.id ?? 1);
}
