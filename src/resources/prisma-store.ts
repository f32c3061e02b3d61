import type { Delegate, ModelsClient } from "../db/models-client.ts";
import { databaseFaultOf } from "../db/database-fault.ts";
import { validationError, type AppError } from "../kit/errors.ts";
import type { Definition, Definitions, PrismaArgs, Row } from "../mapping/definition.ts";
import { isAlways, type Condition } from "../querying/condition.ts";
import { exactTotal, type Total } from "../querying/count.ts";
import { prismaData, prismaValue, prismaWhereOf } from "../querying/to-prisma.ts";
import { createTransform } from "../querying/transform.ts";
import { whereAll } from "./query.ts";
import { forbidden, refuseDelete, refuseWrite } from "./refusals.ts";
import { readPage, type ListPart, type NumberedPage } from "../querying/list-page.ts";
import type {
  Found,
  WriteConditions,
  Include,
  ListQuery,
  RecordRead,
  RecordStore,
  RecordWrite,
} from "./record-store.ts";

interface Context {
  readonly definition: Definition;
  readonly models: () => Promise<ModelsClient>;
  readonly transform: (row: Row) => unknown;
  /** Returns a filter of the base query in Prisma's types. */
  readonly typed: (where: PrismaArgs) => PrismaArgs;
}

/**
 * Reads and writes the records of a resource through the Prisma client. It is needed for arguments
 * of code modules that only this client supports.
 */
export function createPrismaStore({
  definition,
  definitions,
  models,
  typed = (where) => where,
}: Pick<Context, "definition" | "models"> &
  Partial<Pick<Context, "typed">> & { readonly definitions: Definitions }): RecordStore {
  const context = { definition, models, typed, transform: createTransform(definition, definitions) };
  return {
    list: (query, part) => list(context, query, part),
    listByCursor: async ({ asked }) => refuseAsked(definition, [...asked, "cursor"]) as never,
    find: (key, read) => find(context, key, read),
    create: (options) => create(context, options),
    version: () => Promise.reject(noVersions(definition)),
    update: (key, options) => update(context, key, options),
    remove: (key, conditions) => remove(context, key, conditions),
  };
}

async function list(
  { definition, models, transform, typed }: Context,
  { asked, access, where: filter, orderBy, include }: ListQuery,
  part: ListPart,
): Promise<NumberedPage<string>> {
  refuseAsked(definition, asked);
  const delegate = (await models()).listDelegate(definition.model);
  const where = guardedBy(access, typed(filter));
  const read = async (size: number): Promise<readonly string[]> => {
    const args = { where, orderBy, skip: part.skip, take: size, include };
    const rows = await delegate.findMany(args);
    return rows.map((row) => JSON.stringify(transform(row)));
  };
  const count = async (): Promise<Total> => exactTotal(await delegate.count({ where }));
  return readPage(part, { read, count });
}

async function find(
  context: Context,
  key: unknown,
  { where, shape, access }: RecordRead,
): Promise<Found | undefined> {
  const { definition, models, typed } = context;
  const delegate = (await models()).delegate(definition.model);
  const filter = whereAll([keyIs(definition, key), where && typed(where)]);
  try {
    const row = await delegate.findFirst({
      where: filter,
      include: shape === "access" ? undefined : shape.include,
    });
    if (row === null) return undefined;
    const isAllowed =
      isAlways(access) || (await delegate.findFirst({ where: guardedBy(access, filter) })) !== null;
    return { ...foundOf(context, row), isAllowed };
  } catch (error) {
    if (databaseFaultOf(error).kind === "bad_value") return undefined;
    throw error;
  }
}

/** Refuses NULL within a list, for which the Prisma client has no form. */
function dataFor(definition: Definition, data: Row): Row {
  const places = definition.fields.flatMap(({ name, isList }) => {
    const items: unknown = isList ? data[name] : undefined;
    return Array.isArray(items) && items.includes(null) ? [`${name}.${items.indexOf(null)}`] : [];
  });
  if (places.length === 0) return prismaData(definition, data);
  throw validationError(
    Object.fromEntries(places.map((place) => [place, [`The ${place} field is required.`]])),
  );
}

async function create<T>(context: Context, { data, ...rest }: RecordWrite<T>): Promise<T> {
  const { definition } = context;
  const insert = async (by: Delegate): Promise<Row> => {
    const row = await by.create({ data: dataFor(definition, data) });
    const fitting = guardedBy(rest.access, keyIs(definition, keyIn(definition, row)));
    if (!isAlways(rest.access) && (await by.findFirst({ where: fitting })) === null) throw forbidden();
    return row;
  };
  try {
    return await written(context, insert, { ...rest, isUndone: rest.isUndone || !isAlways(rest.access) });
  } catch (error) {
    return refuseWrite(definition, error);
  }
}

