import { databaseFaultOf } from "../db/database-fault.ts";
import type { TextSql } from "../db/text-sql.ts";
import type { Definition, Row } from "../mapping/definition.ts";
import { allOf, always, isAlways, keyIs, type Condition } from "../querying/condition.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { readJudged, readVersion } from "../querying/read.ts";
import type { Raw } from "../querying/selection.ts";
import { withPrismaTypes } from "../querying/to-prisma.ts";
import { scalarParameter } from "../querying/values.ts";
import {
  deleteOrChange,
  deleteRecord,
  deleteRecords,
  insertRecord,
  insertRecords,
  isReadTogether,
  updateRecord,
} from "../querying/write.ts";
import { mayBeLeftOut, nothingWritten } from "./left-out.ts";
import { listByCursor, listByPage } from "./list-records.ts";
import { createPrismaStore } from "./prisma-store.ts";
import type { StoreContext, StoreOptions } from "./record-database.ts";
import type {
  Found,
  WriteConditions,
  ManyStore,
  RecordRead,
  RecordStore,
  RecordWrite,
} from "./record-store.ts";
import { forbidden, leftOut, refuseDelete, refuseUnsupportedFields, refuseWrite } from "./refusals.ts";
import { accessOf, type View } from "./record-view.ts";

/**
 * Creates the store of a resource's records. Each operation is one statement without Prisma's
 * runtime, and one further statement for each relation to many. The Prisma client answers where a
 * code module gives arguments that only this client supports.
 */
export function createStore(options: StoreOptions): RecordStore & ManyStore {
  const { definition, definitions, database } = options;
  let byPrisma: RecordStore | undefined;
  const fallback = (): RecordStore => {
    refuseUnsupportedFields(definition);
    database.onFallback(definition.name);
    return (byPrisma ??= createPrismaStore({
      definition,
      definitions,
      models: database.models,
      typed: (where) => withPrismaTypes(definition, definitions, where),
    }));
  };
  const context = { ...options, fallback };
  return {
    list: (query, part) => listByPage(context, query, part),
    listByCursor: (query, part) => listByCursor(context, query, part),
    find: (key, read) => find(context, key, read),
    create: (written) => create(context, written),
    createMany: (many, written) => createMany(context, many, written),
    removeMany: (keys, conditions) => removeMany(context, keys, conditions),
    version: async (key) => readVersion(database.records, definition, keyCondition(definition, key)),
    update: (key, written) => update(context, key, written),
    remove: (key, conditions) => remove(context, key, conditions),
  };
}

async function find(
  { definition, definitions, views, database, fallback }: StoreContext,
  key: unknown,
  { where, shape, access }: RecordRead,
): Promise<Found | undefined> {
  const view = shape === "access" ? views.access : views.of(shape.include);
  const filter = conditionOf(definition, definitions, where);
  if (view === undefined || filter === undefined) return fallback().find(key, { where, shape, access });
  const condition = allOf([keyCondition(definition, key), filter]);
  try {
    const found = await readJudged(database.reads, view.statement, { condition, judge: access });
    return found && foundBy(view, found);
  } catch (error) {
    if (databaseFaultOf(error).kind === "bad_value") return undefined;
    throw error;
  }
}

async function create<T>(context: StoreContext, options: RecordWrite<T>): Promise<T> {
  const { views, database, fallback } = context;
  const view = views.of(options.include);
  if (view === undefined) return fallback().create(options);
  const isUndone = options.isUndone || (await mayBeLeftOut(database.records, context.definition, "create"));
  return write(context, { ...options, isUndone }, async (sql) => {
    const writing = { sql, statement: view.statement, comment: database.comment() };
    const inserted = await insertRecord(options.data, options.access, writing);
    if (inserted === undefined) throw leftOut(context.definition.table);
    if (!inserted.isFit) throw forbidden();
    return foundBy(view, inserted);
  });
}

/** Limit of the records of one statement that also reads related records, which may be large. */
const mostRelated = 25;

async function createMany<T>(
  { views, database }: StoreContext,
  many: readonly Row[],
  { include, access, present }: Omit<RecordWrite<T>, "data" | "isUndone" | "userId">,
): Promise<readonly T[] | undefined> {
  const view = views.of(include);
  if (view === undefined || !isReadTogether(view.statement)) return undefined;
  const { statement } = view;
  const most = statement.root.ones.size === 0 ? Infinity : mostRelated;
  const writing = { sql: database.records, statement, comment: database.comment() };
  const raws = await insertRecords(many, { most, judge: access }, writing);
  return raws?.map((raw) => present(foundBy(view, { raw, isFit: true })));
}

