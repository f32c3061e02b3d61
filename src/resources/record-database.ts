import type { ModelsClient } from "../db/models-client.ts";
import type { SqlOf } from "../db/batched-sql.ts";
import type { ManySql, TextSql } from "../db/text-sql.ts";
import type { InTransaction, Transaction } from "../db/transaction.ts";
import { AppError } from "../kit/errors.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import type { ListDatabase } from "./list-database.ts";
import type { RecordStore } from "./record-store.ts";
import type { Views } from "./record-view.ts";

/** Database access of the stores. */
export interface RecordDatabase {
  readonly records: TextSql;
  /** SQL for reads of one record, which may go to the server together. */
  readonly reads: TextSql;
  /** SQL for writes of a user in one statement, which may go to the server together. */
  readonly writes: SqlOf<number>;
  readonly lists: ListDatabase;
  readonly transact: InTransaction;
  /** The same for writes that wait for a lock for a short time only. */
  readonly hasty: Pick<RecordDatabase, "records" | "writes" | "transact">;
  /** Returns the Prisma client, for arguments of code modules that only Prisma supports. */
  readonly models: () => Promise<ModelsClient>;
  /** Called with the resource's name when the Prisma client has to answer. */
  readonly onFallback: (resource: string) => void;
  /** SQL for several rows; only within a transaction. */
  readonly many?: ManySql;
  /** Returns the comment behind every statement that writes, see `traceComment`. */
  readonly comment: () => string;
}

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

export interface StoreOptions {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly views: Views;
  readonly database: RecordDatabase;
}

/** Context of the operations of one resource. */
export interface StoreContext extends StoreOptions {
  /** Returns the store that answers through the Prisma client. */
  readonly fallback: () => RecordStore;
}
