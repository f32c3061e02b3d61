import { Decimal } from "@prisma/client/runtime/client";
import type { Definition, Field, FieldType, Row } from "../mapping/definition.ts";
import { comparesWithNull, type Condition, type Parameter } from "./condition.ts";

type Where = Readonly<Record<string, unknown>>;

const nothing: Where = { OR: [] };

/**
 * Returns the Prisma filter of a condition, for the queries that the Prisma client answers.
 * "nothing" for one that compares with NULL, which Prisma takes for a value. Undefined for one that
 * Prisma's filters cannot say.
 */
export function prismaWhereOf(condition: Condition): Where | "nothing" | undefined {
  if (comparesWithNull(condition)) return "nothing";
  return translate(condition);
}

function translate(condition: Condition): Where | undefined {
  switch (condition.kind) {
    case "all":
    case "any": {
      const of = condition.of.map(translate);
      if (of.includes(undefined)) return undefined;
      if (condition.kind === "any") return of.length === 0 ? nothing : { OR: of };
      return of.length === 0 ? {} : { AND: of };
    }
    // What a relation's `none` and `every` were made of: Prisma means the same by them.
    case "notFalse":
      return translate(condition.of);
    case "not": {
      const of = translate(condition.of);
      return of && { NOT: of };
    }
    case "compare":
      return {
        [condition.field.name]: { [words[condition.operator]]: valueOf(condition.field, condition.value) },
      };
    case "in": {
      const values = condition.values.map((value) => valueOf(condition.field, value));
      return { [condition.field.name]: { in: values } };
    }
    case "null":
      return { [condition.field.name]: null };
    case "list": {
      const values = condition.values.map((value) => valueOf(condition.field, value));
      return { [condition.field.name]: { [listWords[condition.operator]]: values } };
    }
    case "related": {
      const { link } = condition;
      const of = translate(condition.of);
      return of && { [link.name]: { [link.isMany ? "some" : "is"]: of } };
    }
    case "like":
    case "json":
    case "version":
      return undefined;
  }
}

const words = { "=": "equals", "<>": "not", "<": "lt", "<=": "lte", ">": "gt", ">=": "gte" } as const;
const listWords = { "=": "equals", "&&": "hasSome", "@>": "hasEvery" } as const;

const decoders: Partial<Record<FieldType, (text: string) => unknown>> = {
  Int: Number,
  Float: Number,
  BigInt,
  Decimal: (text) => new Decimal(text),
  // A date of JavaScript beyond the year 9999 has a sign.
  DateTime: (text) => new Date(text.replace(/^(?=\d{5})/, "+0")),
  Date: (text) => new Date(text),
  Time: (text) => new Date(`1970-01-01T${text}Z`),
};

function valueOf({ type }: Field, value: Parameter): unknown {
  return typeof value === "string" ? (decoders[type]?.(value) ?? value) : value;
}

/** Returns a value of a field as the Prisma client takes it, which knows no days as texts. */
export function prismaValue({ type }: Pick<Field, "type">, value: unknown): unknown {
  if (type !== "Date" && type !== "Time") return value;
  if (Array.isArray(value)) return value.map((item) => prismaValue({ type }, item));
  return typeof value === "string" ? decoders[type]?.(value) : value;
}

/** Returns the values to write as the Prisma client takes them. */
export function prismaData({ fields }: Pick<Definition, "fields">, data: Row): Row {
  const temporal = fields.filter(({ type, name }) => (type === "Date" || type === "Time") && name in data);
  if (temporal.length === 0) return data;
  const values = temporal.map((field) => [field.name, prismaValue(field, data[field.name])] as const);
  return { ...data, ...Object.fromEntries(values) };
}
