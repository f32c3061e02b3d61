import type { Transaction } from "../db/transaction.ts";
import { AppError } from "../kit/errors.ts";
import type { RecordDatabase } from "./record-database.ts";

/**
 * Returns the database access of stores within a transaction. Prisma has connections of its own.
 * Where it would have to answer, the store throws AppError `validation.failed`.
 */
export function databaseWithin(database: RecordDatabase, transaction: Transaction): RecordDatabase {
  const { text, many } = transaction;
  return {
    ...database,
    many,
    records: text,
    reads: text,
    writes: () => text,
    transact: (work) => work(transaction),
    onFallback(resource) {
      const message = `${resource} takes neither batches nor Idempotency-Key: its code module gives arguments that only Prisma knows.`;
      throw new AppError("validation.failed", message, { errors: {} });
    },
  };
}
