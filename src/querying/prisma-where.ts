import type { Definition, Definitions, Field, PrismaArgs } from "../mapping/definition.ts";
import {
  always,
  allOf,
  isAlways,
  not,
  type Comparison,
  type Condition,
  type Parameter,
} from "./condition.ts";
import { linkOf, type Link } from "./links.ts";
import { isUserValue } from "./user-values.ts";
import { scalarParameter } from "./values.ts";

/**
 * An argument that only the Prisma client supports. Thrown by the compiler, and caught in
 * `conditionOf`.
 */
class UnknownArgument extends Error {}

/**
 * Returns the condition of a Prisma filter. Returns undefined for a filter with a part that this
 * compiler does not know. Such a filter goes to the Prisma client instead.
 */
export function conditionOf(
  definition: Definition,
  definitions: Definitions,
  where: PrismaArgs | undefined,
): Condition | undefined {
  try {
    return where === undefined ? always : whereOf({ definition, definitions, isNegated: false }, where);
  } catch (error) {
    if (error instanceof UnknownArgument) return undefined;
    throw error;
  }
}

interface Place {
  readonly definition: Definition;
  readonly definitions: Definitions;
  /**
   * Whether the place is within a NOT, where a filter that is neither true nor false counts as
   * true.
   */
  readonly isNegated: boolean;
}

function whereOf(place: Place, where: PrismaArgs): Condition {
  return allOf(
    Object.entries(where)
      .filter(([, value]) => value !== undefined)
      .map(([name, value]) => partOf(place, name, value)),
  );
}

function partOf(place: Place, name: string, value: unknown): Condition {
  const { definition, definitions } = place;
  // Prisma drops filters without conditions: `OR: [{}]` is like `OR: []`, and finds no record.
  const each = (within = place): readonly Condition[] =>
    [value]
      .flat()
      .map((item) => whereOf(within, argsOf(item)))
      .filter((of) => !isAlways(of));
  if (name === "AND") return allOf(each());
  if (name === "OR") return { kind: "any", of: Array.isArray(value) ? each() : unknown() };
  if (name === "NOT") return allOf(each(negated(place)).map(not));

  const field = definition.fields.find((candidate) => candidate.name === name);
  if (field !== undefined) return field.isList ? listFilter(field, value) : scalarFilter(field, value);
  const relation = definition.relations.find((candidate) => candidate.name === name);
  if (relation === undefined) return unknown();
  const link = linkOf(definition, relation, definitions);
  return link.isMany ? manyFilter(link, place, value) : oneFilter(link, place, value);
}

function negated(place: Place): Place {
  return { ...place, isNegated: !place.isNegated };
}

/**
 * Compiles a filter on a related record. Prisma joins that record. In a negated place, a filter
 * that is NULL does not count as false.
 */
function oneFilter(link: Link, place: Place, value: unknown): Condition {
  const there: Condition = { kind: "related", link, of: always };
  const one = (filter: unknown, { isNegated }: Place): Condition => {
    const of = whereOf({ ...place, definition: link.target, isNegated }, argsOf(filter));
    return { kind: "related", link, of: isNegated && !isAlways(of) ? { kind: "notFalse", of } : of };
  };
  if (value === null) return not(there);
  const args = argsOf(value);
  if (!("is" in args) && !("isNot" in args)) {
    const found = one(args, place);
    return found.kind === "related" && isAlways(found.of) ? always : found;
  }
  return allOf(
    Object.entries(args).map(([word, filter]) => {
      if (word === "is") return filter === null ? not(there) : one(filter, place);
      if (word !== "isNot") return unknown();
      return filter === null ? there : not(one(filter, negated(place)));
    }),
  );
}

function manyFilter(link: Link, place: Place, value: unknown): Condition {
  const related = (of: Condition): Condition => ({ kind: "related", link, of });
  // The existence of such a record is true or false, within a NOT too.
  const within = (isNegated: boolean): Place => ({ ...place, definition: link.target, isNegated });
  return allOf(
    Object.entries(argsOf(value)).map(([word, filter]): Condition => {
      if (word === "some") return related(whereOf(within(false), argsOf(filter)));
      if (word === "none") return not(related(whereOf(within(false), argsOf(filter))));
      if (word !== "every") return unknown();
      return not(related(not(whereOf(within(true), argsOf(filter)))));
    }),
  );
}

