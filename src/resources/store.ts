import type { ModelsClient } from "../db/models-client.ts";
import { databaseFaultOf } from "../db/database-fault.ts";
import type { SqlOf } from "../db/batched-sql.ts";
import type { ManySql, TextSql, TextTransact } from "../db/text-sql.ts";
import type { Definition, Definitions, Row } from "../mapping/definition.ts";
import { allOf, always, isAlways, keyIs, type Condition } from "../querying/condition.ts";
import { countRecords, estimateRecords } from "../querying/count.ts";
import { reversed, type OrderItem } from "../querying/order.ts";
import { orderOf } from "../querying/prisma-include.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import {
  readCountedPage,
  readJudged,
  readPositions,
  readRecords,
  totalOrder,
  type Reading,
} from "../querying/read.ts";
import type { Raw } from "../querying/selection.ts";
import { readVersion } from "../querying/version.ts";
import { scalarParameter } from "../querying/values.ts";
import {
  deleteRecord,
  deleteRecords,
  insertRecord,
  insertRecords,
  isReadTogether,
  updateRecord,
} from "../querying/write.ts";
import type { Where } from "./access.ts";
import type { ListDatabase, ListHolder } from "./list-database.ts";
import {
  exactly,
  readCursorPage,
  readPage,
  type CursorPage,
  type CursorPart,
  type ListPart,
  type RecordPage,
} from "./list-page.ts";
import { createPrismaStore } from "./prisma-store.ts";
import type { Found, Guard, ListQuery, ManyStore, RecordStore, Shape, RecordWrite } from "./record-store.ts";
import type { RelatedList } from "./related-lists.ts";
import { forbidden, leftOut, refuseDelete, refuseList, refuseUnsupported, refuseWrite } from "./refusals.ts";
import { accessOf, type View, type Views } from "./view.ts";
import { writePage } from "./write-page.ts";

/** How the stores reach the database. */
export interface RecordDatabase {
  readonly records: TextSql;
  /** For reads of one record, which may go to the server together. */
  readonly reads: TextSql;
  /** For writes of a user by one statement, which may go to the server together. */
  readonly writes: SqlOf<number>;
  readonly lists: ListDatabase;
  readonly transact: TextTransact;
  /** For the arguments of code modules that only Prisma knows. */
  readonly models: ModelsClient;
  /** Called with the resource's name when the Prisma client has to answer. */
  readonly onFallback: (resource: string) => void;
  /** Within a transaction. */
  readonly many?: ManySql;
  /** Goes behind every statement that writes, see `traceComment`. */
  readonly comment: () => string;
}

export interface StoreOptions {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly views: Views;
  readonly database: RecordDatabase;
}

interface Context extends StoreOptions {
  /** Returns the store that answers through the Prisma client. */
  readonly fallback: () => RecordStore;
}

/**
 * Opens the records of a resource. Each operation is one statement without Prisma's runtime, and
 * one more for each relation to many. The Prisma client answers where a code module gives arguments
 * that only it knows.
 */
export function createStore(options: StoreOptions): RecordStore & ManyStore {
  const { definition, definitions, database } = options;
  let byPrisma: RecordStore | undefined;
  const fallback = (): RecordStore => {
    refuseUnsupported(definition);
    database.onFallback(definition.name);
    return (byPrisma ??= createPrismaStore({ definition, definitions, models: database.models }));
  };
  const context = { ...options, fallback };
  return {
    list: (query, part) => list(context, query, part),
    listByCursor: (query, part) => listByCursor(context, query, part),
    find: (key, where, shape, access) => find(context, key, { where, shape, access }),
    create: (written) => create(context, written),
    createMany: (many, written) => createMany(context, many, written),
    removeMany: (keys, where, access) => removeMany(context, keys, { where, access }),
    version: async (key) => readVersion(database.records, definition, keyCondition(definition, key)),
    update: (key, written) => update(context, key, written),
    remove: (key, where, access, version) => remove(context, key, { where, access, version }),
  };
}

