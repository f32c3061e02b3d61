import { isPartOver, type Steps } from "../kit/parts.ts";
import { Decimal } from "../kit/prisma-values.ts";
import { isContainer, type Container } from "../validation/body-paths.ts";
import type { Field } from "./definition.ts";
import { maxDepth } from "../validation/clean.ts";

/**
 * Limit in characters of a String without `length`: 64 Ki code points, 256 KB at most. `length`,
 * the rule `max` and PostgreSQL's varchar also count code points.
 */
export const defaultLength = 65_536;

/**
 * Returns the digits of a `Decimal`. Without `precision`, they are those of Prisma's default,
 * `numeric(65, 30)`.
 */
export function digitsOf({ precision, scale = 0 }: Pick<Field, "precision" | "scale">): {
  readonly precision: number;
  readonly scale: number;
} {
  return precision === undefined ? { precision: 65, scale: 30 } : { precision, scale };
}

/**
 * Returns the content that PostgreSQL's text cannot store, to complete "must not contain ...";
 * undefined for a storable text.
 */
export function textFault(text: string): string | undefined {
  if (text.includes("\0")) return "NUL characters";
  return /\p{Surrogate}/u.test(text) ? "half a surrogate pair" : undefined;
}

/**
 * Returns whether a text is NaN or an infinity, which a `numeric` may contain but no client can
 * send.
 */
export function isNoNumber(text: string): boolean {
  return /^(?:NaN|-?Infinity)$/.test(text);
}

/**
 * Returns whether a whole number may have lost digits when the body was parsed: 9007199254740993
 * has become 9007199254740992 then.
 */
export function isRounded(value: unknown): value is number {
  return Number.isInteger(value) && !Number.isSafeInteger(value);
}

/**
 * Returns the same for a decimal: 90071992547409.93 has become 90071992547409.94 then. Numbers of
 * up to 15 digits are exact, and so are whole numbers that are not rounded.
 */
export function isRoundedDecimal(value: unknown): value is number {
  if (typeof value !== "number" || Number.isInteger(value)) return isRounded(value);
  return new Decimal(value).precision() > 15;
}

/**
 * Keys with a special meaning. Prisma replaces an object with the first key by its `values`, and
 * drops the second.
 */
const misreadKeys = ["__prismaRawParameters__", "__proto__"];

/**
 * Returns the reason why a JSON value cannot be stored unchanged, to complete "must not ...";
 * undefined for a storable value. It applies to values of clients and to defaults in mapping files.
 * `jsonb` refuses some values, and Prisma interprets some as its own protocol.
 */
export function* jsonFault(value: unknown): Steps<string | undefined> {
  return isContainer(value) ? yield* containerFault(value, maxDepth, false) : scalarFault(value);
}

function scalarFault(value: unknown): string | undefined {
  if (typeof value === "string") return contained(textFault(value));
  // The number 1e400 in the body becomes Infinity, which would be stored as null.
  if (typeof value === "number" && !Number.isFinite(value))
    return "contain numbers that a 64-bit float cannot hold";
  // JSON writes larger numbers as floats.
  if (isRounded(value) && Math.abs(value) < 1e21)
    return "contain whole numbers beyond 9007199254740991, which lose digits; send them as strings";
  return undefined;
}

function contained(fault: string | undefined): string | undefined {
  return fault && `contain ${fault}`;
}

/**
 * Returns the fault of an array or object.
 *
 * @param isInConstructor Whether an object around the value has a key `constructor`: Prisma then
 *   leaves its own wrapping of a `$type` in place.
 */
function* containerFault(
  value: Container,
  levels: number,
  isInConstructor: boolean,
): Steps<string | undefined> {
  if (levels === 0) return `be nested more than ${maxDepth} levels deep`;
  const isList = Array.isArray(value);
  const fault = isList ? undefined : ownFault(value, isInConstructor);
  if (fault !== undefined) return `contain ${fault}`;
  const isWithin = isInConstructor || Object.hasOwn(value, "constructor");
  for (const key of isList ? value.keys() : Object.keys(value)) {
    if (isPartOver()) yield;
    const item = (value as Readonly<Record<number | string, unknown>>)[key];
    const found =
      (typeof key === "string" ? contained(textFault(key)) : undefined) ??
      (isContainer(item) ? yield* containerFault(item, levels - 1, isWithin) : scalarFault(item));
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Returns the fault of the keys of an object, apart from its items. */
function ownFault(value: Container, isInConstructor: boolean): string | undefined {
  const key = misreadKeys.find((name) => Object.hasOwn(value, name));
  if (key !== undefined) return `the key "${key}"`;
  if (!Object.hasOwn(value, "$type")) return undefined;
  if ((value as { readonly $type: unknown }).$type === "") return 'an empty "$type"';
  return isInConstructor ? 'a "$type" within an object that has the key "constructor"' : undefined;
}
