import type { Field, FieldType } from "../mapping/definition.ts";
import { hasOrder } from "../mapping/native.ts";

const equality = ["eq", "ne", "in", "not_in", "null"] as const;
const order = ["lt", "lte", "gt", "gte", "between"] as const;
const text = ["contains", "starts_with", "ends_with"] as const;
const lists = ["has", "has_any", "has_all", "null"] as const;

/** Every operator, of all types. */
export const operators = [...new Set([...equality, ...order, ...text, ...lists])];
export type Operator = (typeof operators)[number];
/** Operators that search for a part of a text. */
export const textOperators: readonly Operator[] = text;

const byType: Readonly<Record<FieldType, readonly Operator[]>> = {
  Int: [...equality, ...order],
  BigInt: [...equality, ...order],
  Float: [...equality, ...order],
  Decimal: [...equality, ...order],
  String: [...equality, ...order, ...text],
  Boolean: equality,
  DateTime: [...equality, ...order],
  Instant: [...equality, ...order],
  Date: [...equality, ...order],
  Time: [...equality, ...order],
  Interval: [...equality, ...order],
  // The values within it, by `jsonPath`.
  Json: [...equality, ...order, ...text],
  Bytes: [],
  Uuid: [...equality, ...order],
  Enum: [...equality, ...text],
};

/** The target of a path, as far as it decides on the operators of the path. */
export interface Filterable {
  readonly field: Field;
  /** Operators of its filters. Undefined: all operators of its type. */
  readonly operators?: readonly Operator[];
}

/** Returns the operators of a path's filters. */
export function operatorsOf(shown: Filterable): readonly Operator[] {
  const { field } = shown;
  if (shown.operators !== undefined) return shown.operators;
  if (field.isList) return lists;
  return hasOrder(field) ? byType[field.type] : [...equality, ...text];
}

export function isOperator(word: string): word is Operator {
  return operators.some((known) => known === word);
}

const oneValue: readonly Operator[] = ["ne", "lt", "lte", "gt", "gte", "null", "has", ...text];

/** Returns the fault of the number of values, as a sentence; undefined without one. */
export function countFault(operator: Operator, count: number, shown: Filterable): string | undefined {
  const takesOne = oneValue.includes(operator) || (operator === "eq" && !operatorsOf(shown).includes("in"));
  if (takesOne && count !== 1) return `${operator} takes one value; write \\, for a comma in it.`;
  if (operator === "between" && count !== 2)
    return "between takes two values with a comma between them; write \\, for a comma in one.";
  return undefined;
}
