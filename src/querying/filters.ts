import { shortened, suggestionFor } from "../kit/did-you-mean.ts";
import { getOrSet } from "../kit/group-by.ts";
import type { Condition, Parameter } from "./condition.ts";
import { filterCondition } from "./filter-condition.ts";
import { mostValues, readValue, splitValues } from "./filter-values.ts";
import { countFault, isOperator, operatorsOf, type Operator } from "./operators.ts";
import { findPath, pathFault, type ListShape, type ShownPath } from "./shown-paths.ts";

/** Limit of the conditions of one filter, in all of its groups. */
export const mostConditions = 50;
/** Limit of the depth of groups within groups. */
export const mostDepth = 3;

/** A result, or its fault as a sentence. */
type Outcome<T> = T | { readonly fault: string };

/** The conditions of a request, in the groups of the request. */
export interface Group {
  readonly kind: "all" | "any" | "not";
  readonly conditions: Condition[];
  /** Groups by their name and number: `or`, `or.0`. */
  readonly groups: Map<string, Group>;
}

export function createGroup(kind: Group["kind"]): Group {
  return { kind, conditions: [], groups: new Map() };
}

export function conditionOf({ kind, conditions, groups }: Group): Condition {
  const of = [...conditions, ...[...groups.values()].map(conditionOf)];
  const joined: Condition =
    of.length === 1 ? (of[0] as Condition) : { kind: kind === "any" ? "any" : "all", of };
  return kind === "not" ? { kind: "not", of: joined } : joined;
}

const formFault = "A filter is written as filter[path] or filter[path][operator].";
const bracketed = /^filter((?:\[[^[\]]+\])+)$/;

/** Returns whether a parameter of this name is a filter, well-formed or not. */
export function isFilter(name: string): boolean {
  return name === "filter" || name.startsWith("filter[");
}

/**
 * Reads one `filter[...]=...` into its group.
 *
 * @returns Its fault; undefined without one.
 */
export function readFilter(root: Group, name: string, value: string, shape: ListShape): string | undefined {
  const [, brackets] = bracketed.exec(name) ?? [];
  if (brackets === undefined) return formFault;
  const place = groupOf(root, brackets.slice(1, -1).split("]["), shape);
  if ("fault" in place) return place.fault;
  const shown = findPath(shape.filterable, place.path);
  if (shown === undefined)
    return shape.own.has(place.path)
      ? `There is no filter[${place.path}] here; use the parameter ${place.path}.`
      : pathFault(shape.filterable, place.path, "filtered", shape.includes);
  const operator = operatorOf(shown, place.operator);
  if (typeof operator !== "string") return operator.fault;
  const values = readValues(shown, operator, value);
  if ("fault" in values) return values.fault;
  place.group.conditions.push(filterCondition(shown, operator, values.values));
  return undefined;
}

interface Place {
  readonly group: Group;
  readonly path: string;
  readonly operator: string;
}

/**
 * Follows the groups at the beginning of the steps. A group needs a further step: `filter[not]` is
 * a field.
 */
function groupOf(root: Group, steps: readonly string[], { hasGroups }: ListShape): Outcome<Place> {
  let group = root;
  let at = 0;
  for (let depth = 0; at < steps.length - 1; depth += 1) {
    const word = steps[at] ?? "";
    if (word !== "or" && word !== "and" && word !== "not") break;
    if (!hasGroups) return { fault: "This list has no groups of conditions." };
    if (depth === mostDepth) return { fault: `Groups may be at most ${mostDepth} deep.` };
    if (word === "not") {
      group = within(group, word, "not");
      at += 1;
      continue;
    }
    const number = steps[at + 1] ?? "";
    if (!/^\d{1,3}$/.test(number) || at + 2 === steps.length)
      return { fault: `The group ${word} is written as filter[${word}][0][path], filter[${word}][1][path].` };
    group = within(within(group, word, word === "or" ? "any" : "all"), String(Number(number)), "all");
    at += 2;
  }
  const [path = "", operator = "eq", ...more] = steps.slice(at);
  if (more.length > 0) return { fault: formFault };
  return { group, path, operator };
}

function within(group: Group, name: string, kind: Group["kind"]): Group {
  return getOrSet(group.groups, name, () => createGroup(kind));
}

/** Returns the operator that a word names for a path, or the fault. */
export function operatorOf(shown: ShownPath, word: string): Outcome<Operator> {
  const fitting = operatorsOf(shown);
  if (!isOperator(word))
    return { fault: `There is no operator ${shortened(word)}${suggestionFor(word, fitting)}` };
  if (fitting.includes(word)) return word;
  return { fault: `The operator ${word} is not for ${shown.path}; expected one of ${fitting.join(", ")}.` };
}

function readValues(
  shown: ShownPath,
  operator: Operator,
  text: string,
): Outcome<{ readonly values: readonly Parameter[] }> {
  if (operator === "null") {
    if (text === "true" || text === "false") return { values: [text === "true"] };
    return { fault: "The value of null must be true or false." };
  }
  const texts = splitValues(text);
  if (texts.length > mostValues) return { fault: `A condition may have at most ${mostValues} values.` };
  const fault = countFault(operator, texts.length, shown);
  if (fault !== undefined) return { fault };
  const values: Parameter[] = [];
  for (const one of texts) {
    const read = readValue(shown, operator, one);
    if ("fault" in read) return { fault: `The value of ${shown.path} must ${read.fault}.` };
    values.push(read.value);
  }
  return { values };
}
