import type { TextSql } from "../db/text-sql.ts";
import type { RecordDatabase } from "./store.ts";

/**
 * Returns the way to the database that leads through a transaction. The Prisma client cannot go it: where it would have to answer, the
 * store throws.
 */
export function databaseWithin(database: RecordDatabase, text: TextSql): RecordDatabase {
  return {
    ...database,
    records: text,
    lists: text,
    transact: (work) => work(text),
    onFallback(resource) {
      throw new Error(
        `baseQuery of the resource ${resource} has arguments that only the Prisma client knows, which takes no part in batches and Idempotency-Key`,
      );
    },
  };
}
