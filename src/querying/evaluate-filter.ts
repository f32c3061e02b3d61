import { findPlace, type Shown } from "../mapping/shown.ts";
import { byText, compare, comparisonOf, identity, type Comparable } from "./compared-values.ts";
import type { JsonFilter, FilterTest } from "./webhook-filter.ts";
import { jsonbText } from "./jsonb-text.ts";
import {
  memoized,
  outOfSteps,
  spend,
  spendOrDrain,
  type FilterEvaluation,
  type Steps,
} from "./judged-record.ts";
import { createSearch, lowered } from "./lowered.ts";
import { textOperators, type Operator } from "./operators.ts";

/**
 * Result of a condition. As in SQL, undefined is unknown, the result of a comparison with null.
 * "open": the remaining steps do not suffice.
 */
type Truth = boolean | undefined | "open";

type Evaluate = (evaluation: FilterEvaluation) => Truth;

/**
 * Compiles a filter into a function on a record's JSON, as the resource's transform shows it. The
 * function returns the result of `filterCondition` in SQL for the same record. A test compares the
 * two. It returns undefined when the steps do not suffice for a decision. A condition without
 * enough steps is skipped, and the others may decide.
 *
 * @param places Places of the filter's paths in the JSON.
 */
export function compileFilter(
  filter: JsonFilter,
  places: ReadonlyMap<string, Shown>,
): (evaluation: FilterEvaluation) => boolean | undefined {
  const evaluate = compile(filter, places);
  return (evaluation) => {
    const truth = evaluate(evaluation);
    return truth === "open" ? undefined : truth === true;
  };
}

function compile(filter: JsonFilter, places: ReadonlyMap<string, Shown>): Evaluate {
  switch (filter.kind) {
    case "test":
      return withinSteps(compileTest(filter, places));
    case "not": {
      const of = compile(filter.of, places);
      return (evaluation) => not(of(evaluation));
    }
    case "all":
    case "any": {
      const of = filter.of.map((one) => compile(one, places));
      return (evaluation) => joined(of, evaluation, filter.kind === "any");
    }
  }
}

/** Steps of a condition in addition to those for its values. */
const stepsOfTest = 32;

function withinSteps(evaluate: Evaluate): Evaluate {
  return (evaluation) => {
    try {
      spend(evaluation.steps, stepsOfTest);
      return evaluate(evaluation);
    } catch (error) {
      if (error !== outOfSteps) throw error;
      return "open";
    }
  };
}

/** Returns the function of AND, which false decides, or of OR, which true decides. */
function joined(of: readonly Evaluate[], evaluation: FilterEvaluation, deciding: boolean): Truth {
  let truth: Truth = !deciding;
  for (const one of of) {
    const own = one(evaluation);
    if (own === deciding) return deciding;
    if (own === "open" || (own === undefined && truth !== "open")) truth = own;
  }
  return truth;
}

function not(truth: Truth): Truth {
  return typeof truth === "boolean" ? !truth : truth;
}

type Values = (evaluation: FilterEvaluation) => readonly unknown[];

function compileTest(test: FilterTest, places: ReadonlyMap<string, Shown>): Evaluate {
  const { shown, operator, values } = test;
  const valuesIn = compileValues(test, places);
  if (operator === "null") {
    const isNull = values[0] === true;
    // A missing related record counts as null too: see `filterCondition`.
    return (evaluation) =>
      every(valuesIn(evaluation), evaluation).some(
        (value) => (value === null || value === undefined) === isNull,
      );
  }
  const { made, meets } = compileOperator(test, operator, valuesIn);
  const meetsOne = (value: unknown, evaluation: FilterEvaluation): Truth =>
    value === null || value === undefined ? undefined : meets(value, evaluation.steps);
  if (shown.links.length === 0) return (evaluation) => meetsOne(made(evaluation)[0], evaluation);
  return (evaluation) =>
    every(made(evaluation), evaluation).some((value) => meetsOne(value, evaluation) === true);
}

/** Spends the steps for a check of each value. */
function every(values: readonly unknown[], { steps }: FilterEvaluation): readonly unknown[] {
  spend(steps, 4 * values.length);
  return values;
}

/** Returns a function that finds the values at the path of a test, once for a record. */
function compileValues(
  { shown: { path, links, jsonPath } }: FilterTest,
  places: ReadonlyMap<string, Shown>,
): Values {
  const keys = findPlace(places, path)?.place.keys ?? [];
  const many = links.filter(({ isMany }) => isMany).length;
  const place = `values ${keys.join(".")}`;
  const valuesIn: Values = (evaluation) =>
    memoized(evaluation, place, () => leavesOf(evaluation.record.data, keys, many, evaluation.steps));
  if (jsonPath === undefined) return valuesIn;
  return (evaluation) =>
    memoized(evaluation, `texts ${path}`, () =>
      valuesIn(evaluation).map((value) =>
        jsonbText(value, jsonPath, (count) => spendOrDrain(evaluation.steps, count)),
      ),
    );
}

/**
 * Returns the values at a path. Relations to many are lists, in which each record has its own
 * values.
 *
 * @param many Number of relations to many on the rest of the path.
 */
