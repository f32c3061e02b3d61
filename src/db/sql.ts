import type { ClientBase, Pool, QueryResultRow } from "pg";
import { getOrSet } from "../kit/group-by.ts";
import { databaseFaultOf } from "./database-fault.ts";
import { isLost, limitsOf, runDescribed, type StatementLimits } from "./statement-batch.ts";
import { createStatementNames, type StatementNames } from "./statement-name.ts";

/** Runs one statement and returns its rows. */
export type Sql = <R extends QueryResultRow>(text: string, values?: readonly unknown[]) => Promise<R[]>;

/**
 * Runs statements in one transaction, in which each statement sees earlier commits. An error rolls
 * back all of them.
 *
 * @param joined SQL of the transaction to join. Default: a new transaction.
 */
export type Transact = <T>(work: (sql: Sql) => Promise<T>, joined?: Sql) => Promise<T>;

/**
 * Returns SQL on a pool. A connection keeps each statement prepared for its life, because there are
 * few texts, none chosen by a request.
 *
 * @param limits Limits of each statement. The embedded database has none.
 * @param salt See `createStatementNames`, like `isEmbedded`.
 */
export function createSql({
  pool,
  isEmbedded,
  salt = "",
  ...limits
}: {
  readonly pool: Pool;
  readonly isEmbedded: boolean;
  readonly salt?: string;
} & StatementLimits): Sql {
  const before = limitsOf(limits);
  const nameOf = createStatementNames(isEmbedded, salt);
  const names = new Map<string, string | undefined>();
  return async (text, values = []) => {
    const name = getOrSet(names, text, () => nameOf(text));
    return name === undefined
      ? (await pool.query({ text, values: [...values] })).rows
      : runDescribed(pool, { name, text, values, before });
  };
}

/** @param settings `SET LOCAL` statements. */
export function createTransact(pool: Pool, settings = ""): Transact {
  return (work, joined) =>
    joined === undefined ? inTransaction(pool, settings, (client) => work(sqlOver(client))) : work(joined);
}

/**
 * Returns SQL on one connection. Statements are unnamed without `names`, or when it returns no
 * name.
 */
export function sqlOver(client: ClientBase, names?: StatementNames): Sql {
  return async (text, values = []) => {
    // A text without parameters may contain several statements, so it gets no name.
    const name = values.length === 0 ? undefined : names?.(text);
    if (name !== undefined) return runDescribed(client, { name, text, values });
    return (await client.query({ text, values: [...values] })).rows;
  };
}

/** @param settings `SET LOCAL` statements. */
export async function inTransaction<T>(
  pool: Pool,
  settings: string,
  work: (client: ClientBase) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  let isDone = false;
  try {
    await client.query(`BEGIN ISOLATION LEVEL READ COMMITTED; ${settings}`);
    const result = await work(client);
    await client.query("COMMIT");
    isDone = true;
    return result;
  } catch (error) {
    // When the server did not answer, the connection may still be busy.
    const isUnavailable = databaseFaultOf(error).kind === "unavailable";
    if (!isUnavailable || !isLost(error)) isDone = await isRolledBack(client);
    throw error;
  } finally {
    // Ending the connection rolls back uncommitted work.
    client.release(!isDone);
  }
}

async function isRolledBack(client: ClientBase): Promise<boolean> {
  try {
    await client.query("ROLLBACK");
    return true;
  } catch {
    return false;
  }
}

/** Runs a statement that always returns a row, such as a count, and returns this row. */
export async function getRow<R extends QueryResultRow>(
  sql: Sql,
  text: string,
  values?: readonly unknown[],
): Promise<R> {
  const [row] = await sql<R>(text, values);
  if (row === undefined) throw new Error("The statement returned no row.");
  return row;
}

/** Returns the values of keys over all rows, for `unnest`: one array each, null for undefined. */
export function arraysOf<Row>(rows: readonly Row[], ...keys: readonly (keyof Row)[]): unknown[][] {
  return keys.map((key) => rows.map((row) => row[key] ?? null));
}

/**
 * Returns the conditions that find one row by its key, and by no other index. For `column = value`,
 * a plan of a nearly empty table may take any index that has the column. It then reads all of that
 * index: 470 to 2,150 ms for 1,000 ids in an outbox of 100,000. Only the index of the key has this
 * order, so it is cheapest whatever the planner assumes.
 */
export function byKey(column: string, value: string): string {
  return `${column} >= ${value} AND ${column} <= ${value} ORDER BY ${column} LIMIT 1`;
}

interface ValuesSource {
  readonly table: string;
  readonly condition?: string;
  /** SQL expression: only values behind it. */
  readonly after?: string;
  /** The index's columns; usually only the one of the values. */
  readonly order?: string;
}

/**
 * Returns a recursive CTE of the values of a column, in order, and of a null at the end. It jumps
 * from one value to the next by the index, however many rows have each.
 */
export function valuesCte(name: string, column: string, source: ValuesSource): string {
  const { table, condition = "true", after, order = column } = source;
  const next = (behind: string): string =>
    `(SELECT ${column} FROM ${table} WHERE ${condition} AND ${behind} ORDER BY ${order} LIMIT 1)`;
  return `${name} AS (
    ${next(after === undefined ? "true" : `${column} > ${after}`)}
    UNION ALL SELECT ${next(`${column} > ${name}.${column}`)} FROM ${name} WHERE ${name}.${column} IS NOT NULL
  )`;
}

/**
 * An SQL condition, always true, with which the commit does not wait for the disk. For statements
 * whose loss does no harm: a crash of the database loses the last 0.6 s of these commits.
 */
export const withoutDiskWait = "(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL";

/** Returns an SQL condition, always true, that limits the statement's wait for each later lock. */
export function withLockWait(ms: number): string {
  return `(SELECT set_config('lock_timeout', '${ms}ms', true)) IS NOT NULL`;
}

/** `SET LOCAL` statements that restrict the planner to plans in the order of an index. */
export const onlyIndexes = ["seqscan", "bitmapscan", "sort", "incremental_sort"]
  .map((way) => `SET LOCAL enable_${way} = off`)
  .join("; ");

/**
 * Returns SQL for statements whose row order an index has, and that stop after a page. With old
 * statistics, the planner may believe that reading and sorting everything is cheaper. Each
 * statement costs two additional round trips.
 */
export function createIndexSql(pool: Pool): Sql {
  const transact = createTransact(pool, onlyIndexes);
  return async (text, values) => transact(async (sql) => sql(text, values));
}
