import ipaddr from "ipaddr.js";
import { Decimal } from "../kit/prisma-values.ts";
import type { Field, FieldType } from "../mapping/definition.ts";
import { codePoints } from "../validation/values.ts";
import { lowered } from "./lowered.ts";

const { IPv4, IPv6 } = ipaddr;

/** A value in a form that can be compared with others of its type. */
export type Comparable = string | number | bigint | boolean | Decimal;

/** The comparison of values of a type in filters of webhooks. */
interface Comparison {
  /** @param value Value of the JSON, or of the filter; not null. */
  readonly read: (value: unknown) => Comparable;
  /** Steps of reading a value, and further steps for each character of a text. */
  readonly steps: readonly [each: number, character: number];
}

function by(read: (value: unknown) => Comparable, each = 8, character = 0): Comparison {
  return { read, steps: [each, character] };
}

export const byText = by(String);
const byNumber = by(Number);

/** Values of infinite times. */
const ends: ReadonlyMap<unknown, number> = new Map([
  ["infinity", Infinity],
  ["-infinity", -Infinity],
]);

/**
 * Returns a time as a number. No filter names a time before the year 1 or after 9999, so their
 * order does not matter.
 */
function timeOf(text: string): number {
  if (text.endsWith(" BC")) return -Number.MAX_VALUE;
  return /^\d{5}/.test(text) ? Number.MAX_VALUE : Date.parse(text);
}

/** Returns a number for a day that preserves the order of days, with gaps. There is no year 0. */
function dayOf(text: string): number {
  const [year = 0, month = 0, day = 0] = text.split(/[- ]/, 3).map(Number);
  return ((text.endsWith(" BC") ? 1 - year : year) * 12 + month) * 31 + day;
}

const comparisons: Readonly<Record<FieldType, Comparison>> = {
  Int: byNumber,
  BigInt: by((value) => BigInt(String(value)), 30, 4),
  Float: byNumber,
  Decimal: by((value) => new Decimal(String(value)), 200, 8),
  String: byText,
  Boolean: by((value) => value as boolean),
  DateTime: by((value) => ends.get(value) ?? timeOf(String(value)), 100, 1),
  Instant: byText,
  Date: by((value) => ends.get(value) ?? dayOf(String(value)), 40),
  // No filter of webhooks compares times and intervals: see `readJsonFilter`.
  Time: byText,
  Interval: byText,
  Json: byText,
  Bytes: byText,
  Uuid: byText,
  Enum: byText,
};

/** Returns an address with its mask. Other texts are returned unchanged. */
function addressOf(text: string): string {
  const [host = "", mask] = text.split("/");
  const isShort = IPv4.isValidFourPartDecimal(host);
  if (!isShort && !IPv6.isValid(host)) return text;
  return `${(isShort ? IPv4 : IPv6).parse(host).toNormalizedString()}/${Number(mask ?? (isShort ? 32 : 128))}`;
}

function digitsOf(text: string): string {
  return text.replaceAll(/[:.-]/g, "").toLowerCase();
}

const byAddress = by((value) => addressOf(String(value)), 600);
const byHardwareAddress = by((value) => digitsOf(String(value)), 60);
/** PostgreSQL makes eight bytes of six. */
const byLongHardwareAddress = by(
  (value) => digitsOf(String(value)).replace(/^(.{6})(.{6})$/, "$1fffe$2"),
  60,
);

/** The comparison of native types that have several texts for one value. */
const nativeComparisons: ReadonlyMap<string | undefined, Comparison> = new Map([
  ["citext", by((value) => lowered(String(value)), 8, 2)],
  ["inet", byAddress],
  ["cidr", byAddress],
  ["macaddr", byHardwareAddress],
  ["macaddr8", byLongHardwareAddress],
]);

const exampleOfAddress = "be an address, such as 10.0.0.1 or 2001:db8::/32";
const exampleOfHardware = "be a hardware address, such as 08:00:2b:01:02:03";

/** Requirements of values of native types, which complete "The value of x must ...". */
const requirements: ReadonlyMap<string | undefined, readonly [(text: string) => boolean, string]> = new Map([
  ["inet", [isAddress, exampleOfAddress]],
  ["cidr", [isNetwork, "be a network without bits to the right of its mask, such as 10.0.0.0/8"]],
  ["macaddr", [(text) => /^[\da-f]{12}$/.test(digitsOf(text)), exampleOfHardware]],
  ["macaddr8", [(text) => /^(?:[\da-f]{12}|[\da-f]{16})$/.test(digitsOf(text)), exampleOfHardware]],
]);

function isAddress(text: string): boolean {
  const masked = text.includes("/") ? text : `${text}/${text.includes(":") ? 128 : 32}`;
  // PostgreSQL has no addresses with a zone, such as `fe80::1%eth0`.
  return !text.includes("%") && (IPv4.isValidCIDRFourPartDecimal(masked) || IPv6.isValidCIDR(masked));
}

function isNetwork(text: string): boolean {
  if (!isAddress(text)) return false;
  const address = addressOf(text);
  const network = (text.includes(":") ? IPv6 : IPv4).networkAddressFromCIDR(address);
  return addressOf(`${network.toNormalizedString()}/${address.split("/")[1]}`) === address;
}

/**
 * Returns the requirement of a native type that a value of a filter of webhooks fails: no text of
 * the record could ever equal it. Undefined without one.
 */
export function nativeFault({ native }: Pick<Field, "native">, text: string): string | undefined {
  const [isFine, requirement] = requirements.get(native?.toLowerCase()) ?? [];
  return isFine === undefined || isFine(text) ? undefined : requirement;
}

/** Returns the comparison of a field's values. */
export function comparisonOf({
  type,
  length,
  native,
}: Pick<Field, "type" | "length" | "native">): Comparison {
  const ofNative = nativeComparisons.get(native?.toLowerCase());
  if (ofNative !== undefined) return ofNative;
  return type === "String" && length !== undefined
    ? by((value) => withoutPadding(String(value), length))
    : comparisons[type];
}

/**
 * Removes the blanks that `char(n)` adds to a text, which PostgreSQL ignores. Texts of other
 * columns seldom have just this length and blanks at their end.
 */
function withoutPadding(text: string, length: number): string {
  if (!text.endsWith(" ") || codePoints(text) !== length) return text;
  let end = text.length;
  while (text[end - 1] === " ") end -= 1;
  return text.slice(0, end);
}

/**
 * Returns a negative number, 0 or a positive number. A value that is not a number is greater than
 * all others, or equal to none.
 */
export function compare(one: Comparable, other: Comparable): number {
  if (Decimal.isDecimal(one) && Decimal.isDecimal(other)) {
    if (one.isNaN() || other.isNaN()) return Number(one.isNaN()) - Number(other.isNaN());
    return one.comparedTo(other);
  }
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

/** Returns a key that equal values share, to look them up in a set. */
export function identity(value: Comparable): Exclude<Comparable, Decimal> {
  return Decimal.isDecimal(value) ? value.toString() : value;
}