function leavesOf(
  value: unknown,
  [key, ...rest]: readonly string[],
  many: number,
  steps: Steps,
): readonly unknown[] {
  spendOrDrain(steps, 40);
  if (many > 0 && Array.isArray(value))
    return value.flatMap((one) => leavesOf(one, key === undefined ? [] : [key, ...rest], many - 1, steps));
  if (key === undefined) return [value];
  if (typeof value !== "object" || value === null) return many > 0 ? [] : [null];
  return leavesOf((value as Readonly<Record<string, unknown>>)[key], rest, many, steps);
}

/** The application of an operator to one value, which is not null. */
interface Meeting {
  /** The values after a conversion, such as lower case; null for unknown values. */
  readonly made: Values;
  readonly meets: (value: unknown, steps: Steps) => Truth;
}

function compileOperator(
  { shown: { path, field, jsonPath }, values: given }: FilterTest,
  operator: Exclude<Operator, "null">,
  valuesIn: Values,
): Meeting {
  // PostgreSQL searches the text of a native type.
  const isText = jsonPath !== undefined || (field.native !== undefined && textOperators.includes(operator));
  const comparison = isText ? byText : comparisonOf(field);
  const values = given.map((value) => comparison.read(value));
  const [first = "", second = ""] = values;
  const [part = ""] = given.map(String);
  const read = (value: unknown, steps: Steps): Comparable => {
    const [each, character] = comparison.steps;
    spend(steps, each + (typeof value === "string" ? character * value.length : 0));
    return comparison.read(value);
  };
  const readValues = madeOf(`${isText ? "text" : "compared"} ${path}`, valuesIn, read);
  const compared = (meets: (value: Comparable) => boolean): Meeting => ({
    made: readValues,
    meets: (value) => meets(value as Comparable),
  });
  const wanted = new Set(values.map(identity));
  /** Steps of a look-up in the set. Members with the same hash are compared one after the other. */
  const stepsOfLookup = 8 + wanted.size / 4;
  const oneOf = (isWanted: boolean): Meeting => ({
    made: madeOf(`one ${path}`, valuesIn, (value, steps) => identity(read(value, steps))),
    meets(value, steps) {
      spend(steps, stepsOfLookup);
      return wanted.has(value as ReturnType<typeof identity>) === isWanted;
    },
  });
  const list = (isMet: (items: Items) => boolean): Meeting => ({
    made: madeOf(`list ${path}`, valuesIn, (value, steps) => {
      if (!Array.isArray(value)) return null;
      spend(steps, value.length);
      return value.filter((item) => item !== null).map((item) => identity(read(item, steps)));
    }),
    meets(value, steps) {
      const items = value as Items;
      spend(steps, wanted.size + items.length * stepsOfLookup);
      return isMet(items);
    },
  });
  switch (operator) {
    case "eq":
    case "in":
      return oneOf(true);
    case "not_in":
      return oneOf(false);
    case "ne":
      return compared((value) => compare(value, first) !== 0);
    case "lt":
      return compared((value) => compare(value, first) < 0);
    case "lte":
      return compared((value) => compare(value, first) <= 0);
    case "gt":
      return compared((value) => compare(value, first) > 0);
    case "gte":
      return compared((value) => compare(value, first) >= 0);
    case "between":
      return compared((value) => compare(value, first) >= 0 && compare(value, second) <= 0);
    case "contains":
      return containing(path, part, readValues);
    case "starts_with":
      return atAnEnd(part, readValues, "start");
    case "ends_with":
      return atAnEnd(part, readValues, "end");
    case "has":
    case "has_all":
      return list((items) => {
        const missing = new Set(wanted);
        return items.some((item) => missing.delete(item) && missing.size === 0);
      });
    case "has_any":
      return list((items) => items.some((item) => wanted.has(item)));
  }
}

type Items = readonly ReturnType<typeof identity>[];

/** Returns a function that converts each value that is not null, once for a record. */
function madeOf(place: string, valuesIn: Values, make: (value: unknown, steps: Steps) => unknown): Values {
  return (evaluation) =>
    memoized(evaluation, place, () =>
      every(valuesIn(evaluation), evaluation).map((value) =>
        value === null || value === undefined ? null : make(value, evaluation.steps),
      ),
    );
}

function containing(path: string, part: string, valuesIn: Values): Meeting {
  const find = createSearch(lowered(part));
  return {
    made: madeOf(`lowered ${path}`, valuesIn, (value, steps) => {
      if (typeof value !== "string") return null;
      spend(steps, 2 * value.length);
      return lowered(value);
    }),
    meets(value, steps) {
      const text = value as string;
      spend(steps, text.length);
      return find(text);
    },
  };
}

/**
 * Compares the start or the end of a text. It lowers one unit more than the part has, because half
 * of a letter is not lowered.
 */
function atAnEnd(part: string, valuesIn: Values, end: "start" | "end"): Meeting {
  const small = lowered(part);
  const length = part.length + 1;
  return {
    made: valuesIn,
    meets(value, steps) {
      if (typeof value !== "string") return undefined;
      spend(steps, 3 * part.length);
      return end === "start"
        ? lowered(value.slice(0, length)).startsWith(small)
        : lowered(value.slice(-length)).endsWith(small);
    },
  };
}