async function list(context: Context, query: ListQuery, part: ListPart): Promise<RecordPage> {
  const compiled = compiledList(context, query);
  const { definition, fallback, database } = context;
  const holder = holderOf(context, query);
  if (compiled === undefined) return database.lists.inTurn(holder, () => fallback().list(query, part));
  const { view, condition, sql } = compiled;
  const readingOf = (take: number): Reading => ({ condition, order: compiled.order, skip: part.skip, take });
  const read = async (take: number): Promise<readonly string[]> =>
    jsonOf(compiled, await readRecords(sql, view.statement, readingOf(take)));
  return readPage(part, {
    read,
    async readCounted(take, countAt) {
      // Of lists that wait together, one counts for all that ask for the same.
      if (database.lists.isBusy(holder)) return { records: await read(take) };
      const found = await readCountedPage(sql, view.statement, { reading: readingOf(take), countAt });
      return { records: await jsonOf(compiled, found.rows), total: found.total };
    },
    count: async (mode) =>
      mode === "estimated"
        ? estimateRecords(sql, definition, condition)
        : exactly(await countRecords(sql, definition, condition)),
  }).catch((error: unknown) => refuseList(query.asked, error));
}

async function listByCursor(context: Context, query: ListQuery, part: CursorPart): Promise<CursorPage> {
  const compiled = compiledList(context, query);
  if (compiled === undefined) {
    const { database, fallback } = context;
    return database.lists.inTurn(holderOf(context, query), () => fallback().listByCursor(query, part));
  }
  const { view, condition, sql } = compiled;
  const order = part.from?.isBackwards === true ? reversed(compiled.order) : compiled.order;
  return readCursorPage(part, async (take) => {
    const reading = { condition, order, take, after: part.from };
    const found = await readPositions(sql, view.statement, reading);
    const texts = await jsonOf(
      compiled,
      found.map(({ raw }) => raw),
    );
    return found.map(({ position }, index) => ({ position, json: texts[index] ?? "" }));
  }).catch((error: unknown) => refuseList(query.asked, error));
}

async function find(
  { definition, definitions, views, database, fallback }: Context,
  key: unknown,
  {
    where,
    shape,
    access,
  }: { readonly where: Where | undefined; readonly shape: Shape; readonly access: Condition },
): Promise<Found | undefined> {
  const view = shape === "access" ? views.access : views.of(shape.include);
  const filter = conditionOf(definition, definitions, where);
  if (view === undefined || filter === undefined) return fallback().find(key, where, shape, access);
  const condition = allOf([keyCondition(definition, key), filter]);
  try {
    const found = await readJudged(database.reads, view.statement, { condition, judge: access });
    return found && foundBy(view, found);
  } catch (error) {
    if (databaseFaultOf(error).kind === "bad_value") return undefined;
    throw error;
  }
}

async function create<T>(context: Context, options: RecordWrite<T>): Promise<T> {
  const { views, database, fallback } = context;
  const view = views.of(options.include);
  if (view === undefined) return fallback().create(options);
  return write(context, options, async (sql) => {
    const writing = { sql, statement: view.statement, comment: database.comment() };
    const inserted = await insertRecord(options.data, options.access, writing);
    if (inserted === undefined) throw leftOut(context.definition.table);
    if (!inserted.isFit) throw forbidden();
    return foundBy(view, inserted);
  });
}

/** Most records of one statement that reads records of others too, which may be large. */
const mostRelated = 25;

async function createMany<T>(
  { views, database }: Context,
  many: readonly Row[],
  { include, access, present }: Omit<RecordWrite<T>, "data" | "isUndone" | "userId">,
): Promise<readonly T[] | undefined> {
  const view = views.of(include);
  // Whether a new record fits its rule of access may depend on those before it.
  if (view === undefined || !isAlways(access) || !isReadTogether(view.statement)) return undefined;
  const { statement } = view;
  const most = statement.root.ones.size === 0 ? Infinity : mostRelated;
  const writing = { sql: database.records, statement, comment: database.comment() };
  const raws = await insertRecords(many, most, writing);
  if (raws === undefined) throw leftOut(statement.root.definition.table);
  return raws.map((raw) => present(foundBy(view, { raw, isFit: true })));
}

async function update<T>(
  context: Context,
  key: unknown,
  options: RecordWrite<T> & Guard,
): Promise<T | undefined> {
  const { definition, definitions, views, database, fallback } = context;
  const [view, filter] = [views.of(options.include), conditionOf(definition, definitions, options.where)];
  if (view === undefined || filter === undefined) return fallback().update(key, options);
  const condition = allOf([filter, options.access, versionIs(options.version)]);
  const target = { key: keyCondition(definition, key), data: options.data, condition };
  const { present, isUndone, userId } = options;
  return write(
    context,
    { present: (record: Found | undefined) => record && present(record), isUndone, userId },
    async (sql) => {
      const { statement } = view;
      const raw = await updateRecord(target, { sql, statement, comment: database.comment() });
      return raw === undefined ? undefined : foundBy(view, { raw, isFit: true });
    },
  );
}

