import { isDeepStrictEqual } from "node:util";
import { isObject } from "../kit/is-object.ts";
import { callCode } from "../mapping/code-module.ts";
import { escapeLike } from "../querying/condition.ts";
import { isArgs } from "../querying/prisma-where.ts";
import type { BaseQuery, Definition, PrismaArgs } from "../mapping/definition.ts";

/** The query of a list, as Prisma arguments. */
export interface PrismaQuery {
  readonly where: PrismaArgs;
  readonly orderBy: readonly PrismaArgs[];
  readonly include: PrismaArgs | undefined;
}

/**
 * Returns the query of a list: the base query's records that match the search. The order is total,
 * because the key comes last.
 *
 * @param search Search term of the client; undefined and empty terms match everything.
 * @returns "nothing" when no record can match.
 */
export function listQuery(definition: Definition, search?: string): PrismaQuery | "nothing" {
  const base = baseQueryOf(definition);
  const searched = search === undefined || search === "" ? base : searchedQuery(definition, base, search);
  if (searched === "nothing") return "nothing";
  return {
    where: searched.where ?? {},
    // A code module may give one order without a list, which Prisma accepts.
    orderBy: totalOrder(definition, [searched.orderBy ?? []].flat()),
    include: searched.include,
  };
}

/**
 * Returns the base query of every read. A code module runs each time, because its scope may depend
 * on the clock.
 */
export function baseQueryOf(definition: Definition): BaseQuery {
  const { baseQuery } = definition.code;
  return baseQuery === undefined ? definition.baseQuery : queryAnswer(definition, "baseQuery", baseQuery);
}

/** Names the export whose `return` is missing. */
function queryAnswer(
  definition: Definition,
  name: "baseQuery" | "applySearch",
  call: () => BaseQuery,
): BaseQuery {
  const query = callCode(definition, name, call);
  if (isObject(query)) return query;
  throw new Error(`${name} of the resource ${definition.name} must answer arguments of findMany`);
}

/** Combines filters so that all of them must hold, and none can widen another. */
export function whereAll(filters: readonly (PrismaArgs | undefined)[]): PrismaArgs {
  const present = filters.filter((filter) => filter !== undefined && Object.keys(filter).length > 0);
  return present.length === 1 ? (present[0] as PrismaArgs) : present.length === 0 ? {} : { AND: present };
}

function searchedQuery(definition: Definition, base: BaseQuery, search: string): BaseQuery | "nothing" {
  // No text in PostgreSQL contains a NUL, and a query with one is an error there.
  if (search.includes("\0")) return "nothing";
  const { applySearch } = definition.code;
  if (applySearch !== undefined) {
    const found = queryAnswer(definition, "applySearch", () => applySearch(copyOf(base), search));
    // Uses the same object, which identifies the plan of the read.
    const { include } = base;
    return include !== undefined && isDeepStrictEqual(found.include, include) ? { ...found, include } : found;
  }
  if (definition.searchableColumns.length === 0) return base;
  // Prisma passes `contains` to ILIKE unchanged: `%` would match all, and a `\` at the end is an
  // error.
  const contains = { contains: escapeLike(search), mode: "insensitive" };
  const matches = definition.searchableColumns.map((name) => ({ [name]: contains }));
  return { ...base, where: whereAll([base.where, { OR: matches }]) };
}

/**
 * Copies the objects and lists of a query, because code may change them and all requests share
 * them. Leaves values as they are, such as dates and decimals.
 */
function copyOf<T>(query: T): T {
  if (Array.isArray(query)) return query.map(copyOf) as T;
  if (!isArgs(query)) return query;
  return Object.fromEntries(Object.entries(query).map(([name, value]) => [name, copyOf(value)])) as T;
}

function totalOrder(
  definition: Definition,
  orderBy: NonNullable<BaseQuery["orderBy"]>,
): readonly PrismaArgs[] {
  const missing = definition.keys.filter(({ name }) => !orderBy.some((item) => name in item));
  return missing.length === 0 ? orderBy : [...orderBy, ...missing.map(({ name }) => ({ [name]: "asc" }))];
}
