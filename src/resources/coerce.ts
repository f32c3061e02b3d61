import { counted } from "../kit/counted.ts";
import { DbNull, JsonNull } from "../kit/prisma-values.ts";
import { isUuid } from "../kit/ids.ts";
import { isPartOver, type Steps } from "../kit/parts.ts";
import type { FieldErrors } from "../kit/errors.ts";
import { parseDateText } from "../validation/dates.ts";
import type { Field, FieldType } from "../mapping/definition.ts";
import { isEmptyByDefault } from "../mapping/derive-rules.ts";
import { decimalText } from "../querying/transform.ts";
import { maxPlaces } from "../validation/body-paths.ts";
import { fill } from "../validation/messages.ts";
import { codePoints, isInteger, isNumeric, textOf, toDecimal } from "../validation/values.ts";
import {
  defaultLength,
  digitsOf,
  isNoNumber,
  isRounded,
  isRoundedDecimal,
  jsonFault,
  textFault,
} from "../mapping/storable.ts";
import {
  instantOf,
  isBeyondDays,
  isDateText,
  isInstantText,
  isIntervalText,
  isTimeText,
} from "../mapping/temporal.ts";

/** A value in the form for Prisma, or the reason why the field cannot hold it. */
type Coerced =
  | { readonly kind: "ok"; readonly value: unknown }
  /**
   * Messages for the client, by the field's name or, in a list, by the names of the items:
   * `sizes.0`.
   */
  | { readonly kind: "refused"; readonly errors: FieldErrors };

/** A converted value, or a message with `:attribute` that refuses it. */
type Converted = { readonly value: unknown } | { readonly refusal: string };
type Convert = (value: unknown, field: Field) => Converted;

const ok = (value: unknown): Converted => ({ value });
const refuse = (what: string): Converted => ({ refusal: `The :attribute field ${what}` });

/**
 * Converts a value that passed the rules into the form for the Prisma delegate. Rules may be laxer
 * than the column. So everything that the column would refuse or silently round is checked here.
 *
 * @param value JSON value. Null in an optional `Json` field becomes SQL's NULL, in any other `Json`
 *   field JSON's null.
 * @param isManaged False for the field of an existing table, whose arrays may contain NULL.
 */
export function* coerce(field: Field, value: unknown, isManaged = true): Steps<Coerced> {
  if (value === null) return nullOf(field);
  if (!field.isList) return finish(yield* convert(value, field), field.name);
  if (!Array.isArray(value)) return finish(refuse("must be a list."), field.name);
  // Each item may have a message of its own.
  if (value.length > maxPlaces)
    return finish(refuse(`must not have more than ${maxPlaces} items.`), field.name);
  const items: unknown[] = [];
  const errors: Record<string, readonly string[]> = {};
  for (const [index, item] of (value as readonly unknown[]).entries()) {
    if (isPartOver()) yield;
    const converted = item === null ? nullItem(isManaged) : yield* convert(item, field);
    const one = finish(converted, `${field.name}.${index}`);
    if (one.kind === "ok") items.push(one.value);
    else Object.assign(errors, one.errors);
  }
  return Object.keys(errors).length > 0 ? { kind: "refused", errors } : { kind: "ok", value: items };
}

const nullItem = (isManaged: boolean): Converted => (isManaged ? refuse("is required.") : ok(null));

function* convert(value: unknown, field: Field): Steps<Converted> {
  if (field.type !== "Json") return converters[field.type](value, field);
  const fault = yield* jsonFault(value);
  return fault === undefined ? ok(value) : refuse(`must not ${fault}.`);
}

/**
 * Returns the key of a path segment.
 *
 * @returns Undefined when no record can have such a key. That is a text that is no integer in the
 *   column's range, or no UUID. It is also a text that is empty, too long or not storable.
 */
export function parseKey(field: Field, text: string): unknown {
  // Each key has one spelling: `05` and `+5` are not the record 5.
  const { type, scale } = field;
  const isNumber = type === "Int" || type === "BigInt";
  if (text === "" || type === "Json" || (isNumber && !/^(?:0|-?[1-9]\d{0,18})$/.test(text))) return undefined;
  if (type === "Boolean") return text === "true" ? true : text === "false" ? false : undefined;
  if (type === "Instant") return isInstantText(text) ? text : undefined;
  if (type === "Decimal" && isNoNumber(text)) return text;
  // No key has an exponent. It would be written out: the digits of 1e40000000 took 3 s.
  if (
    type === "Decimal" &&
    (/e/i.test(text) || !isNumeric(text) || decimalText(toDecimal(text), scale) !== text)
  )
    return undefined;
  if (type === "Date" && isBeyondDays(text)) return text;
  const converted = converters[type](text, field);
  return "value" in converted ? converted.value : undefined;
}

function nullOf(field: Field): Coerced {
  if (field.type === "Json" && !field.isList)
    return { kind: "ok", value: field.isOptional ? DbNull : JsonNull };
  if (isEmptyByDefault(field)) return { kind: "ok", value: "" };
  if (!field.isOptional) return finish(refuse("is required."), field.name);
  // A list column of Prisma has no null.
  return { kind: "ok", value: field.isList ? [] : null };
}

