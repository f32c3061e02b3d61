import type { Pool } from "pg";

/** A statement of one role, as PostgreSQL counts it. */
export interface Statement {
  readonly calls: number;
  readonly ms: number;
  readonly walBytes: number;
  /** False within a trigger or a function. */
  readonly isTop: boolean;
  readonly role: string;
  /** Whether the relay sent it, which asks the outbox; the API only writes there, by triggers. */
  readonly isRelay: boolean;
  /** Its beginning. */
  readonly text: string;
}

/** How many statements were sent per unit of work (a request, a delivery), by who sent them. */
export interface StatementCount {
  readonly units: number;
  /** Of `svc api`, without the relay's and those of transactions. */
  readonly api: number;
  /** Of the relay, which shares the process with the API. */
  readonly relay: number;
  /** Of `svc dispatcher`, where it has a role of its own; else they are among the API's. */
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
 * Counts what the server was sent in the database while `work` was done. What opens a connection is
 * not counted.
 *
 * @param work Answers how many units it did.
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
