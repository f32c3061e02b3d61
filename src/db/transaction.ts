import type { Pool } from "pg";
import { inTransaction, sqlOver, type Sql } from "./sql.ts";
import type { StatementNames } from "./statement-name.ts";
import { createManySql, createTextSql, type ManySql, type TextSql } from "./text-sql.ts";

/** One transaction, for statements of every kind. */
export interface Transaction {
  readonly sql: Sql;
  readonly text: TextSql;
  readonly many: ManySql;
}

/** Runs statements in one transaction, which is rolled back when `work` throws. */
export type InTransaction = <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>;

/**
 * Refuses statements after the end of the work. When one look-up fails, another may still be
 * running. It would run within the next transaction on the connection.
 *
 * @param names See `createStatementNames`.
 * @param settings `SET LOCAL` statements.
 */
export function createInTransaction(pool: Pool, names: StatementNames, settings = ""): InTransaction {
  return (work) =>
    inTransaction(pool, settings, async (client) => {
      const [sql, text, many] = [
        sqlOver(client, names),
        createTextSql(client, names),
        createManySql(client, names),
      ];
      let isOver = false;
      try {
        return await work({
          sql: (...given) => (isOver ? over() : sql(...given)),
          text: (...given) => (isOver ? over() : text(...given)),
          many: (...given) => (isOver ? over() : many(...given)),
        });
      } finally {
        isOver = true;
      }
    });
}

function over(): Promise<never> {
  return Promise.reject(new Error("The transaction is over"));
}

/**
 * Runs a part of a transaction in a savepoint. Returns undefined when it failed, and undoes the
 * part.
 */
export async function attempt<T>(sql: Sql, work: () => Promise<T>): Promise<T | undefined> {
  await sql("SAVEPOINT attempt");
  try {
    const result = await work();
    await sql("RELEASE attempt");
    return result;
  } catch {
    await sql("ROLLBACK TO attempt; RELEASE attempt");
    return undefined;
  }
}
