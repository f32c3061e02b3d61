import { fromLocalTime } from "../../parts/local-time.ts";

/** A condition of a list in the URL. */
export interface Condition {
  /** Name of the parameter: `filter[amount][gte]`. */
  readonly parameter: string;
  readonly path: string;
  readonly operator: string;
  readonly value: string;
}

const words: Readonly<Record<string, string>> = {
  eq: "is",
  ne: "is not",
  in: "is one of",
  not_in: "is none of",
  lt: "<",
  lte: "≤",
  gt: ">",
  gte: "≥",
  between: "is between",
  contains: "contains",
  starts_with: "starts with",
  ends_with: "ends with",
  has: "has",
  has_any: "has one of",
  has_all: "has all of",
  null: "is empty",
};

export function operatorTitle(operator: string): string {
  return words[operator] ?? operator;
}

/** Returns the conditions of a URL. A group is shown as written. */
export function conditionsOf(search: URLSearchParams): readonly Condition[] {
  return [...search]
    .filter(([parameter]) => parameter.startsWith("filter["))
    .map(([parameter, value]) => {
      const [path = "", operator = "eq", ...more] = [...parameter.matchAll(/\[([^\]]*)\]/g)].map(
        ([, part = ""]) => part,
      );
      return more.length > 0 || ["or", "and", "not"].includes(path)
        ? { parameter, path: parameter, operator: "eq", value }
        : { parameter, path, operator, value: shownOf(value) };
    });
}

/** Returns a single value as it was typed; several values as written in the URL. */
export function shownOf(value: string): string {
  const isOne = /^(?:\\[\\,]|\\(?![\\,])|[^\\,])*$/.test(value);
  return isOne ? value.replaceAll(/\\([\\,])/g, "$1") : value;
}

/** Returns each of several values of the URL as it was typed. */
export function valuesOf(value: string): readonly string[] {
  return (value.match(/(?:\\[\\,]|\\(?![\\,])|[^\\,])+/g) ?? []).map(shownOf);
}

export function parameterOf(path: string, operator: string): string {
  return operator === "eq" ? `filter[${path}]` : `filter[${path}][${operator}]`;
}

/**
 * Returns the condition for a local time, which has minutes. `eq` finds the whole minute, because
 * the times of records have fractions of a second.
 *
 * @param allowed Operators of the path: a mapping file may leave out `between`.
 */
export function timeCondition(
  path: string,
  operator: string,
  local: string,
  allowed: readonly string[],
): Readonly<Record<string, string>> {
  const time = fromLocalTime(local);
  if (operator !== "eq" || !allowed.includes("between")) return { [parameterOf(path, operator)]: time };
  return { [parameterOf(path, "between")]: `${time},${time.replace("00.000Z", "59.999999Z")}` };
}

/** Returns a single value with its commas escaped. */
export function oneValue(text: string): string {
  return text.replaceAll(/[\\,]/g, String.raw`\$&`);
}

/**
 * Returns whether commas separate values for the operator. For others, a comma is a part of the
 * value.
 */
export function takesSeveral(operator: string): boolean {
  return ["eq", "in", "not_in", "between", "has_any", "has_all"].includes(operator);
}
