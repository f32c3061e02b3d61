import type { Sql } from "../db/sql.ts";

/** Columns of times that rise with the ids, except for slow transactions. */
const times = { events: "occurred_at", deliveries: "created_at" } as const;

/**
 * Longest time until a row is committed: the order of times differs from that of ids by less than
 * this.
 */
export const slackMs = 60_000;

/**
 * Finds the first event or delivery at or after a time, by binary search over the ids: 30 reads,
 * at any number of rows. Returns its id, or the id after the last one when there is none. The last
 * one may be before the time although others are after it: their clock was ahead. These others do
 * not count. The caller allows `slackMs` for slow transactions.
 */
export async function findFirstSince(sql: Sql, table: keyof typeof times, since: Date): Promise<bigint> {
  const time = times[table];
  const [found] = await sql<{ id: string }>(
    `WITH RECURSIVE search (low, high) AS (
      SELECT CASE WHEN newest.${time} < $1::timestamptz THEN newest.id + 1 ELSE (SELECT min(id) FROM svc.${table}) END, newest.id + 1
      FROM (SELECT id, ${time} FROM svc.${table} ORDER BY id DESC LIMIT 1) AS newest
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
