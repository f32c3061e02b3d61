import type { ClientBase } from "pg";

// Prepared transactions have no process id, so their `pid` is null.
/** An SQL condition on `pg_locks`: held by another session, in this database. */
export const heldByOthers = `
  granted AND pid IS DISTINCT FROM pg_backend_pid()
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

interface Holder {
  readonly pid: number | null;
  readonly application: string | null;
  readonly role: string | null;
  readonly type: string | null;
  readonly state: string | null;
  readonly since: string | null;
  /** Null for locks that are on no table. */
  readonly tables: string | null;
}

/**
 * Describes the sessions that hold locks, with the oldest transactions first: at most five.
 *
 * @param locks A condition on `pg_locks`, beside `heldByOthers`.
 */
export async function lockHolders(
  client: ClientBase,
  locks: string,
  values: readonly unknown[] = [],
): Promise<readonly string[]> {
  // A role without the rights of pg_read_all_stats sees no times of other roles.
  const { rows } = await client.query<Holder>(
    `SELECT locks.pid, act.application_name AS application, act.usename AS role, act.backend_type AS type, act.state,
       to_char(act.xact_start AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS since,
       string_agg(DISTINCT locks.relation::regclass::text, ', ') AS tables
     FROM (SELECT * FROM pg_locks WHERE ${heldByOthers} AND ${locks}) AS locks LEFT JOIN pg_stat_activity AS act ON act.pid = locks.pid
     GROUP BY locks.pid, locks.virtualtransaction, act.application_name, act.usename, act.backend_type, act.state, act.xact_start
     ORDER BY act.xact_start NULLS FIRST LIMIT 5`,
    [...values],
  );
  return rows.map(shownHolder);
}

function shownHolder({ pid, application, role, type, state, since, tables }: Holder): string {
  if (pid === null) return `a prepared transaction (see pg_prepared_xacts): ${tables}`;
  const name = application === null || application === "" ? (type ?? "unknown") : application;
  const parts = [
    `pid ${pid}`,
    `application ${JSON.stringify(name)}`,
    role !== null && `role ${JSON.stringify(role)}`,
    since !== null && `in a transaction since ${since}`,
    state !== null && `now ${state}`,
  ];
  return `${parts.filter((part) => part !== false).join(", ")}${tables === null ? "" : `: ${tables}`}`;
}
