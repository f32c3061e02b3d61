import { createStatementNames, type StatementNames } from "../db/statement-name.ts";
import type { Definitions } from "../mapping/definition.ts";

/**
 * Returns a function that names the prepared statements of mapping files. A prepared statement
 * keeps the types of its parameters, and a connection keeps the statement, even after a reload. So
 * statements get other names where columns have other types.
 */
export function namesOf(isEmbedded: boolean, definitions: Definitions): StatementNames {
  return createStatementNames(isEmbedded, typesOf(definitions));
}

/** Returns a text that differs when column types differ. */
export function typesOf(definitions: Definitions): string {
  return JSON.stringify(
    [...definitions.values()].map(({ table, fields }) => [
      table,
      fields.map(({ column, type, native, isList, length, precision, scale }) =>
        [column, type, native, isList, length, precision, scale].join(" "),
      ),
    ]),
  );
}
