import type { StatementNames } from "../db/statement-name.ts";
import { createStatementNames } from "../db/text-sql.ts";
import { setBounded } from "../kit/bounded-map.ts";
import type { Definitions } from "../mapping/definition.ts";

/** Kinds of mapping files that are remembered: a refused reload must not begin the count again. */
const mostKept = 4;

/**
 * Returns what gives the names of statements for mapping files. A prepared statement keeps the
 * types of its parameters, and a connection keeps the statement, also after a reload. So
 * statements have other names where columns have other types. Reloads of the same types go on
 * with the same count.
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

/** Returns a text that is another one where columns have other types. */
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
