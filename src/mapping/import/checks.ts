import { literalOf, nameOfIdentifier, splitAt, withoutCasts, withoutParentheses } from "./sql-text.ts";

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
 * @param isWhole Returns whether a column has whole numbers, which no cast rounds.
 * @returns Undefined when the condition has another part.
 */
export function readCheck(
  condition: string,
  isWhole: (column: string) => boolean = () => false,
): readonly Checked[] | undefined {
  const parts = conjuncts(condition).map(
    (part) => readValues(part, isWhole) ?? readComparison(part, isWhole),
  );
  return parts.some((part) => part === undefined) ? undefined : (parts as Checked[]);
}

function conjuncts(condition: string): readonly string[] {
  const whole = withoutParentheses(condition);
  const parts = splitAt(whole, " AND ");
  return parts.length === 1 ? [whole] : parts.flatMap(conjuncts);
}

/** Types to which PostgreSQL itself casts an operand, whose values stay as they are. */
const exactTypes = ["text", "character varying", "bpchar", "numeric", "double precision"];
const wholeTypes = ["smallint", "integer", "bigint"];

const isExact = (type: string): boolean => exactTypes.includes(type);

/** Returns the column of an operand; undefined where a cast makes another value of it. */
function columnOf(operand: string, isWhole: (column: string) => boolean): string | undefined {
  const plain = nameOfIdentifier(withoutCasts(operand, isExact));
  if (plain !== undefined) return plain;
  const column = nameOfIdentifier(
    withoutCasts(operand, (type) => isExact(type) || wholeTypes.includes(type)),
  );
  return column !== undefined && isWhole(column) ? column : undefined;
}

function readValues(part: string, isWhole: (column: string) => boolean): Checked | undefined {
  const [left = "", right] = splitAt(part, " = ANY ");
  const column = columnOf(left, isWhole);
  const [, list] = /^ARRAY\[(.*)\]$/s.exec(right === undefined ? "" : withoutCasts(right)) ?? [];
  if (column === undefined || list === undefined) return undefined;
  const values = splitAt(list, ", ").map(literalOf);
  return values.some((value) => value === undefined)
    ? undefined
    : { kind: "values", column, values: values as string[] };
}

function readComparison(part: string, isWhole: (column: string) => boolean): Checked | undefined {
  for (const operator of [" >= ", " <= ", " > ", " < ", " = "]) {
    const [left = "", right, ...more] = splitAt(part, operator);
    if (right === undefined || more.length > 0) continue;
    const bound = literalOf(right);
    if (bound === undefined || !/^-?\d+(?:\.\d+)?$/.test(bound)) return undefined;
    const [, measured] = /^(?:char_length|character_length|length)\((.*)\)$/s.exec(withoutCasts(left)) ?? [];
    const column = columnOf(measured ?? left, isWhole);
    const rule = (measured === undefined ? comparisons : lengths)[operator.trim()];
    if (column === undefined || rule === undefined) return undefined;
    return { kind: measured === undefined ? "size" : "length", column, rule, bound };
  }
  return undefined;
}
