import { Decimal } from "@prisma/client/runtime/client";
import type { FieldType } from "../mapping/definition.ts";
import { findPlace, type Shown } from "../mapping/shown.ts";
import type { JsonFilter, JsonTest } from "./json-filter.ts";
import { jsonbText } from "./jsonb-text.ts";
import type { Operator } from "./operators.ts";

/** As in SQL: undefined is unknown, and a comparison with null is that. */
type Truth = boolean | undefined;

/**
 * Compiles a filter into a function on a record's JSON as the resource's transform makes it. It
 * gives what `filterCondition` gives in SQL for the same record. A test holds the two together.
 *
 * @param places Where the paths of the filter are in the JSON.
 */
export function compileFilter(
  filter: JsonFilter,
  places: ReadonlyMap<string, Shown>,
): (data: unknown) => boolean {
  const evaluate = compile(filter, places);
  return (data) => evaluate(data) === true;
}

type Evaluate = (data: unknown) => Truth;

function compile(filter: JsonFilter, places: ReadonlyMap<string, Shown>): Evaluate {
  switch (filter.kind) {
    case "test":
      return compileTest(filter, places);
    case "not": {
      const of = compile(filter.of, places);
      return (data) => not(of(data));
    }
    case "all": {
      const of = filter.of.map((one) => compile(one, places));
      return (data) => joined(of, data, false);
    }
    case "any": {
      const of = filter.of.map((one) => compile(one, places));
      return (data) => joined(of, data, true);
    }
  }
}

/** Returns AND, where a false decides, or OR, where a true does. */
function joined(of: readonly Evaluate[], data: unknown, deciding: boolean): Truth {
  let isUnknown = false;
  for (const one of of) {
    const truth = one(data);
    if (truth === deciding) return deciding;
    if (truth === undefined) isUnknown = true;
  }
  return isUnknown ? undefined : !deciding;
}

function not(truth: Truth): Truth {
  return truth === undefined ? undefined : !truth;
}

function compileTest(test: JsonTest, places: ReadonlyMap<string, Shown>): Evaluate {
  const { shown, operator, values } = test;
  const { links, jsonPath } = shown;
  const keys = findPlace(places, shown.path)?.place.keys ?? [];
  const many = links.filter(({ isMany }) => isMany).length;
  const valuesIn = (data: unknown): readonly unknown[] => {
    const found = leavesOf(data, keys, many);
    return jsonPath === undefined ? found : found.map((value) => jsonbText(value, jsonPath));
  };
  if (operator === "null") {
    const isNull = values[0] === true;
    // A missing related record is null, too: see `filterCondition`.
    return (data) => valuesIn(data).some((value) => (value === null || value === undefined) === isNull);
  }
  const meets = compileOperator(test, operator);
  if (links.length === 0) return (data) => meets(valuesIn(data)[0] ?? null);
  return (data) => valuesIn(data).some((value) => meets(value) === true);
}

/**
 * Returns the values at a path. Relations to many are lists, each of whose records has its own.
 *
 * @param many Number of such relations on the way that is left.
 */
function leavesOf(value: unknown, [key, ...rest]: readonly string[], many: number): readonly unknown[] {
  if (many > 0 && Array.isArray(value))
    return value.flatMap((one) => leavesOf(one, key === undefined ? [] : [key, ...rest], many - 1));
  if (key === undefined) return [value];
  if (typeof value !== "object" || value === null) return many > 0 ? [] : [null];
  return leavesOf((value as Readonly<Record<string, unknown>>)[key], rest, many);
}

type Meets = (value: unknown) => Truth;

/** What `readJsonFilter` makes of the values in a filter. */
type Value = string | number | boolean;

function compileOperator(
  { shown: { field, jsonPath }, values: given }: JsonTest,
  operator: Exclude<Operator, "null">,
): Meets {
  const order = jsonPath === undefined ? orders[field.type] : byText;
  const values = given as readonly Value[];
  const [first = "", second = ""] = values;
  const compared =
    (value: Value, isMet: (sign: number) => boolean): Meets =>
    (one) =>
      one === null || one === undefined ? undefined : isMet(order(one, value));
  const isOneOf: Meets = (one) =>
    one === null || one === undefined ? undefined : values.some((value) => order(one, value) === 0);
  switch (operator) {
    case "eq":
    case "in":
      return isOneOf;
    case "not_in":
      return (one) => not(isOneOf(one));
    case "ne":
      return compared(first, (sign) => sign !== 0);
    case "lt":
      return compared(first, (sign) => sign < 0);
    case "lte":
      return compared(first, (sign) => sign <= 0);
    case "gt":
      return compared(first, (sign) => sign > 0);
    case "gte":
      return compared(first, (sign) => sign >= 0);
    case "between": {
      const bounds = [compared(first, (sign) => sign >= 0), compared(second, (sign) => sign <= 0)];
      return (one) => joined(bounds, one, false);
    }
    case "contains":
      return withinText(first, (text, part) => text.includes(part));
    case "starts_with":
      return withinText(first, (text, part) => text.startsWith(part));
    case "ends_with":
      return withinText(first, (text, part) => text.endsWith(part));
    case "has":
    case "has_all":
      return withinList((items) => values.every((value) => items.some((item) => order(item, value) === 0)));
    case "has_any":
      return withinList((items) => values.some((value) => items.some((item) => order(item, value) === 0)));
  }
}

function withinText(part: Value, isMet: (text: string, part: string) => boolean): Meets {
  const lower = lowered(String(part));
  return (given) => (typeof given === "string" ? isMet(lowered(given), lower) : undefined);
}

function withinList(isMet: (items: readonly unknown[]) => boolean): Meets {
  return (given) => (Array.isArray(given) ? isMet(given.filter((item) => item !== null)) : undefined);
}

/** Each letter by itself, as PostgreSQL does it: a Greek sigma does not depend on its place. */
function lowered(text: string): string {
  // oxlint-disable-next-line no-control-regex -- every character of ASCII
  if (/^[\u0000-\u007f]*$/.test(text)) return text.toLowerCase();
  return Array.from(text, (letter) => {
    const small = letter.toLowerCase();
    return small.length === letter.length ? small : letter;
  }).join("");
}

/** Compares a value of the JSON with one of the filter: negative, 0 or positive. */
type Order = (given: unknown, value: Value) => number;

const byText: Order = (given, value) => compare(String(given), String(value));
const byNumber: Order = (given, value) => compare(Number(given), Number(value));

function compare<T extends string | number | bigint>(one: T, other: T): number {
  if (one === other) return 0;
  return one < other ? -1 : 1;
}

const orders: Readonly<Record<FieldType, Order>> = {
  Int: byNumber,
  BigInt: (given, value) => compare(BigInt(String(given)), BigInt(String(value))),
  Float: byNumber,
  Decimal: (given, value) => new Decimal(String(given)).comparedTo(String(value)),
  String: byText,
  Boolean: (given, value) => (given === value ? 0 : 1),
  DateTime: (given, value) => compare(Date.parse(String(given)), Date.parse(String(value))),
  Instant: byText,
  // Years after 9999 have five digits and more.
  Date: (given, value) => compare(String(given).padStart(13, "0"), String(value).padStart(13, "0")),
  // No filter of webhooks compares these: see `readJsonFilter`.
  Time: byText,
  Interval: byText,
  Json: byText,
  Bytes: byText,
  Uuid: byText,
  Enum: byText,
};
