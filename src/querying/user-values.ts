import type { Caller } from "../kit/caller.ts";
import { numberTypes, type Field } from "../mapping/definition.ts";
import { comparesWithNull, never, withParts, type Condition, type Parameter } from "./condition.ts";
import { readFieldValue } from "./filter-values.ts";

/**
 * Returns whether a value is `$user.id`, `$user.email` or `$user.claims.NAME`, which stand for
 * values in the rules of access.
 */
export function isUserValue(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(prefix);
}

const prefix = "$user.";

/**
 * Inserts the user's values into the condition of an access rule. A value that the user does not
 * have, or that does not fit the field's type, is NULL. A comparison with NULL is not true, not
 * even within a NOT.
 */
export function bindCondition(condition: Condition, caller: Caller): Condition {
  return bind(condition, (field, value) => {
    const given = userValueOf(value, caller);
    const values = (Array.isArray(given) ? given : [given]).map((one) => fitting(field, one));
    // For an empty list of claims, `= ANY` of an empty list would be false, and true within a NOT.
    return values.length === 0 ? [null] : values;
  });
}

/**
 * Inserts the columns `id` and `email` of the table `u`, of users, into the condition. One
 * statement then decides for many users. They have no claims there.
 */
export function bindToUsers(condition: Condition): Condition {
  return bind(condition, ({ type }, value) => {
    if (value === "email") return [type === "String" ? { column: "u.email" } : null];
    if (value !== "id") return [null];
    if (type === "String") return [{ column: "u.id::text" }];
    return [numberTypes.includes(type) ? { column: "u.id" } : null];
  });
}

/** Returns the values of `id`, `email` or `claims.NAME` that fit the field. */
type Resolve = (field: Field, name: string) => readonly Parameter[];

function bind(condition: Condition, resolve: Resolve): Condition {
  return withoutUnknown(put(condition, resolve));
}

function put(condition: Condition, resolve: Resolve): Condition {
  const bound = (field: Field, value: Parameter): readonly Parameter[] =>
    isUserValue(value) ? resolve(field, value.slice(prefix.length)) : [value];
  if (condition.kind === "compare") {
    // With several claims, using the first one would grant more than using none.
    const [value = null, ...others] = bound(condition.field, condition.value);
    return { ...condition, value: others.length > 0 ? null : value };
  }
  if (condition.kind === "in" || condition.kind === "list") {
    // Requiring all of several claims is stricter than requiring one. Within a NOT it would
    // therefore admit more.
    const takesSeveral = condition.kind === "in" || condition.operator === "&&";
    const valuesOf = (value: Parameter): readonly Parameter[] => {
      const given = bound(condition.field, value);
      return takesSeveral || given.length === 1 ? given : [null];
    };
    return { ...condition, values: condition.values.flatMap(valuesOf) };
  }
  return withParts(condition, (one) => put(one, resolve));
}

/**
 * Makes an unknown NOT false: "No member is of this team" must not hold for a user without a team.
 * The outermost NOT decides, because `every` is a NOT around another one, and false within it would
 * be true.
 */
function withoutUnknown(condition: Condition): Condition {
  if (condition.kind === "not") return comparesWithNull(condition.of) ? never : condition;
  return withParts(condition, withoutUnknown);
}

function userValueOf(path: string, caller: Caller): unknown {
  if (path === "id") return caller.id;
  if (path === "email") return caller.email;
  return caller.claims[path.replace(/^claims\./, "")];
}

function fitting(field: Field, value: unknown): Parameter {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return null;
  const read = readFieldValue(field, String(value));
  return "value" in read ? read.value : null;
}
