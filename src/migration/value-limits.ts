import type { ClientBase } from "pg";
import type { Definition, Field } from "../mapping/definition.ts";
import { partsOfTable, quoteName, quoteTable } from "../db/names.ts";

/** The limit for the values of a column, so that PostgreSQL can cast them to its new type. */
export interface ValueLimit {
  readonly table: string;
  readonly column: string;
  readonly isList: boolean;
  /** Completes "the column is to hold ...". */
  readonly expected: string;
  /** An SQL condition on `value` that is true beyond the limit. */
  readonly broken: string;
  /** Whether the cast changes no value within the limit. */
  readonly isLossless: boolean;
}

/** Returns the limits that the types of a definition's columns set. */
export function valueLimitsOf({ table, fields }: Definition): readonly ValueLimit[] {
  return fields.flatMap((field) => {
    const limit = limitOf(field);
    return limit === undefined ? [] : [{ table, column: field.column, isList: field.isList, ...limit }];
  });
}

function limitOf({
  type,
  length,
  precision,
  scale = 0,
}: Field): Pick<ValueLimit, "expected" | "broken" | "isLossless"> | undefined {
  if (type === "String" && length !== undefined) {
    // Spaces at the end count, since PostgreSQL would cut them without a warning.
    const broken = `char_length(value::text) > ${length}`;
    return { expected: `at most ${length} characters`, broken, isLossless: true };
  }
  if (type === "Int")
    return {
      expected: "whole numbers of 32 bits",
      broken: "value NOT BETWEEN -2147483648 AND 2147483647",
      isLossless: false,
    };
  if (type !== "Decimal" || precision === undefined) return undefined;
  const whole = precision - scale;
  return {
    expected: `at most ${whole} digits before the decimal point`,
    broken: `abs(round(value::numeric, ${scale})) >= 1e${whole}`,
    isLossless: false,
  };
}

/** Counts the rows with a value beyond the limit. */
async function countBroken(client: ClientBase, limit: ValueLimit): Promise<number> {
  const { table, column, isList, broken } = limit;
  const values = `SELECT ${quoteName(column)} AS value FROM ${quoteTable(table)}`;
  const condition = isList ? `EXISTS (SELECT FROM unnest(value) AS items (value) WHERE ${broken})` : broken;
  const { rows } = await client.query<{ count: string }>(
    `SELECT count(*) FROM (${values}) AS given WHERE ${condition}`,
  );
  return Number(rows[0]?.count);
}

const cast = /^You are about to alter the column `([^`]+)` on the `([^`]+)` table,.* will be cast from /s;

/**
 * Checks the values where the engine warns of a cast, as it does for every narrower type. Some
 * values cannot be cast, with any flag; where all fit, nothing is lost. The warning names no
 * schema, so it may be about several tables.
 *
 * @param changed The columns whose type changes.
 */
export async function findNarrowed({
  client,
  limits,
  changed,
  warnings,
}: {
  readonly client: ClientBase;
  readonly limits: readonly ValueLimit[];
  readonly changed: readonly Pick<ValueLimit, "table" | "column">[];
  readonly warnings: readonly string[];
}): Promise<{ readonly impossible: readonly string[]; readonly settled: readonly string[] }> {
  const impossible = new Set<string>();
  const settled: string[] = [];
  for (const warning of warnings) {
    const [, column, table] = cast.exec(warning) ?? [];
    const matching = changed
      .filter((one) => partsOfTable(one.table).name === table && one.column === column)
      .map((one) => limits.find((limit) => limit.table === one.table && limit.column === column));
    if (matching.length === 0) continue;
    const refusals: string[] = [];
    for (const limit of matching) {
      const count = limit === undefined ? 0 : await countBroken(client, limit);
      if (limit !== undefined && count > 0) refusals.push(tooWide(limit, count));
    }
    if (refusals.length > 0 || matching.every((limit) => limit?.isLossless === true)) settled.push(warning);
    for (const refusal of refusals) impossible.add(refusal);
  }
  return { impossible: [...impossible], settled };
}

function tooWide({ table, column, expected }: ValueLimit, count: number): string {
  const rows = count === 1 ? "1 row has" : `${count} rows have`;
  return `The column ${column} of the table ${table} is to hold ${expected}, and ${rows} a value beyond that. Change the values first; none is cut.`;
}
