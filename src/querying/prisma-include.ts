import { isObject } from "../kit/is-object.ts";
import type { Definition, Definitions, PrismaArgs } from "../mapping/definition.ts";
import { linkOf } from "./links.ts";
import type { OrderItem } from "./order.ts";
import { conditionOf } from "./prisma-where.ts";
import type { Need, RelatedNeed } from "./selection.ts";

/**
 * Returns the fields and relations that a Prisma `include` reads: every field, and the relations
 * that it names. Returns undefined for an `include` with a part that this compiler does not know.
 */
export function needOf(
  definition: Definition,
  definitions: Definitions,
  include: PrismaArgs | undefined,
): Need | undefined {
  const related = new Map<string, RelatedNeed>();
  for (const [name, args] of Object.entries(include ?? {})) {
    if (args === false || args === undefined) continue;
    const relation = definition.relations.find((candidate) => candidate.name === name);
    if (relation === undefined || (args !== true && !isObject(args))) return undefined;
    const link = linkOf(definition, relation, definitions);
    const need = relatedNeed(link.target, definitions, link.isMany, args === true ? {} : args);
    if (need === undefined) return undefined;
    related.set(name, need);
  }
  return { fields: undefined, related };
}

const known = new Set(["include", "where", "orderBy", "take", "skip"]);

function relatedNeed(
  target: Definition,
  definitions: Definitions,
  isMany: boolean,
  args: PrismaArgs,
): RelatedNeed | undefined {
  const given = Object.entries(args).filter(([, value]) => value !== undefined);
  if (given.some(([key]) => !(isMany ? known.has(key) : key === "include"))) return undefined;
  const { include, where, orderBy, take, skip } = args;
  const need = needOf(target, definitions, include as PrismaArgs | undefined);
  const condition = conditionOf(target, definitions, where as PrismaArgs | undefined);
  const order = orderOf(target, definitions, orderBy);
  if (need === undefined || condition === undefined || order === undefined) return undefined;
  // A negative number counts from the end.
  if (!isCount(take) || !isCount(skip)) return undefined;
  return {
    need,
    where: condition,
    order,
    ...(take === undefined ? {} : { take }),
    ...(skip === undefined ? {} : { skip }),
  };
}

function isCount(value: unknown): value is number | undefined {
  return value === undefined || (Number.isInteger(value) && (value as number) >= 0);
}

/** Returns the order of Prisma's `orderBy`; undefined for one that this compiler does not know. */
export function orderOf(
  definition: Definition,
  definitions: Definitions,
  orderBy: unknown,
): readonly OrderItem[] | undefined {
  const items: OrderItem[] = [];
  for (const step of [orderBy ?? []].flat() as readonly unknown[]) {
    if (!isObject(step)) return undefined;
    for (const [name, value] of Object.entries(step)) {
      if (value === undefined) continue;
      const found = orderItem(definition, definitions, name, value);
      if (found === undefined) return undefined;
      items.push(...found);
    }
  }
  return items;
}

function orderItem(
  definition: Definition,
  definitions: Definitions,
  name: string,
  value: unknown,
): readonly OrderItem[] | undefined {
  const field = definition.fields.find((candidate) => candidate.name === name);
  if (field !== undefined) {
    const { sort, nulls } = isObject(value) ? value : { sort: value, nulls: undefined };
    if (sort !== "asc" && sort !== "desc") return undefined;
    if (nulls !== undefined && nulls !== "first" && nulls !== "last") return undefined;
    // The positions of nulls are PostgreSQL's defaults.
    return [{ links: [], field, direction: sort, nulls: nulls ?? (sort === "asc" ? "last" : "first") }];
  }
  const relation = definition.relations.find((candidate) => candidate.name === name);
  if (relation === undefined) return undefined;
  const link = linkOf(definition, relation, definitions);
  if (link.isMany) return undefined;
  const inner = orderOf(link.target, definitions, value);
  return inner?.map((item) => ({ ...item, links: [link, ...item.links] }));
}
