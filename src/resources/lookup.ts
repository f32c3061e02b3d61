import type { Pool } from "pg";
import type { Definition, Definitions } from "./definition.ts";
import type { Lookup } from "./rules.ts";

/**
 * Answers the rules `unique` and `exists` from the database, with the database's own exact comparison.
 *
 * A target is a resource or, when no resource has the name, a table. Plain SQL for both: one statement, half the cost of a delegate.
 */
export function createLookup({
  pool,
  definitions,
}: {
  readonly pool: Pool;
  readonly definitions: Definitions;
}): Lookup {
  return {
    async exists({ target, column, value, except }) {
      const definition = definitions.get(target);
      const text = textOf(value);
      if (text === undefined) return false;
      const isOther =
        except === undefined ? "" : ` AND ${columnOf(definition, definition?.key.name ?? "id")} <> $2`;
      const sql = `SELECT 1 FROM ${quote(definition?.table ?? target)} WHERE ${columnOf(definition, column)} = $1${isOther} LIMIT 1`;
      try {
        const { rowCount } = await pool.query(sql, except === undefined ? [text] : [text, String(except)]);
        return rowCount === 1;
      } catch (error) {
        if (isDataFault(error)) return false;
        throw error;
      }
    },
  };
}

function columnOf(definition: Definition | undefined, name: string): string {
  return quote(definition?.fields.find((field) => field.name === name)?.column ?? name);
}

function quote(identifier: string): string {
  return `"${identifier.replaceAll('"', '""')}"`;
}

/** The server reads the text as the column's own type. Undefined: no column holds such a value. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return undefined;
}

/** Class 22: `abc` for an integer column, a NUL, a number out of range. Such a value is in no row. */
function isDataFault(error: unknown): boolean {
  return (
    error instanceof Error && "code" in error && typeof error.code === "string" && error.code.startsWith("22")
  );
}
