import { Pool, type ClientBase } from "pg";
import { inTransaction } from "./sql.ts";
import { isStalePlan, limitsOf, runBatch, sentOf, type TextRow } from "./statement-batch.ts";
import type { StatementNames } from "./statement-name.ts";

/** Runs one statement. Its rows have PostgreSQL's texts of the values, by position. */
export type TextSql = (text: string, values: readonly unknown[]) => Promise<TextRow[]>;

/**
 * Types that keep the texts. pg would convert them to numbers, dates and objects, but most are only
 * written into JSON.
 */
const asText = { getTypeParser: () => (text: string) => text };

/**
 * @param names See `createStatementNames`.
 * @param lockLimitMs Limit of the wait for a lock, on a pool. Default: the limit of the statement.
 */
export function createTextSql(over: Pool | ClientBase, names: StatementNames, lockLimitMs?: number): TextSql {
  const before = limitsOf({ lockLimitMs });
  const runByPg: TextSql = (text, values) =>
    before !== undefined && over instanceof Pool
      ? inTransaction(over, before.text, (client) => runUnnamed(client, text, values))
      : runUnnamed(over, text, values);
  return async (text, values) => {
    const name = names(text);
    if (name === undefined) return runByPg(text, values);
    try {
      const [rows = []] = await runBatch(over, { name, text, values: [sentOf(values)], before });
      return rows;
    } catch (error) {
      // In a transaction, the fault has aborted all statements, so the caller repeats the whole
      // transaction.
      if (!(over instanceof Pool) || !isStalePlan(error)) throw error;
      return runByPg(text, values);
    }
  };
}

/** Runs one statement for each list of values, in their order. Returns the rows of each. */
export type ManySql = (
  text: string,
  lists: readonly (readonly unknown[])[],
) => Promise<readonly (readonly TextRow[])[]>;

/**
 * Sends all executions in one write to one connection. A fault of one fails all.
 *
 * @param names See `createStatementNames`. Statements without a name are sent one by one.
 */
export function createManySql(over: ClientBase, names: StatementNames): ManySql {
  return async (text, lists) => {
    const name = names(text);
    if (name !== undefined) return runBatch(over, { name, text, values: lists.map(sentOf) });
    const rows: TextRow[][] = [];
    for (const one of lists) rows.push(await runUnnamed(over, text, one));
    return rows;
  };
}

async function runUnnamed(
  over: Pool | ClientBase,
  text: string,
  values: readonly unknown[],
): Promise<TextRow[]> {
  const result = await over.query<TextRow>({ text, values: [...values], rowMode: "array", types: asText });
  return result.rows;
}
