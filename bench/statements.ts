import type { Pool } from "pg";

/** How many statements the service sent per unit of work (a request, a delivery). */
export interface StatementCount {
  readonly units: number;
  /** Everything but what the other two count. */
  readonly own: number;
  /** Of the relay, which shares the process and the connections with the API. */
  readonly relay: number;
  /** BEGIN, COMMIT, ROLLBACK. */
  readonly transaction: number;
  readonly byText: readonly { readonly calls: number; readonly text: string }[];
}

interface Row {
  readonly calls: number;
  readonly text: string;
}

const countText = `
  SELECT calls::int AS calls, regexp_replace(left(query, 200), '\\s+', ' ', 'g') AS text
  FROM pg_stat_statements
  WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND userid = 'postgres'::regrole
  ORDER BY calls DESC, text`;

/**
 * Counts what the server was sent in the database while `work` was done. Statements within triggers and functions are not
 * among them, nor what opens a connection.
 *
 * @param work Answers how many units it did.
 */
export async function countStatements(pool: Pool, work: () => Promise<number>): Promise<StatementCount> {
  await pool.query("SELECT pg_stat_statements_reset()");
  const units = await work();
  const { rows } = await pool.query<Row>(countText);
  const byText = rows.filter(({ text }) => !/^\s*SET /i.test(text));
  const isTransaction = ({ text }: Row): boolean => /^\s*(BEGIN|COMMIT|ROLLBACK)/i.test(text);
  const isRelay = ({ text }: Row): boolean => /^\s*UPDATE svc\.events/.test(text);
  const per = (isCounted: (row: Row) => boolean): number =>
    byText.filter(isCounted).reduce((sum, { calls }) => sum + calls, 0) / units;
  return {
    units,
    own: per((row) => !isTransaction(row) && !isRelay(row)),
    relay: per(isRelay),
    transaction: per(isTransaction),
    byText,
  };
}
