/** A condition of a list, as the URL has it. */
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

/** Reads the conditions of a URL. A group is shown as it is written. */
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

/** Shows one value as it was typed; several as they are written. */
export function shownOf(value: string): string {
  const isOne = /^(?:\\[\\,]|\\(?![\\,])|[^\\,])*$/.test(value);
  return isOne ? value.replaceAll(/\\([\\,])/g, "$1") : value;
}

export function parameterOf(path: string, operator: string): string {
  return operator === "eq" ? `filter[${path}]` : `filter[${path}][${operator}]`;
}

/** Writes one value, and escapes its commas. */
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
