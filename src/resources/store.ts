import { AppError, validationError } from "../errors.ts";
import type { Delegate } from "../db/models-client.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { Where } from "./access.ts";
import type { BaseQuery, Definition, Row } from "./definition.ts";
import { allOf, type ListQuery } from "./query.ts";

export type Include = BaseQuery["include"];

/** What of a record is read: its fields and the relations of `include`, or only `select`. */
export type Shape = { readonly include: Include } | { readonly select: Readonly<Record<string, true>> };

export interface RecordPage {
  readonly rows: readonly Row[];
  /** Of all pages. */
  readonly total: number;
}

/** The records of one resource. What the database refuses comes out as an AppError that names the field. */
export interface RecordStore {
  list(query: ListQuery, part: { readonly skip: number; readonly take: number }): Promise<RecordPage>;
  /** The record with the key, if the filter leaves it. */
  find(key: unknown, where: Where | undefined, shape: Shape): Promise<Row | undefined>;
  create(data: Row, include: Include): Promise<Row>;
  /** Undefined when the record is gone, or no longer what the filter asks for. */
  update(
    key: unknown,
    options: { readonly where: Where; readonly data: Row; readonly include: Include },
  ): Promise<Row | undefined>;
  /** False when there was nothing to delete. */
  remove(key: unknown, where: Where): Promise<boolean>;
}

export function createStore({
  definition,
  delegate,
}: {
  readonly definition: Definition;
  readonly delegate: Delegate;
}): RecordStore {
  const keyIs = (key: unknown): Where => ({ [definition.key.name]: key });
  /** In the statement itself, so that a change of owner between a check and a write cannot slip through. */
  const guarded = (key: unknown, where: Where): Where => ({ ...keyIs(key), AND: [where] });

  /**
   * The written record with its relations. Read afterwards: a write with `include` is a transaction of Prisma's, which takes
   * three more round trips and holds the row meanwhile.
   */
  async function withRelations(row: Row, include: Include): Promise<Row> {
    if (include === undefined) return row;
    const read = await delegate.findFirst({ where: keyIs(row[definition.key.name]), include });
    return read ?? row;
  }

  return {
    async list({ where, orderBy, include }, { skip, take }) {
      const find = (): Promise<readonly Row[]> =>
        delegate.findMany({ where, orderBy, skip, take, ...optional({ include }) });
      const count = (): Promise<number> => delegate.count({ where });
      if (skip > 0) {
        const [rows, total] = await Promise.all([find(), count()]);
        return { rows, total };
      }
      // Most lists fit on their first page, which then is the count.
      const rows = await find();
      return { rows, total: rows.length < take ? rows.length : await count() };
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

    async create(data, include) {
      try {
        return await withRelations(await delegate.create({ data }), include);
      } catch (error) {
        return refuse(definition, error);
      }
    },

    async update(key, { where, data, include }) {
      try {
        return await withRelations(await delegate.update({ where: guarded(key, where), data }), include);
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