const comparisons: Readonly<Record<string, Comparison>> = {
  equals: "=",
  lt: "<",
  lte: "<=",
  gt: ">",
  gte: ">=",
};

function scalarFilter(field: Field, value: unknown): Condition {
  // Filters on Json are a separate language.
  if (field.type === "Json") return unknown();
  if (!isArgs(value)) return equalTo(field, value);
  const isInsensitive = value["mode"] === "insensitive";
  const { mode, ...filters } = value;
  if (mode !== undefined && mode !== "default" && mode !== "insensitive") return unknown();
  return allOf(
    Object.entries(filters)
      .filter(([, operand]) => operand !== undefined)
      .map(([operator, operand]) => operation(field, operator, operand, isInsensitive)),
  );
}

function operation(field: Field, operator: string, operand: unknown, isInsensitive: boolean): Condition {
  const like = (pattern: string): Condition => ({
    kind: "like",
    field,
    pattern,
    isCaseSensitive: !isInsensitive,
  });
  switch (operator) {
    case "contains":
      return like(`%${textOf(field, operand)}%`);
    case "startsWith":
      return like(`${textOf(field, operand)}%`);
    case "endsWith":
      return like(`%${textOf(field, operand)}`);
  }
  // Prisma has its own ways of comparing case-insensitively.
  if (isInsensitive) return unknown();
  switch (operator) {
    case "not":
      if (!isArgs(operand)) return differentFrom(field, operand);
      // Prisma negates each part separately, and all negated parts must hold.
      return allOf(
        Object.entries(operand).map(([word, value]) => not(scalarFilter(field, { [word]: value }))),
      );
    case "in":
      return oneOf(field, operand);
    case "notIn":
      return not(oneOf(field, operand));
  }
  const comparison = comparisons[operator];
  if (comparison === undefined) return unknown();
  if (operator === "equals") return equalTo(field, operand);
  return { kind: "compare", field, operator: comparison, value: parameter(field, operand) };
}

function equalTo(field: Field, value: unknown): Condition {
  if (value === null) return { kind: "null", field };
  return { kind: "compare", field, operator: "=", value: parameter(field, value) };
}

function differentFrom(field: Field, value: unknown): Condition {
  if (value === null) return not({ kind: "null", field });
  return { kind: "compare", field, operator: "<>", value: parameter(field, value) };
}

function oneOf(field: Field, operand: unknown): Condition {
  if (isUserValue(operand)) return { kind: "in", field, values: [operand] };
  if (!Array.isArray(operand) || operand.includes(null)) return unknown();
  return { kind: "in", field, values: operand.map((item) => parameter(field, item)) };
}

function listFilter(field: Field, value: unknown): Condition {
  if (field.type === "Json") return unknown();
  if (Array.isArray(value)) return { kind: "list", field, operator: "=", values: listOf(field, value) };
  return allOf(
    Object.entries(argsOf(value)).map(([operator, operand]): Condition => {
      switch (operator) {
        case "equals":
          return { kind: "list", field, operator: "=", values: listOf(field, operand) };
        case "has":
          return { kind: "list", field, operator: "@>", values: [parameter(field, operand)] };
        case "hasEvery":
          return { kind: "list", field, operator: "@>", values: listOf(field, operand) };
        case "hasSome":
          return { kind: "list", field, operator: "&&", values: listOf(field, operand) };
        case "isEmpty": {
          const isEmpty: Condition = { kind: "list", field, operator: "=", values: [] };
          return operand === true ? isEmpty : operand === false ? not(isEmpty) : unknown();
        }
        default:
          return unknown();
      }
    }),
  );
}

function listOf(field: Field, value: unknown): readonly Parameter[] {
  if (isUserValue(value)) return [value];
  return Array.isArray(value) ? value.map((item) => parameter(field, item)) : unknown();
}

function textOf(field: Field, value: unknown): string {
  return field.type === "String" && typeof value === "string" ? value : unknown();
}

function parameter({ type }: Field, value: unknown): Parameter {
  if (isUserValue(value)) return value;
  const found = scalarParameter(type, value);
  return found === undefined || found === null ? unknown() : found;
}

/**
 * Returns whether a value consists of arguments. An object may also be a value: a date, a decimal
 * or bytes.
 */
export function isArgs(value: unknown): value is PrismaArgs {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

function argsOf(value: unknown): PrismaArgs {
  return isArgs(value) ? value : unknown();
}

function unknown(): never {
  throw new UnknownArgument();
}
