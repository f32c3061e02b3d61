import type { ModelsClient } from "../db/prisma-internals/models-client.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { TextSql, TextTransact } from "../db/text-sql.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { allOf, type Condition } from "../querying/condition.ts";
import type { OrderItem } from "../querying/order.ts";
import { orderOf } from "../querying/prisma-include.ts";
import { conditionOf } from "../querying/prisma-where.ts";
import { countRecords, keyIs, readRecords } from "../querying/read.ts";
import type { Raw } from "../querying/selection.ts";
import { scalarParameter } from "../querying/values.ts";
import { deleteRecord, insertRecord, updateRecord } from "../querying/write.ts";
import type { Where } from "./access.ts";
import { readPage, type ListPart, type RecordPage } from "./list-page.ts";
import { createPrismaStore } from "./prisma-store.ts";
import type { Found, RecordStore } from "./record-store.ts";
import { refuseDelete, refuseWrite } from "./refusals.ts";
import { accessOf, type View, type Views } from "./view.ts";

/** How the stores reach the database. */
export interface RecordDatabase {
  readonly records: TextSql;
  readonly lists: TextSql;
  readonly transact: TextTransact;
  /** For the arguments of code modules that only Prisma knows. */
  readonly models: ModelsClient;
  /** Called with the resource's name when the Prisma client has to answer. */
  readonly onFallback: (resource: string) => void;
  /** Goes behind every statement that writes, see `traceComment`. */
  readonly comment: () => string;
}

interface Context {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly views: Views;
  readonly database: RecordDatabase;
}

/**
 * Opens the records of a resource. Each operation is one statement without Prisma's runtime, and one more for each relation to many. The
 * Prisma client answers where a code module gives arguments that only it knows.
 */
export function createStore(context: Context): RecordStore {
  const { definition, definitions, views, database } = context;
  let byPrisma: RecordStore | undefined;
  const fallback = (): RecordStore => {
    database.onFallback(definition.name);
    return (byPrisma ??= createPrismaStore({ definition, definitions, models: database.models }));
  };
  const condition = (where: Where | undefined): Condition | undefined =>
    conditionOf(definition, definitions, where);

  return {
    async list(query, part) {
      const [view, where] = [views.of(query.include), condition(query.where)];
      const order = orderOf(definition, definitions, query.orderBy);
      if (view === undefined || where === undefined || order === undefined)
        return fallback().list(query, part);
      return list({ view, where, order, definition, sql: database.lists }, part);
    },

    async find(key, where, shape) {
      const view = shape === "access" ? views.access : views.of(shape.include);
      const filter = condition(where);
      if (view === undefined || filter === undefined) return fallback().find(key, where, shape);
      try {
        const [raw] = await readRecords(
          database.records,
          view.statement,
          allOf([keyCondition(definition, key), filter]),
          [],
        );
        return raw === undefined ? undefined : foundBy(view, raw);
      } catch (error) {
        if (databaseFaultOf(error).kind === "bad_value") return undefined;
        throw error;
      }
    },

    async create(options) {
      const view = views.of(options.include);
      if (view === undefined) return fallback().create(options);
      return write(context, options, async (sql) => {
        const { statement } = view;
        const raw = await insertRecord(options.data, { sql, statement, comment: database.comment() });
        return foundBy(view, raw);
      });
    },

    async update(key, options) {
      const [view, guard] = [views.of(options.include), condition(options.where)];
      if (view === undefined || guard === undefined) return fallback().update(key, options);
      const target = { key: keyCondition(definition, key), data: options.data, condition: guard };
      const { present } = options;
      return write(
        context,
        { ...options, present: (record: Found | undefined) => record && present(record) },
        async (sql) => {
          const { statement } = view;
          const raw = await updateRecord(target, { sql, statement, comment: database.comment() });
          return raw === undefined ? undefined : foundBy(view, raw);
        },
      );
    },

    async remove(key, where) {
      const guard = condition(where);
      if (guard === undefined) return fallback().remove(key, where);
      try {
        const sql = database.records;
        return await deleteRecord(definition, allOf([keyCondition(definition, key), guard]), {
          sql,
          comment: database.comment(),
        });
      } catch (error) {
        return refuseDelete(error);
      }
    },
  };
}

/** Only what can fail after the write takes the two round trips of a transaction. */
async function write<F, T>(
  { definition, database }: Context,
  { present, isUndone }: { readonly present: (record: F) => T; readonly isUndone: boolean },
  act: (sql: TextSql) => Promise<F>,
): Promise<T> {
  const needsTransaction = isUndone || definition.code.transform !== undefined;
  try {
    if (!needsTransaction) return present(await act(database.records));
    return await database.transact(async (sql) => present(await act(sql)));
  } catch (error) {
    return refuseWrite(definition, error);
  }
}

async function list(
  {
    view,
    where,
    order,
    definition,
    sql,
  }: {
    readonly view: View;
    readonly where: Condition;
    readonly order: readonly OrderItem[];
    readonly definition: Definition;
    readonly sql: TextSql;
  },
  part: ListPart,
): Promise<RecordPage> {
  const read = async (size: number): Promise<readonly string[]> => {
    const raws = await readRecords(sql, view.statement, where, order, { skip: part.skip, take: size });
    return raws.map((raw) => view.json(raw));
  };
  return readPage(part, { read, count: () => countRecords(sql, definition, where) });
}

function keyCondition(definition: Definition, key: unknown): Condition {
  const parameter = scalarParameter(definition.key.type, key);
  if (parameter === undefined) throw new Error(`${String(key)} is no key of ${definition.name}`);
  return keyIs(definition, parameter);
}

function foundBy(view: View, raw: Raw): Found {
  return { access: accessOf(view.statement.root, raw), json: () => view.json(raw) };
}
