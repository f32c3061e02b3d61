import type { TextSql } from "../db/text-sql.ts";
import type { Definition } from "../mapping/definition.ts";
import { createParameters, fromText, versionText } from "./condition-text.ts";
import type { Condition } from "./condition.ts";

/** Reads the version of the record that meets the condition. Returns undefined without a record. */
export async function readVersion(
  sql: TextSql,
  definition: Definition,
  condition: Condition,
): Promise<string | undefined> {
  const parameters = createParameters();
  const text = `SELECT ${versionText("t", definition.fields)} ${fromText(definition, condition, parameters)}`;
  const [row] = await sql(text, parameters.values);
  return row?.[0] ?? undefined;
}
