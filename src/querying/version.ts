import { quoteTable } from "../db/names.ts";
import type { TextSql } from "../db/text-sql.ts";
import type { Definition } from "../mapping/definition.ts";
import { createParameters, versionText } from "./condition-text.ts";
import type { Condition } from "./condition.ts";
import { whereText } from "./read.ts";

/** Reads the version of the record that meets the condition. Returns undefined for none. */
export async function readVersion(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<string | undefined> {
  const parameters = createParameters();
  const where = whereText(condition, parameters);
  const text = `SELECT ${versionText("t")} FROM ${quoteTable(definition.table)} AS t ${where}`;
  const [row] = await sql(text, parameters.values);
  return row?.[0] ?? undefined;
}
