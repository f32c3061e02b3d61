import { quoteName, quoteTable } from "../db/names.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import type { Sql } from "../db/sql.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import type { Lookup } from "./rules.ts";

/**
 * Answers the rules `unique` and `exists` of one resource from the database, by the database's own exact comparison.
 * Plain SQL, because a target may be a table that no resource has.
 *
 * @param own The resource whose rules ask: its record that is being updated is left aside, those of others are not.
 */
export function createLookup({
  own,
  definitions,
  sql,
}: {
  readonly own: Definition;
  readonly definitions: Definitions;
  readonly sql: Sql;
}): Lookup {
  const byTable = new Map([...definitions.values()].map((definition) => [definition.table, definition]));

  return {
    async exists({ target, column, value, except }) {
      const text = textOf(value);
      if (text === undefined) return false;
      const definition = definitions.get(target) ?? byTable.get(target);
      const left = definition?.name === own.name ? textOf(except) : undefined;
      const others = left === undefined ? [] : [left];
      const statement = [
        `SELECT 1 FROM ${quoteTable(definition?.table ?? target)} WHERE ${columnOf(definition, column)} = $1`,
        ...others.map(() => `AND ${quoteName(own.key.column)} <> $2`),
        "LIMIT 1",
      ].join(" ");
      try {
        return (await sql(statement, [text, ...others])).length > 0;
      } catch (error) {
        // `abc` for an integer column, a NUL, a number out of range: such a value is in no row.
        if (databaseFaultOf(error).kind === "bad_value") return false;
        throw error;
      }
    },
  };
}

/** Rules may name a field or, as for a table without a resource, a column. */
function columnOf(definition: Definition | undefined, name: string): string {
  return quoteName(definition?.fields.find((field) => field.name === name)?.column ?? name);
}

/** The server reads the text as the column's own type. Undefined: no column holds such a value. */
function textOf(value: unknown): string | undefined {
  if (typeof value === "string") return value;
  if (typeof value === "number" || typeof value === "bigint" || typeof value === "boolean")
    return String(value);
  return undefined;
}
