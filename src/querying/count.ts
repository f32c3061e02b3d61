import type { TextSql } from "../db/text-sql.ts";
import type { Parameters } from "./condition-text.ts";

/** The number of records. */
export interface Total {
  readonly total: number;
  readonly isEstimate: boolean;
}

/**
 * Corrects a total by a page that shows the end, or a further page. Page links then lead to the
 * end, however wrong an estimate is.
 *
 * @param end Number of records up to the end of the page.
 */
export function correctedTotal(
  { total, isEstimate }: Total,
  { end, size, hasMore }: { readonly end: number; readonly size: number; readonly hasMore: boolean },
): Total {
  if (hasMore) return { total: Math.max(total, end + 1), isEstimate };
  // An empty page may be far beyond the end.
  return size === 0 ? { total: Math.min(total, end), isEstimate } : { total: end, isEstimate: false };
}

export function exactTotal(total: number): Total {
  return { total, isEstimate: false };
}

/** Limit up to which an estimated count is exact (docs/lists.md). */
const exactUpTo = 10_000;

/**
 * Counts the rows of a FROM and a WHERE. An estimate is exact up to 10,000. Beyond that, it is the
 * planner's estimate, whose cost does not depend on the size of the table.
 *
 * @param parameters Parameters of the text.
 */
export async function countRows(
  sql: TextSql,
  mode: "exact" | "estimated",
  { from, parameters }: { readonly from: string; readonly parameters: Parameters },
): Promise<Total> {
  if (mode === "exact") {
    const [all] = await sql(`SELECT count(*) ${from}`, parameters.values);
    return exactTotal(Number(all?.[0]));
  }
  const limit = parameters.add(exactUpTo + 1);
  const text = `SELECT count(*) FROM (SELECT 1 ${from} LIMIT ${limit}) AS few`;
  const [row] = await sql(text, parameters.values);
  const counted = Number(row?.[0]);
  if (counted <= exactUpTo) return exactTotal(counted);
  const [plan] = await sql(`EXPLAIN (FORMAT JSON) SELECT 1 ${from}`, parameters.values.slice(0, -1));
  const [
    {
      Plan: { "Plan Rows": rows },
    },
  ] = JSON.parse(plan?.[0] ?? "") as [{ Plan: { "Plan Rows": number } }];
  return { total: Math.max(rows, counted), isEstimate: true };
}
