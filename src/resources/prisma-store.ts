import type { Delegate, ModelsClient } from "../db/prisma-internals/models-client.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { validationError, type AppError } from "../kit/errors.ts";
import type { Definition, Definitions, Row } from "../mapping/definition.ts";
import { isAlways, type Condition } from "../querying/condition.ts";
import { prismaWhereOf } from "../querying/to-prisma.ts";
import { createTransform } from "../querying/transform.ts";
import type { Where } from "./access.ts";
import { allOf } from "./query.ts";
import { forbidden, refuseDelete, refuseWrite } from "./refusals.ts";
import { readPage, type Total } from "./list-page.ts";
import type { Found, Include, RecordStore, Written } from "./record-store.ts";

/**
 * Reads and writes the records of a resource through the Prisma client. Needed for arguments of
 * code modules that only this client knows.
 */
export function createPrismaStore({
  definition,
  definitions,
  models,
}: {
  readonly definition: Definition;
  readonly definitions: Definitions;
  readonly models: ModelsClient;
}): RecordStore {
  const delegate = models.delegate(definition.model);
  const listDelegate = models.listDelegate(definition.model);
  const transform = createTransform(definition, definitions);
  const foundOf = (row: Row): Found => ({
    isAllowed: true,
    access: row,
    json: () => JSON.stringify(transform(row)),
  });

  const keyIs = (key: unknown): Where => ({ [definition.key.name]: key });
  /**
   * In the statement itself, so that a change of owner between a check and a write cannot slip
   * through.
   */
  const guarded = (key: unknown, where: Where): Where => ({ ...keyIs(key), AND: [where] });

  /**
   * Returns the written record with its relations. Reads them afterwards: a write with `include` is
   * a transaction of Prisma's. That takes three more round trips and holds the row meanwhile.
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
      present(foundOf(await withRelations(by, await write(by), include)));
    // What is read after the write, by arguments of a code module, can fail too.
    return definition.code.transform === undefined && include === undefined && !isUndone
      ? act(delegate)
      : models.transaction((delegateOf) => act(delegateOf(definition.model)));
  }

  return {
    async list(query, part) {
      refuseAsked(definition, query.asked);
      const { orderBy, include } = query;
      const where = guardedBy(query.access, query.where);
      const read = async (size: number): Promise<readonly string[]> => {
        const args = { where, orderBy, skip: part.skip, take: size, ...optional({ include }) };
        const rows = await listDelegate.findMany(args);
        return rows.map((row) => JSON.stringify(transform(row)));
      };
      const count = async (): Promise<Total> => ({
        total: await listDelegate.count({ where }),
        isEstimate: false,
      });
      return readPage(part, { read, count });
    },

    async listByCursor({ asked }) {
      return refuseAsked(definition, [...asked, "cursor"]) as never;
    },

    async find(key, where, shape, access) {
      const filter = allOf([keyIs(key), where]);
      try {
        const row = await delegate.findFirst({
          where: filter,
          ...(shape === "access" ? {} : optional(shape)),
        });
        if (row === null) return undefined;
        const isAllowed =
          isAlways(access) || (await delegate.findFirst({ where: guardedBy(access, filter) })) !== null;
        return { ...foundOf(row), isAllowed };
      } catch (error) {
        if (databaseFaultOf(error).kind === "bad_value") return undefined;
        throw error;
      }
    },

    async create({ data, ...rest }) {
      const create = async (by: Delegate): Promise<Row> => {
        const row = await by.create({ data });
        const fitting = guardedBy(rest.access, keyIs(row[definition.key.name]));
        if (!isAlways(rest.access) && (await by.findFirst({ where: fitting })) === null) throw forbidden();
        return row;
      };
      try {
        return await written(create, { ...rest, isUndone: rest.isUndone || !isAlways(rest.access) });
      } catch (error) {
        return refuseWrite(definition, error);
      }
    },

    version: () => Promise.reject(noVersions(definition)),

    async update(key, { where, version, data, ...rest }) {
      if (version !== undefined) throw noVersions(definition);
      try {
        const filter = guardedBy(rest.access, where);
        return await written((by) => by.update({ where: guarded(key, filter), data }), rest);
      } catch (error) {
        if (databaseFaultOf(error).kind === "not_found") return undefined;
        return refuseWrite(definition, error);
      }
    },

    async remove(key, where, access, version) {
      if (version !== undefined) throw noVersions(definition);
      try {
        await delegate.delete({
          where: guarded(key, guardedBy(access, where)),
          select: { [definition.key.name]: true },
        });
        return true;
      } catch (error) {
        return refuseDelete(error);
      }
    },
  };
}

/** Throws for a rule of access that Prisma cannot say, which the loader refuses. */
function guardedBy(access: Condition, where: Where): Where {
  const filter = prismaWhereOf(access);
  if (filter === undefined) throw new Error("A rule of access cannot be said to the Prisma client");
  return filter === "nothing" ? { OR: [] } : allOf([where, filter]);
}

/** Throws when a request asks for what only the compiler of queries gives. */
function refuseAsked({ name }: Definition, asked: readonly string[]): void {
  if (asked.length === 0) return;
  const message = `Lists of ${name} cannot be asked for this: their code module gives arguments that only Prisma knows.`;
  throw validationError(Object.fromEntries(asked.map((parameter) => [parameter, [message]])));
}

function noVersions({ name }: Definition): AppError {
  const message = `${name} takes no If-Match: its code module gives arguments that only Prisma knows.`;
  return validationError({ "If-Match": [message] });
}

function optional(args: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(args).filter(([, value]) => value !== undefined));
}
