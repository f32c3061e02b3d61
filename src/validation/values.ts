import { Decimal } from "../kit/prisma-values.ts";
import { countOf, isContainer } from "./body-paths.ts";

/**
 * Limit of the length: longer texts are not numbers. It allows 1,000 digits, the longest
 * `precision`, with sign, point and exponent. Keeps hostile input away from the patterns and from
 * Decimal.
 */
const maxNumberText = 1024;

const numericPattern = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const integerPattern = /^[+-]?(?:0|[1-9]\d*)$/;

const isTextLike = (value: unknown, pattern: RegExp): boolean =>
  typeof value === "string" && value.length <= maxNumberText && pattern.test(value);

/**
 * Returns whether the value is a number, or a text of a number: `5`, `-0.5`, `.5`, `1e3`. Excludes
 * the JSON number `1e400`, which JavaScript reads as infinity.
 */
export const isNumeric = (value: unknown): value is number | string =>
  (typeof value === "number" && Number.isFinite(value)) || isTextLike(value, numericPattern);

/**
 * Returns whether the value is a whole number, or a text of one without leading zeros. Excludes
 * `true`, which Laravel reads as 1.
 */
export const isInteger = (value: unknown): value is number | string =>
  typeof value === "number" ? Number.isInteger(value) : isTextLike(value, integerPattern);

/** Returns the exact decimal of a value that `isNumeric` accepts. */
export const toDecimal = (value: number | string): Decimal =>
  new Decimal(typeof value === "string" ? value.replace(/^\+/, "") : value);

/**
 * Returns whether the value is empty in Laravel's sense: absent, null, blank text, an array or
 * object without items.
 */
export function isEmpty(value: unknown): boolean {
  if (value === undefined || value === null) return true;
  if (typeof value === "string") return value.trim() === "";
  return isContainer(value) && countOf(value) === 0;
}

/**
 * Returns a scalar as text, for comparison with rule arguments; undefined for null, arrays and
 * objects.
 */
export function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}

/**
 * Returns whether an argument stands for a scalar: `1` and `true` in a rule both stand for JSON's
 * true.
 */
export function meansArgument(value: unknown, arg: string): boolean {
  if (typeof value === "boolean") return arg === String(value) || arg === String(Number(value));
  if (value === null) return arg === "null";
  return textOf(value) === arg;
}

/** Returns whether a text has ASCII characters only. */
export const isAscii = (text: string): boolean => /^\p{ASCII}*$/u.test(text);

/** Counts code points: an emoji of two UTF-16 units counts as one. */
export function codePoints(text: string): number {
  // Most texts have no surrogate pair. The check takes at most a fifth of the time of counting.
  if (!/[\ud800-\udbff]/.test(text)) return text.length;
  let count = 0;
  for (let i = 0; i < text.length; i++) {
    const isPair = (text.charCodeAt(i) & 0xfc00) === 0xd800 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00;
    if (isPair) i++;
    count++;
  }
  return count;
}

/**
 * Returns a field's name for messages: `customer_name` and `customerName` as "customer name",
 * `tags.0` as it is.
 */
export function displayName(key: string): string {
  if (key.includes(".")) return key;
  return key
    .replace(/(.)(?=[A-Z])/g, "$1_")
    .toLowerCase()
    .replaceAll("_", " ");
}
