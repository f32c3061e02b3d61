import { literalOf, nameOfIdentifier, splitAt, withoutCasts, withoutParentheses } from "../sql-text.ts";

/** A condition of a CHECK constraint on one column. */
export type Checked =
  | { readonly kind: "values"; readonly column: string; readonly values: readonly string[] }
  | { readonly kind: "size"; readonly column: string; readonly rule: string; readonly bound: string }
  | { readonly kind: "length"; readonly column: string; readonly rule: string; readonly bound: string };

const comparisons: Readonly<Record<string, string>> = { ">=": "min", "<=": "max", ">": "gt", "<": "lt" };
const lengths: Readonly<Record<string, string>> = { ...comparisons, "=": "size" };

/**
 * Reads the condition of a CHECK constraint in PostgreSQL's form: comparisons with a constant, and
 * lists of values, with AND between them.
 *
 * @param isPlain Returns whether casts compare the unchanged values of a column.
 * @returns Undefined when the condition has another part.
 */
export function readCheck(condition: string, isPlain: IsPlain): readonly Checked[] | undefined {
  const parts = conjuncts(condition).map(
    (part) => readValues(part, isPlain) ?? readComparison(part, isPlain),
  );
  return parts.some((part) => part === undefined) ? undefined : (parts as Checked[]);
}

function conjuncts(condition: string): readonly string[] {
  const whole = withoutParentheses(condition);
  const parts = splitAt(whole, " AND ");
  return parts.length === 1 ? [whole] : parts.flatMap(conjuncts);
}

type IsPlain = (column: string, casts: readonly string[]) => boolean;

/** Types to which PostgreSQL itself casts an operand. */
const texts = ["text", "character varying", "bpchar"];
const numbers = ["numeric", "double precision"];
const wholes = [...numbers, "smallint", "integer", "bigint"];

/** Types to which a cast keeps the values, by the type of the column. */
const keeping = new Map([
  ...["text", "varchar", "bpchar", "name", "citext"].map((type) => [type, texts] as const),
  ...["int2", "int4", "int8"].map((type) => [type, wholes] as const),
]);

/**
 * Returns whether casts of a column compare its unchanged values.
 *
 * @param base Type of the column, beneath its domains.
 */
export function areCompared(base: string | undefined, casts: readonly string[]): boolean {
  const kept = keeping.get(base ?? "") ?? numbers;
  // Without a cast, `citext` compares texts in any case.
  return casts.every((type) => kept.includes(type)) && (base !== "citext" || casts.length > 0);
}

/** Returns the column of an operand; undefined when a cast changes its value. */
function columnOf(operand: string, isPlain: IsPlain): string | undefined {
  const casts: string[] = [];
  const column = nameOfIdentifier(withoutCasts(operand, (type) => casts.push(type) > 0));
  return column !== undefined && isPlain(column, casts) ? column : undefined;
}

function readValues(part: string, isPlain: IsPlain): Checked | undefined {
  const [left = "", right] = splitAt(part, " = ANY ");
  const column = columnOf(left, isPlain);
  const [, list] = /^ARRAY\[(.*)\]$/s.exec(right === undefined ? "" : withoutCasts(right)) ?? [];
  if (column === undefined || list === undefined) return undefined;
  const values = splitAt(list, ", ").map(literalOf);
  return values.some((value) => value === undefined)
    ? undefined
    : { kind: "values", column, values: values as string[] };
}

function readComparison(part: string, isPlain: IsPlain): Checked | undefined {
  for (const operator of [" >= ", " <= ", " > ", " < ", " = "]) {
    const [left = "", right, ...more] = splitAt(part, operator);
    if (right === undefined || more.length > 0) continue;
    const bound = literalOf(right);
    if (bound === undefined || !/^-?\d+(?:\.\d+)?$/.test(bound)) return undefined;
    const [, measured] = /^(?:char_length|character_length|length)\((.*)\)$/s.exec(withoutCasts(left)) ?? [];
    const column = columnOf(measured ?? left, isPlain);
    const rule = (measured === undefined ? comparisons : lengths)[operator.trim()];
    if (column === undefined || rule === undefined) return undefined;
    return { kind: measured === undefined ? "size" : "length", column, rule, bound };
  }
  return undefined;
}
