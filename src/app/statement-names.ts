import type { StatementNames } from "../db/statement-name.ts";
import { createStatementNames } from "../db/text-sql.ts";
import { setBounded } from "../kit/bounded-map.ts";
import type { Definitions } from "../mapping/definition.ts";

/** Number of remembered sets of column types: a refused reload must not restart the count. */
const mostKept = 4;

/**
 * Returns a function that names the prepared statements of mapping files. A prepared statement
 * keeps the types of its parameters, and a connection keeps the statement, even after a reload. So
 * statements get other names where columns have other types. Reloads with the same types continue
 * the same count.
 */
export function createNamesOf(isEmbedded: boolean): (definitions: Definitions) => StatementNames {
  const kept = new Map<string, StatementNames>();
  return (definitions) => {
    const types = typesOf(definitions);
    const names = kept.get(types) ?? createStatementNames(isEmbedded, types);
    setBounded(kept, [types, names], mostKept);
    return names;
  };
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
