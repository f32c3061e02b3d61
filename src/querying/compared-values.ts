import { Decimal } from "../kit/prisma-values.ts";
import type { FieldType } from "../mapping/definition.ts";

/** A value in the form in which two of a type are compared. */
export type Comparable = string | number | bigint | boolean | Decimal;

/** How filters of webhooks compare the values of a type. */
export interface Comparison {
  /** @param value Of the JSON, or of the filter; not null. */
  readonly read: (value: unknown) => Comparable;
  /** Steps that reading takes, and those for each character of a text. */
  readonly steps: readonly [each: number, character: number];
}

function by(read: (value: unknown) => Comparable, each = 8, character = 0): Comparison {
  return { read, steps: [each, character] };
}

export const byText = by(String);
const byNumber = by(Number);

export const comparisons: Readonly<Record<FieldType, Comparison>> = {
  Int: byNumber,
  BigInt: by((value) => BigInt(String(value)), 30, 4),
  Float: byNumber,
  Decimal: by((value) => new Decimal(String(value)), 200, 8),
  String: byText,
  Boolean: by((value) => value as boolean),
  DateTime: by((value) => Date.parse(String(value)), 100, 1),
  Instant: byText,
  // Years after 9999 have five digits and more.
  Date: by((value) => String(value).padStart(13, "0"), 20),
  // No filter of webhooks compares these: see `readJsonFilter`.
  Time: byText,
  Interval: byText,
  Json: byText,
  Bytes: byText,
  Uuid: byText,
  Enum: byText,
};

/** Returns negative, 0 or positive. What is no number is greater than all, or equal to none. */
export function compare(one: Comparable, other: Comparable): number {
  if (Decimal.isDecimal(one)) return one.comparedTo(other as Decimal);
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Returns what equal values have in common, to look them up in a set. */
export function identity(value: Comparable): Exclude<Comparable, Decimal> {
  return Decimal.isDecimal(value) ? value.toString() : value;
}
