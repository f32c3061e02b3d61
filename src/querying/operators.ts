import type { Field, FieldType } from "../mapping/definition.ts";
import { hasOrder } from "../mapping/native.ts";

const equality = ["eq", "ne", "in", "not_in", "null"] as const;
const order = ["lt", "lte", "gt", "gte", "between"] as const;
const text = ["contains", "starts_with", "ends_with"] as const;
const lists = ["has", "has_any", "has_all", "null"] as const;

/** Every operator, whatever types it is for. */
export const operators = [...new Set([...equality, ...order, ...text, ...lists])];
export type Operator = (typeof operators)[number];
/** Those that look for a part of a text. */
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
  // What is within it, by `jsonPath`.
  Json: [...equality, ...order, ...text],
  Bytes: [],
  Uuid: [...equality, ...order],
  Enum: [...equality, ...text],
};

/** What is behind a path, as far as it says what the path can be filtered by. */
export interface Filterable {
  readonly field: Field;
  /** What it can be filtered by; undefined: by all that its type has. */
  readonly operators?: readonly Operator[];
}

/** Returns what a path can be filtered by. */
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

/** Returns what is wrong with the number of values, as a sentence; undefined for nothing. */
export function countFault(operator: Operator, count: number, shown: Filterable): string | undefined {
  const takesOne = oneValue.includes(operator) || (operator === "eq" && !operatorsOf(shown).includes("in"));
  if (takesOne && count !== 1) return `${operator} takes one value; write \\, for a comma in it.`;
  if (operator === "between" && count !== 2)
    return "between takes two values with a comma between them; write \\, for a comma in one.";
  return undefined;
}
