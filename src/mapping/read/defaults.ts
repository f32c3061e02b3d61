import { isUuid } from "../../kit/ids.ts";
import { atOnce } from "../../kit/parts.ts";
import { parseDateText } from "../../validation/dates.ts";
import type { Field, FieldDefault, FieldType } from "../definition.ts";
import { defaultLength, digitsOf, isRoundedDecimal, jsonFault, textFault } from "../storable.ts";
import { codePoints } from "../../validation/values.ts";
import { isDateText, isIntervalText, isTimeText } from "../temporal.ts";

type Typed = Pick<Field, "type" | "isList" | "isKey" | "length" | "precision" | "scale" | "values">;

/** The default of a field, or the expected value instead of it. */
type DefaultOutcome =
  | { readonly kind: "ok"; readonly value: FieldDefault }
  | { readonly kind: "refused"; readonly message: string };

type Generator = Exclude<FieldDefault["kind"], "literal">;

const generators: Readonly<
  Record<Generator, { readonly fits: (field: Typed) => boolean; readonly where: string }>
> = {
  now: {
    fits: ({ type }) => ["DateTime", "Instant", "Date", "Time"].includes(type),
    where: "a DateTime, Date or Time",
  },
  autoincrement: {
    fits: ({ type, isKey }) => isKey && (type === "Int" || type === "BigInt"),
    where: "a key of type Int or BigInt",
  },
  uuid: { fits: ({ type }) => type === "String" || type === "Uuid", where: "a String or Uuid" },
  database: { fits: () => true, where: "any field" },
};

/** Returns whether a value of `default:` is one of the words for values that the database makes. */
export function isGenerator(given: unknown): given is Generator {
  return typeof given === "string" && Object.hasOwn(generators, given);
}

/**
 * Reads `default:`, a literal or one of now, autoincrement, uuid and database. For an Enum and
 * Json, the first three words are plain values. `database` is one for an Enum with that value.
 */
export function readDefault(field: Typed, given: unknown): DefaultOutcome {
  const isValue =
    given === "database"
      ? field.type === "Enum" && field.values?.includes(given) === true
      : field.type === "Json" || field.type === "Enum";
  if (isGenerator(given) && !isValue) {
    const { fits, where } = generators[given];
    const isFine = given === "database" || !field.isList;
    if (isFine && fits(field)) return { kind: "ok", value: { kind: given } };
    return { kind: "refused", message: `"${given}" is for ${where}` };
  }
  if (given === null && !field.isKey && !field.isList)
    return {
      kind: "refused",
      message: "null is for a field with `optional: true`, which needs no default for it",
    };
  if (field.isList && !Array.isArray(given)) return { kind: "refused", message: "expected a list of values" };
  const values: readonly unknown[] = field.isList && Array.isArray(given) ? given : [given];
  const expected = values
    .map((value) => expectedLiteral(field, value))
    .find((message) => message !== undefined);
  if (expected !== undefined) return { kind: "refused", message: `expected ${expected}` };
  return { kind: "ok", value: { kind: "literal", value: given } };
}

/** Returns the expected form of a literal; undefined when it fits the type of the field. */
export function expectedLiteral(field: Typed, value: unknown): string | undefined {
  return expectedInstead[field.type](value, field);
}

/**
 * Returns the expected form for a value that is not a text, or a text that cannot be stored;
 * undefined for a valid text.
 */
export function expectedText(value: unknown): string | undefined {
  if (typeof value !== "string") return "a text";
  const fault = textFault(value);
  return fault === undefined ? undefined : `a text without ${fault}`;
}

const int32 = 2n ** 31n;
const int64 = 2n ** 63n;
const dateTime = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/;

const expectedTime = unlessText(
  "now, or a time such as 2026-03-28T14:30:00Z",
  (text) => dateTime.test(text) && parseDateText(text) !== undefined,
);

/** Expected forms of literals; undefined for a valid literal. */
const expectedInstead: Readonly<Record<FieldType, (value: unknown, field: Typed) => string | undefined>> = {
  Int: unless("a whole number of 32 bits", (value) => typeof value === "number" && isWithin(value, int32)),
  BigInt: unless("a whole number of 64 bits, in quotes beyond 9007199254740991", (value) =>
    isWithin(value, int64),
  ),
  Float: unless("a number", (value) => typeof value === "number" && Number.isFinite(value)),
  Decimal: expectedDecimal,
  String: (value, { length = defaultLength }) =>
    expectedText(value) ?? (codePoints(String(value)) <= length ? undefined : `at most ${length} characters`),
  Boolean: unless("true or false", (value) => typeof value === "boolean"),
  DateTime: expectedTime,
  Instant: expectedTime,
  Date: unlessText("now, database, or a day such as 2026-03-28", isDateText),
  Time: unlessText("now, database, or a time such as 14:30:00", isTimeText),
  Interval: unlessText("database, or a duration of ISO 8601, such as P1DT12H", isIntervalText),
  Json: (value) => {
    if (value === null) return "a value";
    const fault = atOnce(jsonFault(value));
    return fault === undefined ? undefined : `a value that does not ${fault}`;
  },
  Bytes: unlessText("base64", (text) => Buffer.from(text, "base64").toString("base64") === text),
  Uuid: unlessText("uuid, or a UUID", isUuid),
  Enum: (value, { values = [] }) =>
    values.some((known) => known === value) ? undefined : `one of ${values.join(", ")}`,
};

function unless(
  expected: string,
  isFine: (value: unknown) => boolean,
): (value: unknown) => string | undefined {
  return (value) => (isFine(value) ? undefined : expected);
}

/** Returns a function that returns the expected form; undefined for a text that is fine. */
export function unlessText(
  expected: string,
  isFine: (text: string) => boolean,
): (value: unknown) => string | undefined {
  return unless(expected, (value) => typeof value === "string" && isFine(value));
}

function isWithin(value: unknown, limit: bigint): boolean {
  const isWhole =
    typeof value === "number"
      ? Number.isSafeInteger(value)
      : typeof value === "string" && /^-?\d{1,19}$/.test(value);
  if (!isWhole) return false;
  const whole = BigInt(value as number | string);
  return whole >= -limit && whole < limit;
}

function expectedDecimal(value: unknown, field: Typed): string | undefined {
  const { precision, scale } = digitsOf(field);
  const [, whole, fraction = ""] = /^-?(\d+)(?:\.(\d+))?$/.exec(String(value)) ?? [];
  if (whole === undefined || (typeof value !== "number" && typeof value !== "string"))
    return "a decimal number";
  if (isRoundedDecimal(value)) return "a decimal number in quotes, beyond 15 digits";
  const isFitting = whole.replace(/^0+/, "").length <= precision - scale && fraction.length <= scale;
  return isFitting ? undefined : `at most ${precision - scale} digits before the point and ${scale} after it`;
}