async function update<T>(
  context: StoreContext,
  key: unknown,
  options: RecordWrite<T> & WriteConditions,
): Promise<T | undefined> {
  const { definition, definitions, views, database, fallback } = context;
  const [view, filter] = [views.of(options.include), conditionOf(definition, definitions, options.where)];
  if (view === undefined || filter === undefined) return fallback().update(key, options);
  const condition = allOf([filter, options.access, versionIs(definition, options.version)]);
  const target = { key: keyCondition(definition, key), data: options.data, condition };
  const { present, userId } = options;
  const isUndone = options.isUndone || (await mayBeLeftOut(database.records, definition, "update"));
  const writing = { operation: "update", present, isUndone, userId, data: options.data } as const;
  return orUndefined(
    write(context, writing, async (sql) => {
      const { statement } = view;
      const raw = await updateRecord(target, { sql, statement, comment: database.comment() });
      if (raw === undefined) throw nothingWritten;
      return foundBy(view, { raw, isFit: true });
    }),
  );
}

/** Returns undefined when nothing was written. */
async function orUndefined<T>(writing: Promise<T>): Promise<T | undefined> {
  try {
    return await writing;
  } catch (error) {
    if (error === nothingWritten) return undefined;
    throw error;
  }
}

async function remove(
  { definition, definitions, database, fallback }: StoreContext,
  key: unknown,
  { where, access, version }: WriteConditions,
): Promise<boolean> {
  const filter = conditionOf(definition, definitions, where);
  if (filter === undefined) return fallback().remove(key, { where, access, version });
  const own = keyCondition(definition, key);
  const condition = allOf([own, filter, access, versionIs(definition, version)]);
  const { records: sql, transact } = database;
  const comment = database.comment();
  const inTransaction = (): Promise<boolean> =>
    transact(async ({ text }) => {
      const target = { key: own, condition };
      if (await deleteOrChange(definition, target, { sql: text, comment })) return true;
      throw nothingWritten;
    });
  try {
    const isTransaction = await mayBeLeftOut(sql, definition, "delete");
    return await (isTransaction ? inTransaction() : deleteRecord(definition, condition, { sql, comment }));
  } catch (error) {
    if (error === nothingWritten) return false;
    return refuseDelete(error);
  }
}

async function removeMany(
  { definition, definitions, database: { many, comment } }: StoreContext,
  keys: readonly unknown[],
  { where, access }: Omit<WriteConditions, "version">,
): Promise<boolean> {
  const filter = conditionOf(definition, definitions, where);
  if (filter === undefined || many === undefined) return false;
  const conditions = keys.map((key) => allOf([keyCondition(definition, key), filter, access]));
  return deleteRecords(definition, conditions, { sql: many, comment: comment() });
}

/**
 * Runs a write. Uses a transaction, with its two round trips, only when something can fail after
 * the write.
 */
async function write<F, T>(
  { definition, database }: StoreOptions,
  {
    operation = "create",
    present,
    isUndone,
    userId,
    access = always,
    data,
  }: {
    readonly operation?: "create" | "update";
    readonly present: (record: F) => T;
    readonly isUndone: boolean;
    readonly userId: number;
    readonly access?: Condition;
    readonly data: Row;
  },
  act: (sql: TextSql) => Promise<F>,
): Promise<T> {
  const needsTransaction = isUndone || !isAlways(access) || definition.code.transform !== undefined;
  try {
    if (!needsTransaction) return present(await act(database.writes(userId)));
    return await database.transact(async ({ text }) => present(await act(text)));
  } catch (error) {
    return refuseWrite(definition, error, operation, data);
  }
}

function keyCondition(definition: Definition, key: unknown): Condition {
  const values = definition.keys.map(({ type }, index) => {
    const parameter = scalarParameter(type, Array.isArray(key) ? key[index] : key);
    if (parameter === undefined) throw new Error(`${String(key)} is no key of ${definition.name}`);
    return parameter;
  });
  return keyIs(definition, values);
}

function versionIs({ fields }: Definition, version: string | undefined): Condition | undefined {
  return version === undefined ? undefined : { kind: "version", fields, version };
}

function foundBy(view: View, { raw, isFit }: { readonly raw: Raw; readonly isFit: boolean }): Found {
  return { isAllowed: isFit, access: accessOf(view.statement.root, raw), json: () => view.json(raw) };
}