function finish(converted: Converted, name: string): Coerced {
  if ("value" in converted) return { kind: "ok", value: converted.value };
  return { kind: "refused", errors: { [name]: [fill(converted.refusal, name)] } };
}

const int32: readonly [bigint, bigint] = [-(2n ** 31n), 2n ** 31n - 1n];
const int64: readonly [bigint, bigint] = [-(2n ** 63n), 2n ** 63n - 1n];

/**
 * Limit in characters. Longer texts are out of every range, and BigInt's time grows with the square
 * of their length.
 */
const maxIntegerText = 40;

function toInteger(value: unknown, [least, most]: readonly [bigint, bigint]): bigint | Converted {
  if (!isInteger(value)) return refuse("must be an integer.");
  const isReadable = typeof value === "number" || value.length <= maxIntegerText;
  const integer = isReadable
    ? BigInt(typeof value === "string" ? value.replace(/^\+/, "") : value)
    : undefined;
  const isInRange = integer !== undefined && integer >= least && integer <= most;
  return isInRange ? integer : refuse(`must be between ${least} and ${most}.`);
}

function toInt(value: unknown): Converted {
  const integer = toInteger(value, int32);
  return typeof integer === "bigint" ? ok(Number(integer)) : integer;
}

const asString = refuse("must be sent as a string, since a JSON number of that size loses digits.");

function toBigInt(value: unknown): Converted {
  if (isRounded(value)) return asString;
  const integer = toInteger(value, int64);
  return typeof integer === "bigint" ? ok(integer) : integer;
}

function toFloat(value: unknown): Converted {
  if (!isNumeric(value)) return refuse("must be a number.");
  const number = Number(value);
  return Number.isFinite(number) ? ok(number) : refuse("must be a number that a 64-bit float can hold.");
}

function toDecimalText(value: unknown, field: Field): Converted {
  if (!isNumeric(value)) return refuse("must be a number.");
  const number = toDecimal(value);
  const { precision, scale } = digitsOf(field);
  const whole = precision - scale;
  // Beyond 9e15, an exponent gives infinity, whose own exponent is no number. A numeric without
  // precision would store it.
  if (!number.isFinite() || (!number.isZero() && number.e + 1 > whole)) {
    return refuse(`must not have more than ${counted(whole, "digit")} before the decimal point.`);
  }
  // PostgreSQL would round the further decimals away.
  if (number.decimalPlaces() > scale)
    return refuse(`must not have more than ${counted(scale, "decimal place")}.`);
  return isRoundedDecimal(value) ? asString : ok(number.toFixed());
}

function toText(value: unknown, { length = defaultLength }: Field): Converted {
  if (typeof value !== "string") return refuse("must be a string.");
  const fault = textFault(value);
  if (fault !== undefined) return refuse(`must not contain ${fault}.`);
  const isTooLong = value.length > length && codePoints(value) > length;
  return isTooLong ? refuse(`must not be greater than ${length} characters.`) : ok(value);
}

const booleans: ReadonlyMap<unknown, boolean> = new Map<unknown, boolean>([
  [true, true],
  [1, true],
  ["1", true],
  [false, false],
  [0, false],
  ["0", false],
]);

function toBoolean(value: unknown): Converted {
  const boolean = booleans.get(value);
  return boolean === undefined ? refuse("must be true or false.") : ok(boolean);
}

function toDate(value: unknown, { type }: Field): Converted {
  const date = typeof value === "string" ? parseDateText(value) : undefined;
  if (date === undefined) return refuse("must be a valid date.");
  return ok(type === "Instant" ? instantOf(date, String(value)) : date);
}

function toTemporal(fault: string, isFine: (text: string) => boolean): Convert {
  return (value) => (typeof value === "string" && isFine(value) ? ok(value) : refuse(fault));
}

function toBytes(value: unknown): Converted {
  const bytes = typeof value === "string" ? Buffer.from(value, "base64") : undefined;
  const isExact = bytes !== undefined && bytes.toString("base64") === value;
  return isExact ? ok(new Uint8Array(bytes)) : refuse("must be a valid Base64 string.");
}

function toUuid(value: unknown): Converted {
  const isFine = typeof value === "string" && isUuid(value);
  return isFine ? ok(value.toLowerCase()) : refuse("must be a valid UUID.");
}

function toEnum(value: unknown, { values = [] }: Field): Converted {
  const text = textOf(value);
  return text !== undefined && values.includes(text)
    ? ok(text)
    : { refusal: "The selected :attribute is invalid." };
}

const converters: Readonly<Record<Exclude<FieldType, "Json">, Convert>> = {
  Int: toInt,
  BigInt: toBigInt,
  Float: toFloat,
  Decimal: toDecimalText,
  String: toText,
  Boolean: toBoolean,
  DateTime: toDate,
  Instant: toDate,
  Date: toTemporal("must match the format Y-m-d.", isDateText),
  Time: toTemporal("must be a time, such as 14:30:00.", isTimeText),
  Interval: toTemporal("must be a duration of ISO 8601, such as P1DT12H.", isIntervalText),
  Bytes: toBytes,
  Uuid: toUuid,
  Enum: toEnum,
};
