import type { Caller } from "../kit/caller.ts";
import type { Field } from "../mapping/definition.ts";
import type { Condition, Parameter } from "./condition.ts";
import { readFieldValue } from "./filter-values.ts";

/** `$user.id`, `$user.email`, `$user.claims.NAME`, which the rules of access have in the place of values. */
export function isUserValue(value: unknown): value is string {
  return typeof value === "string" && value.startsWith(prefix);
}

const prefix = "$user.";

/**
 * Puts what the user has into the condition of an access rule. What the user does not have, or has of another type than the field, is NULL: a
 * comparison with it is not true, within a NOT neither.
 */
export function bindCondition(condition: Condition, caller: Caller): Condition {
  switch (condition.kind) {
    case "all":
    case "any":
      return { ...condition, of: condition.of.map((one) => bindCondition(one, caller)) };
    case "not":
    case "related":
      return { ...condition, of: bindCondition(condition.of, caller) };
    case "compare":
      return { ...condition, value: bound(condition.field, condition.value, caller)[0] ?? null };
    case "in":
    case "list":
      return {
        ...condition,
        values: condition.values.flatMap((value) => bound(condition.field, value, caller)),
      };
    case "like":
    case "null":
    case "json":
    case "version":
      return condition;
  }
}

/** A claim may be a list: then all of its values. */
function bound(field: Field, value: Parameter, caller: Caller): readonly Parameter[] {
  if (!isUserValue(value)) return [value];
  const given = userValueOf(value.slice(prefix.length), caller);
  const values = (Array.isArray(given) ? given : [given]).map((one) => fitting(field, one));
  // An empty list of claims: `= ANY` of nothing would be false, and true within a NOT.
  return values.length === 0 ? [null] : values;
}

function userValueOf(path: string, caller: Caller): unknown {
  if (path === "id") return caller.id;
  if (path === "email") return caller.email;
  const name = path.replace(/^claims\./, "");
  const { claims = {} } = caller;
  return Object.hasOwn(claims, name) ? claims[name] : undefined;
}

function fitting(field: Field, value: unknown): Parameter {
  if (typeof value !== "string" && typeof value !== "number" && typeof value !== "boolean") return null;
  const read = readFieldValue(field, String(value));
  return "value" in read ? read.value : null;
}
