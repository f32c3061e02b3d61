import type { Field } from "../mapping/definition.ts";
import { allOf, comparesWithNull, isNever, partsOf, type Condition, type Parameter } from "./condition.ts";
import type { Link } from "./links.ts";
import { bindToUsers, isUserValue } from "./user-values.ts";

/**
 * One alternative of an access rule: a user who meets one of them meets the rule. `when` still
 * contains the values of users as variables.
 */
export type Alternative =
  /** Every user meets it. */
  | { readonly kind: "everybody"; readonly when: Condition }
  /** The field of the record, or of a record at the end of the links, contains the users. */
  | { readonly kind: "found"; readonly when: Condition; readonly place: UserPlace }
  /** Each user has to be checked. */
  | { readonly kind: "judged"; readonly when: Condition };

/** The field in which a record, or a record that it leads to, names a user. */
export interface UserPlace {
  readonly links: readonly Link[];
  /** The field with the user, or with a list of users. */
  readonly field: Field;
  readonly by: "id" | "email";
}

/** Limit of the alternatives. A rule with more counts as one alternative that checks each user. */
const mostAlternatives = 16;

/**
 * Inverts a rule: the rule gives the records of a user, the alternatives give the users of a
 * record. Leaves out alternatives that only a claim of a JWT can meet, because an event has no JWT.
 */
export function alternativesOf(rule: Condition): readonly Alternative[] {
  return (split(rule) ?? [rule]).filter((when) => !isImpossible(when)).map(alternativeOf);
}

function alternativeOf(when: Condition): Alternative {
  if (!asksUser(when)) return { kind: "everybody", when };
  const place = placeOf(when);
  return place === undefined ? { kind: "judged", when } : { kind: "found", when, place };
}

/** Splits a condition at its ORs; undefined when there are too many parts. */
function split(condition: Condition): readonly Condition[] | undefined {
  if (condition.kind === "any") return limited(condition.of.map(split));
  if (condition.kind === "all") {
    let rows: readonly (readonly Condition[])[] = [[]];
    for (const one of condition.of) {
      const parts = split(one);
      if (parts === undefined || parts.length * rows.length > mostAlternatives) return undefined;
      rows = rows.flatMap((row) => parts.map((part) => [...row, part]));
    }
    return rows.map(allOf);
  }
  // "A related record meets A or B" is equivalent to "one meets A, or one meets B".
  if (condition.kind === "related") return split(condition.of)?.map((of) => ({ ...condition, of }));
  if (condition.kind !== "in") return [condition];
  const { field, values } = condition;
  const own = values.filter(isUserValue);
  const rest = values.filter((value) => !isUserValue(value));
  return [
    ...own.map((value): Condition => ({ kind: "compare", field, operator: "=", value })),
    ...(rest.length === 0 && own.length > 0 ? [] : [{ ...condition, values: rest }]),
  ];
}

function limited(parts: readonly (readonly Condition[] | undefined)[]): readonly Condition[] | undefined {
  const all = parts.flatMap((part) => part ?? []);
  return parts.includes(undefined) || all.length > mostAlternatives ? undefined : all;
}

/**
 * Returns whether a required part compares with a value that no user has at an event, such as a
 * claim.
 */
function isImpossible(condition: Condition): boolean {
  if (condition.kind === "all") return condition.of.some(isImpossible);
  if (condition.kind === "any") return condition.of.every(isImpossible);
  if (condition.kind === "related") return isImpossible(condition.of);
  const bound = bindToUsers(condition);
  // `&&` is true with one value that the record has.
  if (bound.kind === "list" && bound.operator === "&&") return bound.values.every((value) => value === null);
  if (bound.kind === "compare" || bound.kind === "list") return comparesWithNull(bound);
  return isNever(bound);
}

/** Returns the place with the fewest links among the places that must contain every reader. */
function placeOf(condition: Condition): UserPlace | undefined {
  if (condition.kind === "all")
    return condition.of
      .flatMap((one) => placeOf(one) ?? [])
      .toSorted((one, other) => one.links.length - other.links.length)[0];
  if (condition.kind === "related") {
    const place = placeOf(condition.of);
    return place && { ...place, links: [condition.link, ...place.links] };
  }
  if (condition.kind === "compare" && condition.operator === "=")
    return placeAt(condition.field, condition.value);
  if (condition.kind === "list" && condition.operator === "@>")
    return placeAt(condition.field, condition.values[0] ?? null);
  return undefined;
}

function placeAt(field: Field, value: Parameter): UserPlace | undefined {
  const isIdentifier = field.type === "Int" || field.type === "BigInt" || field.type === "String";
  if (value === "$user.id" && isIdentifier) return { links: [], field, by: "id" };
  if (value === "$user.email" && field.type === "String") return { links: [], field, by: "email" };
  return undefined;
}

function asksUser(condition: Condition): boolean {
  if (condition.kind === "compare") return isUserValue(condition.value);
  if (condition.kind === "in" || condition.kind === "list") return condition.values.some(isUserValue);
  return partsOf(condition).some(asksUser);
}
