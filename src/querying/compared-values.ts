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

/** Times without end. */
const ends: ReadonlyMap<unknown, number> = new Map([
  ["infinity", Infinity],
  ["-infinity", -Infinity],
]);

/** No filter names a time before the year 1 or after 9999, so that their order is of no use. */
function timeOf(text: string): number {
  if (text.endsWith(" BC")) return -Number.MAX_VALUE;
  return /^\d{5}/.test(text) ? Number.MAX_VALUE : Date.parse(text);
}

/** Numbers the days as they follow each other, with gaps. There is no year 0. */
function dayOf(text: string): number {
  const [year = 0, month = 0, day = 0] = text.split(/[- ]/, 3).map(Number);
  return ((text.endsWith(" BC") ? 1 - year : year) * 12 + month) * 31 + day;
}

/** How the values of each type are compared. */
export const comparisons: Readonly<Record<FieldType, Comparison>> = {
  Int: byNumber,
  BigInt: by((value) => BigInt(String(value)), 30, 4),
  Float: byNumber,
  Decimal: by((value) => new Decimal(String(value)), 200, 8),
  String: byText,
  Boolean: by((value) => value as boolean),
  DateTime: by((value) => ends.get(value) ?? timeOf(String(value)), 100, 1),
  Instant: byText,
  Date: by((value) => ends.get(value) ?? dayOf(String(value)), 40),
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
  if (Decimal.isDecimal(one) && Decimal.isDecimal(other)) {
    if (one.isNaN() || other.isNaN()) return Number(one.isNaN()) - Number(other.isNaN());
    return one.comparedTo(other);
  }
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Returns what equal values have in common, to look them up in a set. */
export function identity(value: Comparable): Exclude<Comparable, Decimal> {
  return Decimal.isDecimal(value) ? value.toString() : value;
}
