import { isUuid } from "../kit/ids.ts";
import type { Field, FieldType } from "../mapping/definition.ts";
import { isNoNumber, textFault } from "../mapping/storable.ts";
import {
  instantOf,
  isBeyondDays,
  isDateText,
  isInfinite,
  isInstantText,
  isIntervalText,
  isTimeText,
  temporalExamples,
} from "../mapping/temporal.ts";
import { parseAskedDate } from "../validation/dates.ts";
import { isInteger, isNumeric, toDecimal } from "../validation/values.ts";
import type { Parameter } from "./condition.ts";
import { textOperators, type Operator } from "./operators.ts";
import type { ShownPath } from "./shown-paths.ts";

/** Limit of the values of one condition. */
export const mostValues = 100;

/**
 * Splits the value of a condition at its commas. `\,` is a comma in a value and `\\` a backslash; a
 * backslash before any other character is literal. Stops one value beyond `mostValues`.
 */
export function splitValues(text: string): readonly string[] {
  const values: string[] = [];
  let value = "";
  for (let at = 0; at < text.length && values.length <= mostValues; at += 1) {
    const char = text.charAt(at);
    const next = text.charAt(at + 1);
    if (char === "\\" && (next === "," || next === "\\")) {
      value += next;
      at += 1;
    } else if (char === ",") {
      values.push(value);
      value = "";
    } else value += char;
  }
  return [...values, value];
}

/** Escapes a value, so that `splitValues` returns it unchanged. */
export function escapeValue(text: string): string {
  return text.replaceAll(/[\\,]/g, String.raw`\$&`);
}

/**
 * A value for PostgreSQL, or the requirement that it fails, to complete "The value of x must ...".
 */
export type Read = { readonly value: Parameter } | { readonly fault: string };

/**
 * Parses a value for an operator by the type of the field; operators on parts of texts accept any
 * text.
 */
export function readValue({ field, jsonPath }: ShownPath, operator: Operator, text: string): Read {
  if (jsonPath !== undefined || textOperators.includes(operator)) return readText(text);
  return readFieldValue(field, text);
}

/** Parses a value by the type of the field. */
export function readFieldValue(field: Field, text: string): Read {
  if (field.type === "Enum") {
    const { values = [] } = field;
    return values.includes(text) ? { value: text } : { fault: `be one of ${values.join(", ")}` };
  }
  return readers[field.type](text);
}

const int32 = 2n ** 31n;
const int64 = 2n ** 63n;
/**
 * Limit of the digits of a `numeric` without precision, as in the tables of the service. It is far
 * below PostgreSQL's own limit.
 */
const mostDigits = 1000;

function readInteger(text: string, limit: bigint): Read {
  const integer = isInteger(text) ? BigInt(text.replace(/^\+/, "")) : undefined;
  if (integer !== undefined && integer >= -limit && integer < limit) return { value: String(integer) };
  return { fault: `be an integer between ${-limit} and ${limit - 1n}` };
}

function readFloat(text: string): Read {
  const number = isNumeric(text) ? Number(text) : Number.NaN;
  return Number.isFinite(number) ? { value: number } : { fault: "be a number" };
}

function readDecimal(text: string): Read {
  if (isNoNumber(text)) return { value: text };
  if (!isNumeric(text)) return { fault: "be a number" };
  const number = toDecimal(text);
  const isSmall = number.isZero() || Math.abs(number.e) <= mostDigits;
  return isSmall ? { value: number.toFixed() } : { fault: `have at most ${mostDigits} digits` };
}

function readText(text: string): Read {
  const fault = textFault(text);
  return fault === undefined ? { value: text } : { fault: `not contain ${fault}` };
}

const booleans: ReadonlyMap<string, boolean> = new Map([
  ["true", true],
  ["1", true],
  ["false", false],
  ["0", false],
]);

function readDate(text: string, write = (date: Date): string => date.toISOString()): Read {
  if (isInfinite(text)) return { value: text };
  const date = parseAskedDate(text);
  return date === undefined ? { fault: "be a date, such as 2026-03-28T14:30:00Z" } : { value: write(date) };
}

function readTemporal(
  what: string,
  type: keyof typeof temporalExamples,
  isFine: (text: string) => boolean,
): (text: string) => Read {
  return (text) =>
    isFine(text) ? { value: text } : { fault: `be ${what}, such as ${temporalExamples[type]}` };
}

const readers: Readonly<Record<Exclude<FieldType, "Enum">, (text: string) => Read>> = {
  Int: (text) => readInteger(text, int32),
  BigInt: (text) => readInteger(text, int64),
  Float: readFloat,
  Decimal: readDecimal,
  String: readText,
  Boolean: (text) => {
    const value = booleans.get(text);
    return value === undefined ? { fault: "be true or false" } : { value };
  },
  DateTime: (text) => readDate(text),
  // A value from an answer is exact to the microsecond.
  Instant: (text) =>
    isInstantText(text) ? { value: text } : readDate(text, (date) => instantOf(date, text)),
  Date: readTemporal("a day", "Date", (text) => isDateText(text) || isBeyondDays(text)),
  Time: readTemporal("a time", "Time", isTimeText),
  Interval: readTemporal("a duration of ISO 8601", "Interval", isIntervalText),
  Json: readText,
  Bytes: readText,
  Uuid: (text) => (isUuid(text) ? { value: text.toLowerCase() } : { fault: "be a UUID" }),
};
