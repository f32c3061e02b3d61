import type { Row } from "../mapping/definition.ts";
import type { Where } from "./access.ts";
import type { Condition } from "../querying/condition.ts";
import type { OrderItem } from "../querying/order.ts";
import type { CursorPage, CursorPart, ListPart, RecordPage } from "./list-page.ts";
import type { PrismaQuery } from "./query.ts";
import type { RelatedList } from "./related-lists.ts";

/** The relations that the base query reads with a record, as Prisma has them. */
export type Include = PrismaQuery["include"];

/** What a request asks of a list. */
export interface ListQuery extends PrismaQuery {
  /** The user who asks. */
  readonly userId: number;
  /** What the caller may read. */
  readonly access: Condition;
  readonly filter: Condition;
  /** Undefined: `orderBy` of the base query. */
  readonly sort: readonly OrderItem[] | undefined;
  /** Paths of the record's JSON; undefined: all of it. */
  readonly fields: readonly string[] | undefined;
  readonly related: readonly RelatedList[];
  /** Names of the parameters that ask for more than a page and a search. */
  readonly asked: readonly string[];
}

/** A record as it was read. */
export interface Found {
  /** Whether the caller may do with it what it was read for. */
  readonly isAllowed: boolean;
  /** The key and the owner, in Prisma's types. */
  readonly access: Row;
  /** What is shown of it. Throws what a code module throws. */
  json(): string;
}

/** What a create or an update is to do. */
export interface RecordWrite<T> {
  readonly data: Row;
  /** The user who writes it. */
  readonly userId: number;
  readonly include: Include;
  /** Makes the answer from the written record. */
  readonly present: (record: Found) => T;
  /**
   * Whether the write is rolled back when `present` throws; it always is where that runs a code
   * module.
   */
  readonly isUndone: boolean;
  /** A create: what the new record must meet. An update: what the record must meet before it. */
  readonly access: Condition;
}

/** Conditions of the statement that updates, in addition to `access`. */
export interface WriteConditions {
  readonly where: Where;
  /** See `RecordStore.version`; undefined for any. */
  readonly version?: string | undefined;
}

/** The part of a record to read: what is shown of it, or only what decides on access. */
export type Shape = { readonly include: Include } | "access";

/**
 * Reads and writes the records of one resource. What the database refuses comes out as an AppError
 * that names the field.
 */
export interface RecordStore {
  list(query: ListQuery, part: ListPart): Promise<RecordPage>;
  listByCursor(query: ListQuery, part: CursorPart): Promise<CursorPage>;
  /** Returns the record with the key, if it passes the filter. */
  find(key: unknown, where: Where | undefined, shape: Shape, access: Condition): Promise<Found | undefined>;
  /**
   * @throws AppError `record.forbidden` when the new record does not meet `access`; it is not there
   *   then.
   */
  create<T>(options: RecordWrite<T>): Promise<T>;
  /** A text that changes with any column of the record. Undefined when it is gone. */
  version(key: unknown): Promise<string | undefined>;
  /**
   * Undefined when the record is gone, of another version, or left out by the filter or `access`.
   */
  update<T>(key: unknown, options: RecordWrite<T> & WriteConditions): Promise<T | undefined>;
  /** False when there was nothing to delete, or nothing of that version. */
  remove(key: unknown, where: Where, access: Condition, version?: string): Promise<boolean>;
}

/** Writes several records at a time. Within a transaction only: what fails leaves it broken. */
export interface ManyStore {
  /** Returns undefined when they have to be created one by one. */
  createMany<T>(
    many: readonly Row[],
    options: Omit<RecordWrite<T>, "data" | "isUndone" | "userId">,
  ): Promise<readonly T[] | undefined>;
  /** Returns whether all of them were there; else those that were are deleted. */
  removeMany(keys: readonly unknown[], where: Where, access: Condition): Promise<boolean>;
}