async function update<T>(
  context: Context,
  key: unknown,
  { where, version, data, ...rest }: RecordWrite<T> & WriteConditions,
): Promise<T | undefined> {
  const { definition } = context;
  if (version !== undefined) throw noVersions(definition);
  try {
    const filter = guardedKey(definition, key, guardedBy(rest.access, context.typed(where)));
    return await written(
      context,
      (by) => by.update({ where: filter, data: dataFor(definition, data) }),
      rest,
    );
  } catch (error) {
    if (databaseFaultOf(error).kind === "not_found") return undefined;
    return refuseWrite(definition, error, "update");
  }
}

async function remove(
  { definition, models, typed }: Context,
  key: unknown,
  { where, access, version }: WriteConditions,
): Promise<boolean> {
  if (version !== undefined) throw noVersions(definition);
  try {
    const delegate = (await models()).delegate(definition.model);
    await delegate.delete({
      where: guardedKey(definition, key, guardedBy(access, typed(where))),
      select: Object.fromEntries(definition.keys.map(({ name }) => [name, true])),
    });
    return true;
  } catch (error) {
    return refuseDelete(error);
  }
}

/**
 * Runs a write. Uses a transaction, with its two round trips, only when something can fail after
 * the write.
 */
async function written<T>(
  context: Context,
  write: (by: Delegate) => Promise<Row>,
  { include, present, isUndone }: Omit<RecordWrite<T>, "data">,
): Promise<T> {
  const { definition } = context;
  const models = await context.models();
  const act = async (by: Delegate): Promise<T> =>
    present(foundOf(context, await withRelations(by, definition, await write(by), include)));
  // The read after the write, with arguments of a code module, can fail too.
  return definition.code.transform === undefined && include === undefined && !isUndone
    ? act(models.delegate(definition.model))
    : models.transaction((delegateOf) => act(delegateOf(definition.model)));
}

/**
 * Returns the written record with its relations. Reads them afterwards, because Prisma runs a write
 * with `include` as a transaction. That takes three more round trips and holds the row meanwhile.
 */
async function withRelations(by: Delegate, definition: Definition, row: Row, include: Include): Promise<Row> {
  if (include === undefined) return row;
  const read = await by.findFirst({ where: keyIs(definition, keyIn(definition, row)), include });
  return read ?? row;
}

function foundOf({ transform }: Context, row: Row): Found {
  return { isAllowed: true, access: row, json: () => JSON.stringify(transform(row)) };
}

/** Returns the filter for a key in the form of `parseId`. */
function keyIs({ keys }: Definition, key: unknown): PrismaArgs {
  const values: readonly unknown[] = Array.isArray(key) ? key : [key];
  return Object.fromEntries(keys.map((field, index) => [field.name, prismaValue(field, values[index])]));
}

function keyIn({ keys }: Definition, row: Row): unknown {
  return keys.length === 1 ? row[keys[0]?.name ?? ""] : keys.map(({ name }) => row[name]);
}

/**
 * Returns the filter of a write with its conditions. They are part of the statement, so that no
 * change of owner slips in between a check and a write.
 */
function guardedKey(definition: Definition, key: unknown, where: PrismaArgs): PrismaArgs {
  const { keys } = definition;
  const values = keyIs(definition, key);
  // Prisma has one name for a key of several fields.
  const unique = keys.length === 1 ? values : { [keys.map(({ name }) => name).join("_")]: values };
  return { ...unique, AND: [where] };
}

/**
 * Adds a rule of access to a filter. Throws for a rule that Prisma cannot express, which the loader
 * refuses.
 */
function guardedBy(access: Condition, where: PrismaArgs): PrismaArgs {
  const filter = prismaWhereOf(access);
  if (filter === undefined) throw new Error("A rule of access cannot be said to the Prisma client");
  return filter === "nothing" ? { OR: [] } : whereAll([where, filter]);
}

/** Throws for a request whose parameters only the compiler of queries supports. */
function refuseAsked({ name }: Definition, asked: readonly string[]): void {
  if (asked.length === 0) return;
  const message = `Lists of ${name} cannot be asked for this: their code module gives arguments that only Prisma knows.`;
  throw validationError(Object.fromEntries(asked.map((parameter) => [parameter, [message]])));
}

function noVersions({ name }: Definition): AppError {
  const message = `${name} takes no If-Match: its code module gives arguments that only Prisma knows.`;
  return validationError({ "If-Match": [message] });
}
