import type { Definition, Field } from "../mapping/definition.ts";
import type { Link } from "./links.ts";

/** A value in the form for a statement; a list of them binds a PostgreSQL array. */
export type Parameter = string | number | boolean | Buffer | null | StatementColumn;

/** A column of the statement in place of a value: `u.id`. */
export interface StatementColumn {
  readonly column: string;
}

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/**
 * A condition on the records of one resource. Every filter becomes a condition: `baseQuery.where`,
 * a search, the filters of a request, the owner. NULL follows SQL: a comparison with NULL is not
 * true.
 */
export type Condition =
  /** True when all conditions are true; without any, for every record. */
  | { readonly kind: "all"; readonly of: readonly Condition[] }
  /** True when at least one condition is true; without any, for no record. */
  | { readonly kind: "any"; readonly of: readonly Condition[] }
  | { readonly kind: "not"; readonly of: Condition }
  /** True or NULL. */
  | { readonly kind: "notFalse"; readonly of: Condition }
  | {
      readonly kind: "compare";
      readonly field: Field;
      readonly operator: Comparison;
      readonly value: Parameter;
    }
  | { readonly kind: "in"; readonly field: Field; readonly values: readonly Parameter[] }
  | { readonly kind: "null"; readonly field: Field }
  /** `pattern` is a LIKE pattern, with `\` before literal characters. */
  | {
      readonly kind: "like";
      readonly field: Field;
      readonly pattern: string;
      readonly isCaseSensitive: boolean;
    }
  /** A list that equals the values, holds one of them, or holds all of them. */
  | {
      readonly kind: "list";
      readonly field: Field;
      readonly operator: "=" | "&&" | "@>";
      readonly values: readonly Parameter[];
    }
  /** Tests the text at a path within a Json field. */
  | {
      readonly kind: "json";
      readonly field: Field;
      readonly path: readonly string[];
      readonly test: JsonTest;
    }
  /** At least one record at the other end of the link meets the condition. */
  | { readonly kind: "related"; readonly link: Link; readonly of: Condition }
  /** The fields are unchanged since the version was read. */
  | { readonly kind: "version"; readonly fields: readonly Field[]; readonly version: string };

/** A test of the text at a path of a Json field. */
export type JsonTest<Value = string> =
  | { readonly kind: "compare"; readonly operator: Comparison; readonly value: Value }
  | { readonly kind: "in"; readonly values: readonly Value[] }
  | { readonly kind: "null" }
  | { readonly kind: "like"; readonly pattern: string; readonly isCaseSensitive: boolean };

/** The condition that every record meets. */
export const always: Condition = { kind: "all", of: [] };
/** The condition that no record meets. */
export const never: Condition = { kind: "any", of: [] };

/** Returns one condition that requires all of them. Undefined ones require nothing. */
export function allOf(conditions: readonly (Condition | undefined)[]): Condition {
  const of = conditions.filter((one) => one !== undefined && !isAlways(one)) as readonly Condition[];
  return of.length === 1 ? (of[0] as Condition) : { kind: "all", of };
}

/** Returns the condition of the other records. */
export function not(of: Condition): Condition {
  return { kind: "not", of };
}

/** Returns the condition that the key has these values, one for each of its fields. */
export function keyIs({ keys }: Pick<Definition, "keys">, values: readonly Parameter[]): Condition {
  return allOf(
    keys.map((field, index) => ({ kind: "compare", field, operator: "=", value: values[index] ?? null })),
  );
}

export function keyIsOneOf(
  { keys }: Pick<Definition, "keys">,
  these: readonly (readonly Parameter[])[],
): Condition {
  const [field, ...others] = keys;
  if (field === undefined || others.length > 0)
    return { kind: "any", of: these.map((values) => keyIs({ keys }, values)) };
  return { kind: "in", field, values: these.map(([value = null]) => value) };
}

export function isAlways(condition: Condition): boolean {
  return condition.kind === "all" && condition.of.length === 0;
}

export function isNever(condition: Condition): boolean {
  return condition.kind === "any" && condition.of.length === 0;
}

/** Escapes a text for a LIKE pattern, so that all its characters are literal. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

/**
 * Returns whether a value in the condition is NULL, so that a part of it is unknown and never true.
 */
export function comparesWithNull(condition: Condition): boolean {
  if (condition.kind === "compare") return condition.value === null;
  if (condition.kind === "in" || condition.kind === "list") return condition.values.includes(null);
  return partsOf(condition).some(comparesWithNull);
}

export function partsOf(condition: Condition): readonly Condition[] {
  return "of" in condition ? [condition.of].flat() : [];
}

/** Returns a condition with each of the conditions within it replaced. */
export function withParts(condition: Condition, replace: (part: Condition) => Condition): Condition {
  if (condition.kind === "all" || condition.kind === "any")
    return { ...condition, of: condition.of.map(replace) };
  return "of" in condition ? { ...condition, of: replace(condition.of) } : condition;
}

export function isColumn(value: Parameter): value is StatementColumn {
  return typeof value === "object" && value !== null && "column" in value;
}
