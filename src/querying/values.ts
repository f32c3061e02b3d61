import { DbNull, Decimal, JsonNull } from "../kit/prisma-values.ts";
import { parseTextList, type ListItem } from "../db/text-list.ts";
import type { Field, FieldType } from "../mapping/definition.ts";
import { instantText, isoWithoutSign } from "../mapping/temporal.ts";
import { parseDateText } from "../validation/dates.ts";
import type { Parameter } from "./condition.ts";

/**
 * Returns a column's value in Prisma's types, from its PostgreSQL text: `Decimal`, `Date`,
 * `bigint`, `Uint8Array`. Code modules get their records in these types. Values of the types Date,
 * Time and Interval are texts, because Prisma's dates would lose digits of them. Times that no Date
 * can represent, such as `infinity`, are texts too.
 */
export function valueOf(field: Field, text: string | null): unknown {
  if (field.isList) return text === null ? [] : parseTextList(text).map((item) => itemOf(field.type, item));
  return itemOf(field.type, text);
}

function itemOf(type: FieldType, item: ListItem): unknown {
  if (typeof item === "object" && item !== null) return item.map((one) => itemOf(type, one));
  return item === null ? null : decoders[type](item);
}

const asIs = (text: string): unknown => text;

const decoders: Readonly<Record<FieldType, (text: string) => unknown>> = {
  Int: Number,
  BigInt: (text) => BigInt(text),
  Float: Number,
  Decimal: decimalOf,
  String: asIs,
  Boolean: (text) => text === "t",
  DateTime: (text) => dateOrText(dateOf(text), text),
  Instant: instantText,
  Date: asIs,
  Time: asIs,
  Interval: asIs,
  Json: (text) => JSON.parse(text) as unknown,
  Bytes: (text) => new Uint8Array(bytesOf(text)),
  Uuid: asIs,
  Enum: asIs,
};

/** Parses a decimal. The text of a `money` begins with its sign. */
function decimalOf(text: string): Decimal {
  return new Decimal(text.startsWith("$") ? text.slice(1).replaceAll(",", "") : text);
}

/**
 * Parses a date from PostgreSQL's text. The session's time zone is UTC, so the offset of a
 * `timestamptz` is `+00`. A `timestamp` has none and counts as UTC. `Date` reads a `date` as
 * midnight UTC.
 */
function dateOf(text: string): Date {
  const isDay = text.length === 10;
  return new Date(isDay ? text : `${text.replace(" ", "T").replace(/\+00$/, "")}+00:00`);
}

/** Returns a valid date, otherwise its text. */
export function dateOrText(date: Date, text: string): Date | string {
  return Number.isNaN(date.getTime()) ? instantText(text) : date;
}

/** Parses `\x` and hexadecimal digits. */
export function bytesOf(text: string): Buffer {
  return Buffer.from(text.slice(2), "hex");
}

/**
 * Returns the parameter of a statement for a value in Prisma's types, or from JSON. A list becomes
 * a PostgreSQL array. Returns undefined for a value that the column's type cannot represent.
 */
export function parameterOf(field: Field, value: unknown): Parameter | readonly Parameter[] | undefined {
  if (!field.isList) return scalarParameter(field.type, value);
  if (!Array.isArray(value)) return undefined;
  const items = value.map((item) => scalarParameter(field.type, item));
  return items.includes(undefined) ? undefined : (items as readonly Parameter[]);
}

/** Does the same for one value, or one item of a list. */
export function scalarParameter(type: FieldType, value: unknown): Parameter | undefined {
  if (value === DbNull) return null;
  if (type === "Json") return value === JsonNull ? "null" : JSON.stringify(value);
  if (value === null) return null;
  return encoders[type](value);
}

type Encode = (value: unknown) => Parameter | undefined;

/** Parses a time. A text without a zone is in UTC. Code modules may use other forms. */
function timeOf(value: unknown): Date {
  if (typeof value !== "string") return new Date(Number.NaN);
  return parseDateText(value) ?? new Date(value);
}

const encodeText: Encode = (value) => (typeof value === "string" ? value : undefined);
const encodeInteger: Encode = (value) =>
  typeof value === "bigint" || Number.isInteger(value) ? String(value) : undefined;

const encoders: Readonly<Record<Exclude<FieldType, "Json">, Encode>> = {
  Int: encodeInteger,
  // A mapping file contains large integers, and bytes, as texts.
  BigInt: (value) => (typeof value === "string" && /^-?\d+$/.test(value) ? value : encodeInteger(value)),
  Float: (value) => (typeof value === "number" ? value : undefined),
  Decimal(value) {
    if (Decimal.isDecimal(value)) return value.toFixed();
    return typeof value === "number" || typeof value === "string" ? String(value) : undefined;
  },
  String: encodeText,
  Boolean: (value) => (typeof value === "boolean" ? value : undefined),
  DateTime(value) {
    const date = value instanceof Date ? value : timeOf(value);
    return Number.isNaN(date.getTime()) ? undefined : isoWithoutSign(date);
  },
  Instant: (value) => (value instanceof Date ? instantText(value.toISOString()) : encodeText(value)),
  Date: (value) => (value instanceof Date ? value.toISOString().slice(0, 10) : encodeText(value)),
  Time: (value) => (value instanceof Date ? value.toISOString().slice(11, -1) : encodeText(value)),
  Interval: encodeText,
  Bytes(value) {
    if (typeof value === "string") {
      const bytes = Buffer.from(value, "base64");
      return bytes.toString("base64") === value ? bytes : undefined;
    }
    if (!(value instanceof Uint8Array)) return undefined;
    return Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  },
  Uuid: encodeText,
  Enum: encodeText,
};
