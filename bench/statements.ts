import type { Pool } from "pg";

/** A statement of one role, as PostgreSQL counts it. */
export interface Statement {
  readonly calls: number;
  readonly ms: number;
  readonly walBytes: number;
  /** False within a trigger or a function. */
  readonly isTop: boolean;
  readonly role: string;
  /**
   * Whether the relay sent it. The relay reads the outbox; the API only writes there, by triggers.
   */
  readonly isRelay: boolean;
  /** Start of its text. */
  readonly text: string;
}

/** Number of statements per unit of work (a request, a delivery), by sender. */
export interface StatementCount {
  readonly units: number;
  /** Statements of `svc api`, without those of the relay and of transactions. */
  readonly api: number;
  /** Statements of the relay, which shares the process with the API. */
  readonly relay: number;
  /**
   * Statements of `svc dispatcher` when it has a separate role; otherwise they count for the API.
   */
  readonly dispatcher: number;
  /** BEGIN, COMMIT, ROLLBACK, and savepoints. */
  readonly transaction: number;
  readonly statements: readonly Statement[];
}

const countText = `
  SELECT calls::int AS calls, total_exec_time + total_plan_time AS ms, wal_bytes::float8 AS "walBytes", toplevel AS "isTop",
    userid::regrole::text AS role, userid = 'postgres'::regrole AND query ~ '\\ysvc\\.(outbox|relays)\\y' AS "isRelay",
    regexp_replace(left(query, 400), '\\s+', ' ', 'g') AS text
  FROM pg_stat_statements
  WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid <> 'bench'::regrole
  ORDER BY ms DESC, text`;

const isTransaction = ({ text }: Statement): boolean =>
  /^\s*(BEGIN|COMMIT|ROLLBACK|SAVEPOINT|RELEASE)/i.test(text);

/**
 * Counts the statements that the server received in the database during `work`, without those that
 * open a connection.
 *
 * @param work Returns the number of units that it did.
 */
export async function countStatements(pool: Pool, work: () => Promise<number>): Promise<StatementCount> {
  await pool.query("SELECT pg_stat_statements_reset()");
  const units = await work();
  const { rows } = await pool.query<Statement>(countText);
  const statements = rows.filter(({ text }) => !/^\s*SET /i.test(text));
  const per = (isCounted: (row: Statement) => boolean): number =>
    statements.filter((row) => row.isTop && isCounted(row)).reduce((sum, { calls }) => sum + calls, 0) /
    units;
  const isOther = (row: Statement): boolean => row.isRelay || isTransaction(row);
  return {
    units,
    api: per((row) => row.role === "postgres" && !isOther(row)),
    relay: per((row) => row.isRelay),
    dispatcher: per((row) => row.role === "dispatcher" && !isTransaction(row)),
    transaction: per(isTransaction),
    statements,
  };
}

/** Returns how much WAL the server has written. */
export async function walBytes(pool: Pool): Promise<number> {
  const text = "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS bytes";
  return (await pool.query<{ readonly bytes: number }>(text)).rows[0]?.bytes ?? Number.NaN;
}
