import { statementName, type StatementNames } from "../db/statement-name.ts";
import { getOrSet } from "../kit/group-by.ts";
import type { Definitions } from "../mapping/definition.ts";

/**
 * Gives statements other names where a column has another type. A prepared statement keeps the
 * types of its parameters, and a connection keeps the statement, also after a reload.
 */
export function namesForTypes(names: StatementNames, definitions: Definitions): StatementNames {
  const types = [...definitions.values()].map(({ table, fields }) => [
    table,
    fields.map(({ column, type, native, isList, length, precision, scale }) =>
      [column, type, native, isList, length, precision, scale].join(" "),
    ),
  ]);
  const own = new Map<string, string>();
  const before = JSON.stringify(types);
  return (text) => {
    const name = names(text);
    return name === undefined ? undefined : getOrSet(own, name, () => statementName(before + name));
  };
}
