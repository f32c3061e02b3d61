import type { Caller } from "../kit/caller.ts";
import type { Field, FieldType } from "../mapping/definition.ts";
import { comparesWithNull, never, type Condition, type Parameter } from "./condition.ts";
import { readFieldValue } from "./filter-values.ts";

/**
 * Returns whether a value is `$user.id`, `$user.email` or `$user.claims.NAME`, which the rules of
 * access have in the place of values.
 */
export function isUserValue(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(prefix);
}

const prefix = "$user.";

/**
 * Puts the user's values into the condition of an access rule. A value that the user does not have,
 * or that is not of the field's type, is NULL. A comparison with NULL is not true, within a NOT
 * neither.
 */
export function bindCondition(condition: Condition, caller: Caller): Condition {
  return bind(condition, (field, value) => {
    const given = userValueOf(value, caller);
    const values = (Array.isArray(given) ? given : [given]).map((one) => fitting(field, one));
    // An empty list of claims: `= ANY` of nothing would be false, and true within a NOT.
    return values.length === 0 ? [null] : values;
  });
}

/**
 * Puts the columns of a table of users, `id` and `email`, into the condition. One statement then
 * decides for many users. They have no claims there.
 */
export function bindToUsers(condition: Condition, alias: string): Condition {
  return bind(condition, ({ type }, value) => {
    if (value === "email") return [type === "String" ? { column: `${alias}.email` } : null];
    if (value !== "id") return [null];
    if (type === "String") return [{ column: `${alias}.id::text` }];
    return [numbers.includes(type) ? { column: `${alias}.id` } : null];
  });
}

const numbers: readonly FieldType[] = ["Int", "BigInt", "Float", "Decimal"];

/** Returns the values for `id`, `email` or `claims.NAME`, as they fit the field. */
type Resolve = (field: Field, name: string) => readonly Parameter[];

function bind(condition: Condition, resolve: Resolve): Condition {
  return withoutUnknown(put(condition, resolve));
}

function put(condition: Condition, resolve: Resolve): Condition {
  const bound = (field: Field, value: Parameter): readonly Parameter[] =>
    isUserValue(value) ? resolve(field, value.slice(prefix.length)) : [value];
  switch (condition.kind) {
    case "all":
    case "any":
      return { ...condition, of: condition.of.map((one) => put(one, resolve)) };
    case "not":
    case "notFalse":
    case "related":
      return { ...condition, of: put(condition.of, resolve) };
    case "compare": {
      // The first of several claims would be more than none.
      const [value = null, ...others] = bound(condition.field, condition.value);
      return { ...condition, value: others.length > 0 ? null : value };
    }
    case "in":
    case "list": {
      // Requiring all of several claims is stricter than one, so that a NOT would admit more.
      const takesSeveral = condition.kind === "in" || condition.operator === "&&";
      const valuesOf = (value: Parameter): readonly Parameter[] => {
        const given = bound(condition.field, value);
        return takesSeveral || given.length === 1 ? given : [null];
      };
      return { ...condition, values: condition.values.flatMap(valuesOf) };
    }
    case "like":
    case "null":
    case "json":
    case "version":
      return condition;
  }
}

/**
 * "No member is of this team" must not hold for a user without a team. The outermost NOT decides:
 * `every` is one around another, and false within it would be true.
 */
function withoutUnknown(condition: Condition): Condition {
  switch (condition.kind) {
    case "all":
    case "any":
      return { ...condition, of: condition.of.map(withoutUnknown) };
    case "related":
      return { ...condition, of: withoutUnknown(condition.of) };
    case "not":
    case "notFalse":
      return comparesWithNull(condition.of) ? never : condition;
    case "compare":
    case "in":
    case "list":
    case "like":
    case "null":
    case "json":
    case "version":
      return condition;
  }
}

function userValueOf(path: string, caller: Caller): unknown {
  if (path === "id") return caller.id;
  if (path === "email") return caller.email;
  const name = path.replace(/^claims\./, "");
  const { claims } = caller;
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

function fitting(field: Field, value: unknown): Parameter {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return null;
  const read = readFieldValue(field, String(value));
  return "value" in read ? read.value : null;
}
