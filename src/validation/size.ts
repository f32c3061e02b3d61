import { getOrSet } from "../kit/group-by.ts";
import { countOf, isContainer, toPath } from "./body-paths.ts";
import { onValueWith, type MakeCheck, type SizeKind, type Subject } from "./check.ts";
import { codePoints, isNumeric, textOf, toDecimal } from "./values.ts";

/** Returns the number itself, the number of items, or the number of characters. */
function sizeOf(value: unknown, kind: SizeKind): number | string {
  if (kind === "numeric" && isNumeric(value)) return value;
  return isContainer(value) ? countOf(value) : codePoints(textOf(value) ?? "");
}

/**
 * Returns the size of another field, measured once per body: 10,000 items may each be compared with
 * one text of 1 MB.
 */
function sizeOfOther(subject: Subject, other: unknown, kind: SizeKind): number | string {
  if (typeof other !== "string") return sizeOf(other, kind);
  const sizes = subject.once(`${kind} sizes of texts`, () => new Map<string, number | string>());
  return getOrSet(sizes, other, () => sizeOf(other, kind));
}

/**
 * Returns a negative number, zero or a positive number. The comparison is exact, even for digits
 * that a double drops.
 */
const compare = (a: number | string, b: number | string): number =>
  typeof a === "number" && typeof b === "number" ? a - b : toDecimal(a).cmp(toDecimal(b));

/**
 * Returns the number of a text when both compare alike, so that no Decimal is needed at each check.
 */
const asNumber = (text: string): number | string => (String(Number(text)) === text ? Number(text) : text);

/** Creates `min:3` and similar rules; the names are the placeholders of the message. */
function bounded(
  names: readonly string[],
  holds: (size: number | string, bounds: readonly (number | string)[]) => boolean,
): MakeCheck {
  return (args, { sizeKind }) => {
    const failure = { blanks: Object.fromEntries(names.map((name, i) => [name, args[i] ?? ""])) };
    const bounds = args.map(asNumber);
    return ({ value }) => (holds(sizeOf(value, sizeKind), bounds) ? undefined : failure);
  };
}

/** Creates `gt:5`, or `gt:other`, which measures the other field; both must be of the same kind. */
function related(holds: (order: number) => boolean): MakeCheck {
  return ([bound = ""], { sizeKind }) => {
    const path = toPath(bound);
    const isLiteral = isNumeric(bound);
    const limit = asNumber(bound);
    return (subject) => {
      const { value } = subject;
      const other = isLiteral ? bound : subject.at(path);
      // Compares two numbers as numbers, even if no rule makes the field numeric.
      const kind = isNumeric(value) && isNumeric(other) ? "numeric" : sizeKind;
      if (isLiteral) {
        return holds(compare(sizeOf(value, kind), limit)) ? undefined : { blanks: { value: bound }, kind };
      }
      if (other === undefined || other === null) return { blanks: { value: subject.nameOf(bound) }, kind };
      const size = sizeOfOther(subject, other, kind);
      const isComparable = kind === "numeric" || (typeof value === typeof other && typeof value !== "number");
      if (isComparable && holds(compare(sizeOf(value, kind), size))) return undefined;
      return { blanks: { value: String(size) }, kind };
    };
  };
}

/** Counts the digits of a whole number without a sign; undefined for anything else. */
function digitsOf(value: unknown): number | undefined {
  const text = typeof value === "boolean" ? undefined : textOf(value);
  return text !== undefined && /^\d+$/.test(text) ? text.length : undefined;
}

function digits(
  names: readonly string[],
  holds: (count: number, args: readonly number[]) => boolean,
): MakeCheck {
  return onValueWith(
    (args) => Object.fromEntries(names.map((name, i) => [name, args[i] ?? ""])),
    (value, args) => {
      const count = digitsOf(value);
      return count !== undefined && holds(count, args.map(Number));
    },
  );
}

/**
 * Limit of the digits. The time of a remainder grows with the distance of the exponents, so
 * 1e9000000 must not reach it.
 */
const maxDigitsOfMultiple = 100;

function isMultiple(value: unknown, [step = ""]: readonly string[]): boolean {
  if (!isNumeric(value) || String(value).length > maxDigitsOfMultiple) return false;
  const number = toDecimal(value);
  return Math.abs(number.e) <= maxDigitsOfMultiple && number.mod(toDecimal(step)).isZero();
}

/** The checks of rules on sizes and digits. */
export const sizeChecks = {
  min: bounded(["min"], (size, [min = ""]) => compare(size, min) >= 0),
  max: bounded(["max"], (size, [max = ""]) => compare(size, max) <= 0),
  between: bounded(
    ["min", "max"],
    (size, [min = "", max = ""]) => compare(size, min) >= 0 && compare(size, max) <= 0,
  ),
  size: bounded(["size"], (size, [wanted = ""]) => compare(size, wanted) === 0),
  gt: related((order) => order > 0),
  gte: related((order) => order >= 0),
  lt: related((order) => order < 0),
  lte: related((order) => order <= 0),
  digits: digits(["digits"], (count, [wanted]) => count === wanted),
  digits_between: digits(["min", "max"], (count, [min = 0, max = 0]) => count >= min && count <= max),
  min_digits: digits(["min"], (count, [min = 0]) => count >= min),
  max_digits: digits(["max"], (count, [max = 0]) => count <= max),
  multiple_of: onValueWith(([value = ""]) => ({ value }), isMultiple),
} satisfies Record<string, MakeCheck>;
