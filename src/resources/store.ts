import { AppError, validationError } from "../kit/errors.ts";
import type { Delegate, ModelsClient } from "../db/prisma-internals/models-client.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { Where } from "./access.ts";
import type { BaseQuery, Definition, Row } from "../mapping/definition.ts";
import { allOf, type ListQuery } from "./query.ts";

export type Include = BaseQuery["include"];

type Present<T> = (row: Row) => T;

export interface Written<T> {
  readonly data: Row;
  readonly include: Include;
  /** Makes of the written record what is answered. */
  readonly present: Present<T>;
  /** Whether the write is undone when `present` throws; it always is where that is code of the operator's. */
  readonly isUndone: boolean;
}

/** What of a record is read: its fields and the relations of `include`, or only `select`. */
export type Shape = { readonly include: Include } | { readonly select: Readonly<Record<string, true>> };

export interface RecordPage {
  readonly rows: readonly Row[];
  /** How many were read for: fewer than asked for where those would be too large for one answer. */
  readonly size: number;
  /** Of all pages. */
  readonly total: number;
}

/** The records of one resource. What the database refuses comes out as an AppError that names the field. */
export interface RecordStore {
  /** @param part `likely`: how many probably fit into one answer, where it is known that not all do. */
  list(
    query: ListQuery,
    part: { readonly skip: number; readonly take: number; readonly likely?: number | undefined },
  ): Promise<RecordPage>;
  /** The record with the key, if the filter leaves it. */
  find(key: unknown, where: Where | undefined, shape: Shape): Promise<Row | undefined>;
  create<T>(options: Written<T>): Promise<T>;
  /** Undefined when the record is gone, or no longer what the filter asks for. */
  update<T>(key: unknown, options: Written<T> & { readonly where: Where }): Promise<T | undefined>;
  /** False when there was nothing to delete. */
  remove(key: unknown, where: Where): Promise<boolean>;
}

export function createStore({
  definition,
  models,
}: {
  readonly definition: Definition;
  readonly models: ModelsClient;
}): RecordStore {
  const delegate = models.delegate(definition.model);
  const listDelegate = models.listDelegate(definition.model);

  const keyIs = (key: unknown): Where => ({ [definition.key.name]: key });
  /** In the statement itself, so that a change of owner between a check and a write cannot slip through. */
  const guarded = (key: unknown, where: Where): Where => ({ ...keyIs(key), AND: [where] });

  /**
   * The written record with its relations. Read afterwards: a write with `include` is a transaction of Prisma's, which takes
   * three more round trips and holds the row meanwhile.
   */
  async function withRelations(by: Delegate, row: Row, include: Include): Promise<Row> {
    if (include === undefined) return row;
    const read = await by.findFirst({ where: keyIs(row[definition.key.name]), include });
    return read ?? row;
  }

  /** Only what can fail after the write takes the two round trips of a transaction. */
  async function written<T>(
    write: (by: Delegate) => Promise<Row>,
    { include, present, isUndone }: Omit<Written<T>, "data">,
  ): Promise<T> {
    const act = async (by: Delegate): Promise<T> =>
      present(await withRelations(by, await write(by), include));
    return definition.code.transform === undefined && !isUndone
      ? act(delegate)
      : models.transaction((delegateOf) => act(delegateOf(definition.model)));
  }

  return {
    async list({ where, orderBy, include }, { skip, take, likely = take }) {
      const count = (): Promise<number> => listDelegate.count({ where });
      const find = async (size: number): Promise<Omit<RecordPage, "total">> => {
        try {
          const args = { where, orderBy, skip, take: size, ...optional({ include }) };
          return { rows: await listDelegate.findMany(args), size };
        } catch (error) {
          if (databaseFaultOf(error).kind !== "too_large" || size === 1) throw error;
          return find(Math.ceil(size / 4));
        }
      };
      if (skip > 0) {
        const [found, total] = await Promise.all([find(Math.min(take, likely)), count()]);
        return { ...found, total };
      }
      // Most lists fit on their first page, which then is the count.
      const found = await find(Math.min(take, likely));
      const isWhole = found.rows.length < found.size;
      return { ...found, total: isWhole ? found.rows.length : await count() };
    },

    async find(key, where, shape) {
      try {
        const found = await delegate.findFirst({
          where: allOf([keyIs(key), where]),
          ...optional(shape),
        });
        return found ?? undefined;
      } catch (error) {
        if (databaseFaultOf(error).kind === "bad_value") return undefined;
        throw error;
      }
    },

    async create({ data, ...rest }) {
      try {
        return await written((by) => by.create({ data }), rest);
      } catch (error) {
        return refuse(definition, error);
      }
    },

    async update(key, { where, data, ...rest }) {
      try {
        return await written((by) => by.update({ where: guarded(key, where), data }), rest);
      } catch (error) {
        if (databaseFaultOf(error).kind === "not_found") return undefined;
        return refuse(definition, error);
      }
    },

    async remove(key, where) {
      try {
        await delegate.delete({ where: guarded(key, where), select: { [definition.key.name]: true } });
        return true;
      } catch (error) {
        const fault = databaseFaultOf(error);
        if (fault?.kind === "not_found" || fault.kind === "bad_value") return false;
        if (fault?.kind !== "foreign_key") throw error;
        throw new AppError("record.referenced", "The record cannot be deleted: other records refer to it.", {
          cause: error,
        });
      }
    },
  };
}

function optional(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined));
}

/** Rethrows a failed write: as a 422 when another value would have done, as it is otherwise. */
function refuse(definition: Definition, error: unknown): never {
  const fault = databaseFaultOf(error);
  switch (fault.kind) {
    case "unique":
      throw refusal(definition, fault.fields, (name) => `The ${name} has already been taken.`, error);
    case "foreign_key":
      throw refusal(definition, columnsIn(fault), (name) => `The selected ${name} is invalid.`, error);
    case "not_null":
      throw refusal(definition, columnsIn(fault), (name) => `The ${name} field is required.`, error);
    // Which column it is, the server does not say.
    case "check":
    case "bad_value":
      throw validationError({}, error);
    case "not_found":
    case "unavailable":
    case "too_large":
    case "other":
      throw error;
  }
}

function columnsIn({ field }: { readonly field?: string }): readonly string[] {
  return field === undefined ? [] : [field];
}

function refusal(
  definition: Definition,
  columns: readonly string[],
  messageFor: (attribute: string) => string,
  cause: unknown,
): AppError {
  const names = columns.map(
    (column) => definition.fields.find((field) => field.column === column)?.name ?? column,
  );
  return validationError(
    Object.fromEntries(names.map((name) => [name, [messageFor(name.replaceAll("_", " "))]])),
    cause,
  );
}
