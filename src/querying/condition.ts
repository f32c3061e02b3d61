import type { Definition, Field } from "../mapping/definition.ts";
import type { Link } from "./links.ts";

/** A value as a statement takes it; a list of them binds a PostgreSQL array. */
export type Parameter = string | number | boolean | Buffer | null | StatementColumn;

/** A column of the statement in the place of a value: `u.id`. */
export interface StatementColumn {
  readonly column: string;
}

export type Comparison = "=" | "<>" | "<" | "<=" | ">" | ">=";

/**
 * A condition on the records of one resource. Every filter becomes one: `baseQuery.where`, a
 * search, the filters of a request, the owner. SQL decides on NULL: a comparison with NULL is not
 * true.
 */
export type Condition =
  /** Every one of them; with none, every record. */
  | { readonly kind: "all"; readonly of: readonly Condition[] }
  /** At least one of them; with none, no record. */
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
  /** `pattern` is LIKE's, with `\` before what means itself. */
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
  /** The text at a path within a Json field. */
  | {
      readonly kind: "json";
      readonly field: Field;
      readonly path: readonly string[];
      readonly test: JsonTest;
    }
  /** At least one record at the other end of the link meets the condition. */
  | { readonly kind: "related"; readonly link: Link; readonly of: Condition }
  /** The whole row is still the one that `rowVersion` was read of. */
  | { readonly kind: "version"; readonly version: string };

/** A test of the text at a path of a Json field. */
export type JsonTest =
  | { readonly kind: "compare"; readonly operator: Comparison; readonly value: string }
  | { readonly kind: "in"; readonly values: readonly string[] }
  | { readonly kind: "null" }
  | { readonly kind: "like"; readonly pattern: string; readonly isCaseSensitive: boolean };

/** Met by every record. */
export const always: Condition = { kind: "all", of: [] };
/** Met by no record. */
export const never: Condition = { kind: "any", of: [] };

/** Returns one condition that asks for all of them; undefined ones ask for nothing. */
export function allOf(conditions: readonly (Condition | undefined)[]): Condition {
  const of = conditions.filter((one) => one !== undefined && !isAlways(one)) as readonly Condition[];
  return of.length === 1 ? (of[0] as Condition) : { kind: "all", of };
}

/** Returns the condition that the key is this one: a value for each of its fields. */
export function keyIs({ keys }: Pick<Definition, "keys">, values: readonly Parameter[]): Condition {
  return allOf(
    keys.map((field, index) => ({ kind: "compare", field, operator: "=", value: values[index] ?? null })),
  );
}

export function isAlways(condition: Condition): boolean {
  return condition.kind === "all" && condition.of.length === 0;
}

export function isNever(condition: Condition): boolean {
  return condition.kind === "any" && condition.of.length === 0;
}

/** Returns the text as a part of a LIKE pattern in which nothing has a meaning of its own. */
export function escapeLike(text: string): string {
  return text.replaceAll(/[\\%_]/g, "\\$&");
}

/** Whether a value in it is NULL, so that a part of it is unknown and never true. */
export function comparesWithNull(condition: Condition): boolean {
  switch (condition.kind) {
    case "all":
    case "any":
      return condition.of.some(comparesWithNull);
    case "not":
    case "notFalse":
    case "related":
      return comparesWithNull(condition.of);
    case "compare":
      return condition.value === null;
    case "in":
    case "list":
      return condition.values.includes(null);
    case "null":
    case "like":
    case "json":
    case "version":
      return false;
  }
}

export function isColumn(value: Parameter): value is StatementColumn {
  return typeof value === "object" && value !== null && "column" in value;
}
