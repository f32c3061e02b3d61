import { shortened } from "../kit/did-you-mean.ts";
import { isObject } from "../kit/is-object.ts";
import type { Parameter } from "./condition.ts";
import { nativeFault } from "./compared-values.ts";
import { mostValues, readValue } from "./filter-values.ts";
import { mostConditions, mostDepth, operatorOf } from "./filters.ts";
import { countFault, operatorsOf, textOperators, type Operator } from "./operators.ts";
import { findPath, pathFault, type PathTable, type ShownPath } from "./shown-paths.ts";

/** One comparison of a filter that is written as JSON. */
export interface FilterTest {
  readonly kind: "test";
  readonly shown: ShownPath;
  readonly operator: Operator;
  readonly values: readonly Parameter[];
}

/** A filter in JSON, with all paths resolved and all values parsed. */
export type JsonFilter =
  | FilterTest
  | { readonly kind: "all" | "any"; readonly of: readonly JsonFilter[] }
  | { readonly kind: "not"; readonly of: JsonFilter };

/** Faults as sentences, by their place: `or.0.amount.gte`; empty for the whole filter. */
export type JsonFilterFaults = ReadonlyMap<string, string>;

interface State {
  readonly table: PathTable;
  readonly faults: Map<string, string>;
  conditions: number;
}

/** Limit of the faults, so that the answer stays short. */
const mostFaults = 20;

/**
 * Reads a filter in JSON (docs/webhooks.md, "Filters"):
 * `{"status": "paid", "amount": {"gte": 100}}`, with the paths and operators of lists. The groups
 * `or` and `and` are lists of filters, and `not` is one filter.
 */
export function readJsonFilter(
  given: unknown,
  table: PathTable,
): { readonly filter: JsonFilter } | { readonly faults: JsonFilterFaults } {
  const state: State = { table, faults: new Map(), conditions: 0 };
  const filter = readGroup(state, given, [], 0);
  if (state.faults.size === 0 && state.conditions === 0)
    addFault(state, [], "A filter has at least one condition.");
  if (state.conditions > mostConditions)
    addFault(state, [], `A filter may have at most ${mostConditions} conditions.`);
  return state.faults.size > 0 ? { faults: state.faults } : { filter };
}

function addFault({ faults }: State, place: readonly string[], fault: string): void {
  if (faults.size < mostFaults) faults.set(place.map(shortened).join("."), fault);
}

/** Adds a fault, and returns a filter in place of the faulty part. */
function refuse(state: State, place: readonly string[], fault: string): JsonFilter {
  addFault(state, place, fault);
  return { kind: "all", of: [] };
}

function readGroup(state: State, given: unknown, place: readonly string[], depth: number): JsonFilter {
  if (!isObject(given)) return refuse(state, place, "A filter is an object of paths and conditions.");
  if (depth > mostDepth) return refuse(state, place, `Groups may be at most ${mostDepth} deep.`);
  const of: JsonFilter[] = [];
  for (const [key, value] of Object.entries(given)) {
    if (state.conditions > mostConditions) break;
    of.push(readEntry(state, key, value, { place: [...place, key], depth }));
  }
  return of.length === 1 ? (of[0] as JsonFilter) : { kind: "all", of };
}

function readEntry(
  state: State,
  key: string,
  value: unknown,
  { place, depth }: { readonly place: readonly string[]; readonly depth: number },
): JsonFilter {
  if (key === "not" && isObject(value)) return { kind: "not", of: readGroup(state, value, place, depth + 1) };
  if ((key === "or" || key === "and") && Array.isArray(value) && value.every(isObject)) {
    // An empty `or` can never be true, so it is a mistake.
    if (value.length === 0) addFault(state, place, `The group ${key} is empty.`);
    return {
      kind: key === "or" ? "any" : "all",
      of: value
        .slice(0, mostConditions + 1)
        .map((one, index) => readGroup(state, one, [...place, String(index)], depth + 1)),
    };
  }
  return readPath(state, key, value, place);
}