async function remove(
  { definition, definitions, database, fallback }: Context,
  key: unknown,
  { where, access, version }: { readonly access: Condition } & Guard,
): Promise<boolean> {
  const filter = conditionOf(definition, definitions, where);
  if (filter === undefined) return fallback().remove(key, where, access, version);
  const condition = allOf([keyCondition(definition, key), filter, access, versionIs(version)]);
  try {
    const { records: sql, comment } = database;
    return await deleteRecord(definition, condition, { sql, comment: comment() });
  } catch (error) {
    return refuseDelete(error);
  }
}

async function removeMany(
  { definition, definitions, database: { many, comment } }: Context,
  keys: readonly unknown[],
  { where, access }: { readonly where: Where; readonly access: Condition },
): Promise<boolean> {
  const filter = conditionOf(definition, definitions, where);
  if (filter === undefined || many === undefined) return false;
  const conditions = keys.map((key) => allOf([keyCondition(definition, key), filter, access]));
  return deleteRecords(definition, conditions, { sql: many, comment: comment() });
}

/** Only what can fail after the write takes the two round trips of a transaction. */
async function write<F, T>(
  { definition, database }: StoreOptions,
  {
    present,
    isUndone,
    userId,
    access = always,
  }: {
    readonly present: (record: F) => T;
    readonly isUndone: boolean;
    readonly userId: number;
    readonly access?: Condition;
  },
  act: (sql: TextSql) => Promise<F>,
): Promise<T> {
  const needsTransaction = isUndone || !isAlways(access) || definition.code.transform !== undefined;
  try {
    if (!needsTransaction) return present(await act(database.writes(userId)));
    return await database.transact(async (sql) => present(await act(sql)));
  } catch (error) {
    return refuseWrite(definition, error);
  }
}

interface CompiledList {
  readonly view: View;
  readonly condition: Condition;
  readonly order: readonly OrderItem[];
  readonly related: readonly RelatedList[];
  readonly sql: TextSql;
}

function holderOf({ definition }: StoreOptions, { userId }: ListQuery): ListHolder {
  return { userId, resource: definition.name };
}

/** Undefined for a query with a part that only the Prisma client knows. */
function compiledList(options: StoreOptions, query: ListQuery): CompiledList | undefined {
  const { definition, definitions, views, database } = options;
  const { where, orderBy, include, access, filter, sort, fields, related } = query;
  const view = views.of(include, { fields, related: related.map(({ link }) => link) });
  const base = conditionOf(definition, definitions, where);
  const order = sort ?? orderOf(definition, definitions, orderBy);
  if (view === undefined || base === undefined || order === undefined) return undefined;
  return {
    view,
    condition: allOf([base, access, filter]),
    order: totalOrder(order, definition),
    related,
    sql: database.lists.sql(holderOf(options, query)),
  };
}

/** Writes the JSON of records, with the relations that the request includes at its end. */
async function jsonOf(
  { view, related, sql }: CompiledList,
  raws: readonly Raw[],
): Promise<readonly string[]> {
  let texts = await writePage(raws, (raw) => view.json(raw));
  for (const one of related) {
    const { name, link } = one;
    const position = view.statement.root.columns.get(link.from.name)?.position ?? -1;
    const values = raws.map((raw) => (raw[position] ?? null) as string | null);
    const lists = await one.read(sql, values);
    texts = texts.map((text, index) => withMember(text, name, lists[index] ?? "null"));
  }
  return texts;
}

function withMember(text: string, name: string, value: string): string {
  // Code may show a record as something else than an object.
  if (!text.startsWith("{")) return text;
  const separator = text === "{}" ? "" : ",";
  return `${text.slice(0, -1)}${separator}${JSON.stringify(name)}:${value}}`;
}

function keyCondition(definition: Definition, key: unknown): Condition {
  const values = definition.keys.map(({ type }, index) => {
    const parameter = scalarParameter(type, Array.isArray(key) ? key[index] : key);
    if (parameter === undefined) throw new Error(`${String(key)} is no key of ${definition.name}`);
    return parameter;
  });
  return keyIs(definition, values);
}

function versionIs(version: string | undefined): Condition | undefined {
  return version === undefined ? undefined : { kind: "version", version };
}

function foundBy(view: View, { raw, isFit }: { readonly raw: Raw; readonly isFit: boolean }): Found {
  return { isAllowed: isFit, access: accessOf(view.statement.root, raw), json: () => view.json(raw) };
}
