import type { TextSql } from "../db/text-sql.ts";
import { AppError } from "../kit/errors.ts";
import type { RecordDatabase } from "./store.ts";

/**
 * Returns the way to the database that leads through a transaction. The Prisma client cannot go it: where it would have to answer, the
 * store throws AppError `validation.failed`.
 */
export function databaseWithin(database: RecordDatabase, text: TextSql): RecordDatabase {
  return {
    ...database,
    records: text,
    lists: text,
    transact: (work) => work(text),
    onFallback(resource) {
      const message = `${resource} takes neither batches nor Idempotency-Key: its code module gives arguments that only Prisma knows.`;
      throw new AppError("validation.failed", message, { errors: {} });
    },
  };
}
