import { Decimal } from "../kit/prisma-values.ts";
import type { Definition, Definitions, Field, FieldType, PrismaArgs, Row } from "../mapping/definition.ts";
import { isTemporal } from "../mapping/temporal.ts";
import { comparesWithNull, type Condition, type Parameter } from "./condition.ts";
import { conditionOf, isArgs } from "./prisma-where.ts";

/**
 * A Prisma filter. "nothing" is never true: Prisma drops an `OR: []` within another OR, and finds
 * every record.
 */
type Translated = PrismaArgs | "nothing" | undefined;

/**
 * Returns the Prisma filter of a condition, for queries that the Prisma client answers. Prisma
 * treats NULL as a value, but a comparison with NULL is never true, within a NOT too.
 *
 * @returns Undefined for a condition that Prisma's filters cannot express.
 */
export function prismaWhereOf(condition: Condition): Translated {
  switch (condition.kind) {
    case "all": {
      const of = condition.of.map(prismaWhereOf).filter((one) => !isEverything(one));
      if (of.includes(undefined)) return undefined;
      if (of.includes("nothing")) return "nothing";
      return of.length === 0 ? everything : { AND: of };
    }
    case "any": {
      const of = condition.of.map(prismaWhereOf).filter((one) => one !== "nothing");
      if (of.includes(undefined)) return undefined;
      if (of.some(isEverything)) return everything;
      return of.length === 0 ? "nothing" : { OR: of };
    }
    // This comes from a relation's `none` and `every`, which have the same meaning in Prisma.
    case "notFalse":
      return prismaWhereOf(condition.of);
    case "not": {
      if (comparesWithNull(condition.of)) return "nothing";
      const of = prismaWhereOf(condition.of);
      if (of === "nothing") return everything;
      return isEverything(of) ? "nothing" : of && { NOT: of };
    }
    case "compare":
      if (condition.value === null) return "nothing";
      return {
        [condition.field.name]: { [words[condition.operator]]: valueOf(condition.field, condition.value) },
      };
    case "in":
      return { [condition.field.name]: { in: valuesOf(condition) } };
    case "null": {
      const { name, isOptional, isList } = condition.field;
      // Prisma refuses null for a required field.
      return isOptional || isList ? { [name]: null } : "nothing";
    }
    case "list":
      if (condition.operator !== "&&" && condition.values.includes(null)) return "nothing";
      return { [condition.field.name]: { [listWords[condition.operator]]: valuesOf(condition) } };
    case "related": {
      const { link } = condition;
      const of = prismaWhereOf(condition.of);
      if (of === "nothing") return of;
      return of && { [link.name]: { [link.isMany ? "some" : "is"]: of } };
    }
    case "like":
      return likeOf(condition);
    case "json":
    case "version":
      return undefined;
  }
}

/**
 * Returns a filter whose parts are in Prisma's types, as far as the compiler knows them. A mapping
 * file has texts for dates and `[a]` for an equal list, which the Prisma client refuses.
 */
export function withPrismaTypes(
  definition: Definition,
  definitions: Definitions,
  where: PrismaArgs,
): PrismaArgs {
  const parts = Object.entries(where).map(([name, value]): PrismaArgs => {
    const condition = conditionOf(definition, definitions, { [name]: value });
    const translated = condition && prismaWhereOf(condition);
    if (typeof translated === "object") return translated;
    if (translated === "nothing") return { [definition.key.name]: { in: [] } };
    if (name === "AND" || name === "OR" || name === "NOT") {
      const all = [value].flat() as readonly PrismaArgs[];
      return { [name]: all.map((one) => withPrismaTypes(definition, definitions, one)) };
    }
    const relation = definition.relations.find((one) => one.name === name);
    const target = relation && definitions.get(relation.resource);
    return { [name]: target && isArgs(value) ? typedRelated(target, definitions, value) : value };
  });
  return parts.length > 1 ? { AND: parts } : (parts[0] ?? where);
}

/** Words of filters on a relation. */
const related = ["is", "isNot", "some", "every", "none"];

function typedRelated(target: Definition, definitions: Definitions, value: PrismaArgs): PrismaArgs {
  const entries = Object.entries(value);
  if (!entries.some(([word]) => related.includes(word))) return withPrismaTypes(target, definitions, value);
  return Object.fromEntries(
    entries.map(([word, one]) => [word, isArgs(one) ? withPrismaTypes(target, definitions, one) : one]),
  );
}

/** Prisma makes the same pattern: its `contains` puts a `%` before and after a text. */
function likeOf({ field, pattern, isCaseSensitive }: Extract<Condition, { kind: "like" }>): PrismaArgs {
  const isOpen = pattern.length > 1 && pattern.startsWith("%");
  const isOpenEnded = pattern.endsWith("%");
  const text = pattern.slice(isOpen ? 1 : 0, isOpenEnded ? -1 : undefined);
  const word = !isOpen ? "startsWith" : isOpenEnded ? "contains" : "endsWith";
  return { [field.name]: { [word]: text, ...(!isCaseSensitive && { mode: "insensitive" }) } };
}

const everything: PrismaArgs = {};

function isEverything(translated: Translated): boolean {
  return typeof translated === "object" && Object.keys(translated).length === 0;
}

const words = { "=": "equals", "<>": "not", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte" } as const;
const listWords = { "=": "equals", "&&": "hasSome", "@>": "hasEvery" } as const;

const decoders: Partial<Record<FieldType, (text: string) => unknown>> = {
  Int: Number,
  Float: Number,
  BigInt,
  Decimal: (text) => new Decimal(text),
  // A JavaScript date beyond the year 9999 needs a sign.
  DateTime: (text) => new Date(text.replace(/^(?=\d{5})/, "+0")),
  Date: (text) => new Date(text),
  Time: (text) => new Date(`1970-01-01T${text}Z`),
};

/**
 * Returns the values without NULL, which is no value of a list. Also omits numbers that Prisma has
 * no JSON for.
 */
function valuesOf({ field, values }: Extract<Condition, { kind: "in" | "list" }>): readonly unknown[] {
  return values
    .filter((value) => value !== null)
    .map((value) => valueOf(field, value))
    .filter((value) => typeof value !== "number" || Number.isFinite(value));
}

function valueOf({ type }: Field, value: Parameter): unknown {
  return typeof value === "string" ? (decoders[type]?.(value) ?? value) : value;
}

/** Converts a value of a field for the Prisma client, which does not accept days as texts. */
export function prismaValue({ type }: Pick<Field, "type">, value: unknown): unknown {
  if (!isTemporal({ type })) return value;
  if (Array.isArray(value)) return value.map((item) => prismaValue({ type }, item));
  return typeof value === "string" ? decoders[type]?.(value) : value;
}

/** Converts the values to write for the Prisma client. */
export function prismaData({ fields }: Pick<Definition, "fields">, data: Row): Row {
  const temporal = fields.filter((field) => isTemporal(field) && field.name in data);
  if (temporal.length === 0) return data;
  const values = temporal.map((field) => [field.name, prismaValue(field, data[field.name])] as const);
  return { ...data, ...Object.fromEntries(values) };
}
