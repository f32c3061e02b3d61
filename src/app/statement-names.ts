import type { StatementNames } from "../db/statement-name.ts";
import { createStatementNames } from "../db/text-sql.ts";
import { setBounded } from "../kit/bounded-map.ts";
import type { Definitions } from "../mapping/definition.ts";

/** The connections of a process by their use. */
export type Connections = "records" | "lists" | "relay";

/** Number of remembered counts: a refused reload must not restart the count of any connections. */
const mostKept = 12;

/**
 * Returns a function that names the prepared statements of mapping files. A prepared statement
 * keeps the types of its parameters, and a connection keeps the statement, even after a reload. So
 * statements get other names where columns have other types. Reloads with the same types continue
 * the same count.
 *
 * Each kind of connections has its own count. The lists of one user would otherwise leave no name
 * for single records and for the relay. Bodies with different fields can still use up three
 * quarters of the names of the records. Further writes of all users then run unnamed and alone,
 * which is slower.
 */
export function createNamesOf(
  isEmbedded: boolean,
): (definitions: Definitions, connections: Connections) => StatementNames {
  const kept = new Map<string, StatementNames>();
  return (definitions, connections) => {
    const types = typesOf(definitions);
    const key = `${connections} ${types}`;
    const names = kept.get(key) ?? createStatementNames(isEmbedded, types);
    setBounded(kept, [key, names], mostKept);
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
