import type { TextSql } from "../db/text-sql.ts";
import type { Definition } from "../mapping/definition.ts";
import { createParameters, fromText, type Parameters } from "./condition-text.ts";
import type { Condition } from "./condition.ts";

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
): Promise<{ readonly total: number; readonly isEstimate: boolean }> {
  const parameters = createParameters();
  return estimateCount(sql, fromText(definition, condition, parameters), parameters);
}

/**
 * Does the same for the rows of a FROM and a WHERE.
 *
 * @param parameters Parameters of the text.
 */
export async function estimateCount(
  sql: TextSql,
  from: string,
  parameters: Parameters,
): Promise<{ readonly total: number; readonly isEstimate: boolean }> {
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
