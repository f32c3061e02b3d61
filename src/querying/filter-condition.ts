import type { Field } from "../mapping/definition.ts";
import {
  allOf,
  escapeLike,
  never,
  not,
  type Comparison,
  type Condition,
  type JsonTest,
  type Parameter,
} from "./condition.ts";
import { isInfinite, isoWithoutSign } from "../mapping/temporal.ts";
import type { Link } from "./links.ts";
import type { Operator } from "./operators.ts";
import type { ShownPath } from "./shown-paths.ts";

/**
 * Returns the condition of one filter. Through a relation to many, at least one record must meet
 * it. A comparison with a missing value is not true, as in SQL; `null` finds missing values.
 *
 * @param values As many values as the operator takes; for `null`, one Boolean.
 */
export function filterCondition(
  shown: ShownPath,
  operator: Operator,
  values: readonly Parameter[],
): Condition {
  if (operator === "null") return nullCondition(shown, values[0] === true);
  const own = ownCondition(shown, operator, values);
  return throughLinks(shown.links, isFloat(shown.field) ? unlessEndless(shown, own) : own);
}

/**
 * Handles NaN and infinities, which answers show as null: a comparison with them is unknown, also
 * within a NOT. Outside of a NOT, PostgreSQL drops the second part when it plans, and finds the
 * index.
 */
function unlessEndless(shown: ShownPath, own: Condition): Condition {
  const isEndless = endless(shown);
  const unknown = on(shown, { kind: "compare", operator: "=", value: null });
  return { kind: "any", of: [allOf([own, not(isEndless)]), allOf([isEndless, unknown])] };
}

function isFloat({ type, isList }: Field): boolean {
  return type === "Float" && !isList;
}

/** Returns the condition for the numbers that JSON cannot represent. */
function endless(shown: ShownPath): Condition {
  return on(shown, { kind: "in", values: ["NaN", "Infinity", "-Infinity"] });
}

function throughLinks(links: readonly Link[], condition: Condition): Condition {
  return links.reduceRight<Condition>((of, link) => ({ kind: "related", link, of }), condition);
}

/**
 * Returns the condition for null, or its opposite. Without a record at the other end of a relation
 * to one, the JSON shows null too. A list that is NULL is shown as an empty one.
 */
function nullCondition(shown: ShownPath, isNull: boolean): Condition {
  const none = shown.field.isList ? never : on(shown, { kind: "null" });
  const isMissing: Condition = isFloat(shown.field) ? { kind: "any", of: [none, endless(shown)] } : none;
  const isThere = not(isMissing);
  const { links } = shown;
  if (!isNull) return throughLinks(links, isThere);
  const toMany = links.findLastIndex(({ isMany }) => isMany) + 1;
  const toOne = links.slice(toMany);
  const missing: Condition = toOne.length === 0 ? isMissing : not(throughLinks(toOne, isThere));
  return throughLinks(links.slice(0, toMany), missing);
}

function ownCondition(
  shown: ShownPath,
  operator: Exclude<Operator, "null">,
  values: readonly Parameter[],
): Condition {
  const { field } = shown;
  const [first = null, second = null] = values;
  const compare = (comparison: Comparison, value: Parameter): Condition =>
    on(shown, { kind: "compare", operator: comparison, value });
  // Records show times in milliseconds. A column of an existing table may have microseconds.
  const isTime = field.type === "DateTime" && !field.isList;
  const isRounded = (value: Parameter): boolean => isTime && !isInfinite(textOf(value));
  const within = (from: Parameter, to: Parameter): Condition => ({
    kind: "all",
    of: [compare(">=", from), upTo(to)],
  });
  const upTo = (value: Parameter): Condition =>
    isRounded(value) ? compare("<", millisecondAfter(value)) : compare("<=", value);
  const like = (pattern: string): Condition => on(shown, { kind: "like", pattern, isCaseSensitive: false });
  const isOneOf: Condition = isTime
    ? { kind: "any", of: values.map((value) => within(value, value)) }
    : on(shown, { kind: "in", values });
  switch (operator) {
    case "eq":
      if (values.length > 1) return isOneOf;
      return isTime ? within(first, first) : compare("=", first);
    case "in":
      return isOneOf;
    case "not_in":
      return not(isOneOf);
    case "between":
      return within(first, second);
    case "contains":
      return like(`%${escapeLike(textOf(first))}%`);
    case "starts_with":
      return like(`${escapeLike(textOf(first))}%`);
    case "ends_with":
      return like(`%${escapeLike(textOf(first))}`);
    case "has":
    case "has_all":
      return holds(field, "@>", values);
    case "has_any":
      return holds(field, "&&", values);
    case "ne":
      return isTime ? not(within(first, first)) : compare("<>", first);
    case "lt":
      return compare("<", first);
    case "lte":
      return upTo(first);
    case "gt":
      return isRounded(first) ? compare(">=", millisecondAfter(first)) : compare(">", first);
    case "gte":
      return compare(">=", first);
  }
}

/** A list that is NULL counts as empty, so a NOT finds it. */
function holds(field: Field, operator: "@>" | "&&", values: readonly Parameter[]): Condition {
  return allOf([{ kind: "list", field, operator, values }, not({ kind: "null", field })]);
}

/**
 * Returns the time one millisecond later.
 *
 * @param time Time in the format of `Date.toISOString`.
 */
function millisecondAfter(time: Parameter): string {
  return isoWithoutSign(new Date(Date.parse(textOf(time)) + 1));
}

/** Tests the column, or the text within its JSON, where all values are texts. */
function on({ field, jsonPath }: ShownPath, test: JsonTest<Parameter>): Condition {
  return jsonPath === undefined
    ? { ...test, field }
    : { kind: "json", field, path: jsonPath, test: test as JsonTest };
}

function textOf(value: Parameter | undefined): string {
  return typeof value === "string" ? value : "";
}
