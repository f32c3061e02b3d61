import type { PrismaArgs, Row } from "../mapping/definition.ts";
import type { Condition } from "../querying/condition.ts";
import type { OrderItem } from "../querying/order.ts";
import type { CursorPage, CursorPart, ListPart, NumberedPage } from "../querying/list-page.ts";
import type { PrismaQuery } from "./query.ts";
import type { RelatedList } from "./related-lists.ts";

/** The relations that the base query reads with a record, as a Prisma `include`. */
export type Include = PrismaQuery["include"];

export interface ListQuery extends PrismaQuery {
  readonly userId: number;
  /** Condition of the records that the caller may read. */
  readonly access: Condition;
  readonly filter: Condition;
  /** Undefined: `orderBy` of the base query. */
  readonly sort: readonly OrderItem[] | undefined;
  /** Paths of the record's JSON. Undefined: all of it. */
  readonly fields: readonly string[] | undefined;
  readonly related: readonly RelatedList[];
  /** Names of the parameters beyond those for a page and a search. */
  readonly asked: readonly string[];
}

/** A record from the database. */
export interface Found {
  /** Whether the caller may perform the operation for which it was read. */
  readonly isAllowed: boolean;
  /** The key and the owner, in Prisma's types. */
  readonly access: Row;
  /** Returns the JSON of its shown part. Throws errors of the code module. */
  json(): string;
}

export interface RecordWrite<T> {
  readonly data: Row;
  readonly userId: number;
  readonly include: Include;
  /** Creates the answer from the written record. */
  readonly present: (record: Found) => T;
  /**
   * Whether the write is rolled back when `present` throws. With a code module in `present`, it
   * always is.
   */
  readonly isUndone: boolean;
  /**
   * For a create, the condition of the new record. For an update, the condition of the record
   * before it.
   */
  readonly access: Condition;
}

/** Conditions of the statement of an update or a delete. */
export interface WriteConditions {
  readonly access: Condition;
  readonly where: PrismaArgs;
  /** Version from `RecordStore.version`. Undefined for any version. */
  readonly version?: string | undefined;
}

export interface RecordRead {
  readonly where: PrismaArgs | undefined;
  /** The part to read: the shown one, or only the fields that decide on access. */
  readonly shape: { readonly include: Include } | "access";
  /** Condition under which the caller may perform the operation. */
  readonly access: Condition;
}

/**
 * Reads and writes the records of one resource. A refusal of the database becomes an AppError that
 * names the field.
 */
export interface RecordStore {
  list(query: ListQuery, part: ListPart): Promise<NumberedPage<string>>;
  listByCursor(query: ListQuery, part: CursorPart): Promise<CursorPage>;
  /** Returns the record with the key, if it passes the filter. */
  find(key: unknown, read: RecordRead): Promise<Found | undefined>;
  /**
   * Creates a record.
   *
   * @throws AppError `record.forbidden` when the new record does not meet `access`; it is not
   *   created then.
   */
  create<T>(options: RecordWrite<T>): Promise<T>;
  /** A text that changes with any field of the record. Undefined when it is gone. */
  version(key: unknown): Promise<string | undefined>;
  /**
   * Updates a record. Returns undefined when the record is gone, of another version, or excluded by
   * the filter or `access`.
   */
  update<T>(key: unknown, options: RecordWrite<T> & WriteConditions): Promise<T | undefined>;
  /**
   * Deletes a record. Returns false when there was nothing to delete, or no record of that version.
   */
  remove(key: unknown, conditions: WriteConditions): Promise<boolean>;
}

/**
 * Writes several records at a time. Used within a transaction only, because a failure leaves it
 * broken.
 */
export interface ManyStore {
  /** Returns undefined when the records have to be created one by one. */
  createMany<T>(
    many: readonly Row[],
    options: Omit<RecordWrite<T>, "data" | "isUndone" | "userId">,
  ): Promise<readonly T[] | undefined>;
  /** Returns whether all records existed. Otherwise, the existing ones are deleted. */
  removeMany(keys: readonly unknown[], conditions: Omit<WriteConditions, "version">): Promise<boolean>;
}
