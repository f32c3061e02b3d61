import type { TextSql } from "../db/text-sql.ts";
import type { Definition } from "../mapping/definition.ts";
import { createParameters, fromText, type Parameters } from "./condition-text.ts";
import type { Condition } from "./condition.ts";

/** The number of records. */
export interface Total {
  readonly total: number;
  readonly isEstimate: boolean;
}

/**
 * Corrects a total by a page that shows the end, or that there is more. Page links then lead to the
 * end, however wrong an estimate is.
 *
 * @param end Number of records up to the end of the page.
 */
export function correctedTotal(
  { total, isEstimate }: Total,
  { end, size, hasMore }: { readonly end: number; readonly size: number; readonly hasMore: boolean },
): Total {
  if (hasMore) return { total: Math.max(total, end + 1), isEstimate };
  // An empty page may be far behind the end.
  return size === 0 ? { total: Math.min(total, end), isEstimate } : { total: end, isEstimate: false };
}

/** Counts the records that meet the condition. */
export async function countRecords(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<number> {
  const parameters = createParameters();
  const text = `SELECT count(*) ${fromText(definition, condition, parameters)}`;
  const [row] = await sql(text, parameters.values);
  return Number(row?.[0]);
}

/** Limit up to which an estimated count is exact (docs/lists.md). */
const exactUpTo = 10_000;

/**
 * Counts exactly up to 10,000. Beyond that, returns the planner's estimate, whose cost does not
 * depend on the size of the table.
 */
export async function estimateRecords(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<Total> {
  const parameters = createParameters();
  return estimateCount(sql, fromText(definition, condition, parameters), parameters);
}

/**
 * Does the same for the rows of a FROM and a WHERE.
 *
 * @param parameters Parameters of the text.
 */
export async function estimateCount(sql: TextSql, from: string, parameters: Parameters): Promise<Total> {
  const limit = parameters.add(exactUpTo + 1);
  const text = `SELECT count(*) FROM (SELECT 1 ${from} LIMIT ${limit}) AS few`;
  const [row] = await sql(text, parameters.values);
  const counted = Number(row?.[0]);
  if (counted <= exactUpTo) return { total: counted, isEstimate: false };
  const [plan] = await sql(`EXPLAIN (FORMAT JSON) SELECT 1 ${from}`, parameters.values.slice(0, -1));
  const [
    {
      Plan: { "Plan Rows": rows },
    },
  ] = JSON.parse(plan?.[0] ?? "") as [{ Plan: { "Plan Rows": number } }];
  return { total: Math.max(rows, counted), isEstimate: true };
}