/** Messages for a group in another form, when no field has its name. */
const groupForms: ReadonlyMap<string, string> = new Map([
  ["not", 'The group not is written as {"not": {…}}, with one filter.'],
  ["or", 'The group or is written as {"or": [{…}, {…}]}, with a list of filters.'],
  ["and", 'The group and is written as {"and": [{…}, {…}]}, with a list of filters.'],
]);

function readPath(state: State, path: string, value: unknown, place: readonly string[]): JsonFilter {
  const shown = findPath(state.table, path);
  if (shown === undefined) {
    state.conditions += 1;
    return refuse(state, place, groupForms.get(path) ?? pathFault(state.table, path, "filtered"));
  }
  if (!isObject(value)) return readTest(state, shown, { operator: "eq", value, place });
  const tests = Object.entries(value)
    .slice(0, mostConditions + 1)
    .map(([operator, one]) => readTest(state, shown, { operator, value: one, place: [...place, operator] }));
  if (tests.length === 0) addFault(state, place, "A condition has at least one operator.");
  return tests.length === 1 ? (tests[0] as JsonFilter) : { kind: "all", of: tests };
}

function readTest(
  state: State,
  shown: ShownPath,
  {
    operator: word,
    value,
    place,
  }: { readonly operator: string; readonly value: unknown; readonly place: readonly string[] },
): JsonFilter {
  state.conditions += 1;
  const operator = operatorOf(shown, word);
  if (typeof operator !== "string") return refuse(state, place, operator.fault);
  if (isLeftToDatabase(shown, operator)) {
    const fitting = operatorsOf(shown).filter((one) => !isLeftToDatabase(shown, one));
    return refuse(
      state,
      place,
      `The operator ${operator} is not for ${shortened(shown.path)} in a filter of webhooks; expected one of ${fitting.join(", ")}.`,
    );
  }
  const values = operator === "null" ? readNull(value) : readValues(shown, operator, value);
  if ("fault" in values) return refuse(state, place, values.fault);
  return { kind: "test", shown, operator, values: values.values };
}

const orderOperators: readonly Operator[] = ["lt", "lte", "gt", "gte", "between"];

/**
 * Returns whether only PostgreSQL can compare the values: texts have the order of its collation,
 * and times and intervals have several texts each.
 */
function isLeftToDatabase({ field, jsonPath }: ShownPath, operator: Operator): boolean {
  if (operator === "null") return false;
  if (field.type === "Time" || field.type === "Interval") return true;
  const isText = field.type === "String" || jsonPath !== undefined;
  return isText && orderOperators.includes(operator);
}

type Values = { readonly values: readonly Parameter[] } | { readonly fault: string };

function readNull(value: unknown): Values {
  return typeof value === "boolean"
    ? { values: [value] }
    : { fault: "The value of null must be true or false." };
}

function readValues(shown: ShownPath, operator: Operator, given: unknown): Values {
  const list: readonly unknown[] = Array.isArray(given) ? given : [given];
  if (list.length === 0) return { fault: `${operator} takes at least one value.` };
  if (list.length > mostValues) return { fault: `A condition may have at most ${mostValues} values.` };
  if (countFault(operator, list.length, shown) !== undefined)
    return { fault: `${operator} takes ${operator === "between" ? "two values" : "one value"}.` };
  const values: Parameter[] = [];
  for (const one of list) {
    const text = textOf(one);
    if (typeof text !== "string") return { fault: `The value of ${shortened(shown.path)} ${text.fault}.` };
    const fault = textOperators.includes(operator) ? undefined : nativeFault(shown.field, text);
    const read = fault === undefined ? readValue(shown, operator, text) : { fault };
    if ("fault" in read) return { fault: `The value of ${shortened(shown.path)} must ${read.fault}.` };
    values.push(read.value);
  }
  return { values };
}

function textOf(value: unknown): string | { readonly fault: string } {
  if (typeof value === "string") return value;
  if (typeof value === "boolean") return String(value);
  if (value === null) return { fault: 'must not be null; to ask for null, write {"null": true}' };
  if (typeof value !== "number") return { fault: "must be a text, a number, true or false" };
  if (Number.isInteger(value) && !Number.isSafeInteger(value))
    return { fault: "loses digits as a JSON number; write it as a text" };
  return String(value);
}
