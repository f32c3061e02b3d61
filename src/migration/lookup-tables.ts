import type { ClientBase, Pool } from "pg";
import { shortTable } from "../db/names.ts";
import { readColumns } from "./live-tables.ts";
import type { Definition, Definitions } from "../mapping/definition.ts";
import { lookupColumnOf } from "../validation/compile.ts";
import { parseRules } from "../validation/syntax.ts";

/** The target of a rule `unique` or `exists`: a resource, or otherwise a table. */
interface TableLookup {
  readonly table: string;
  readonly column: string;
  /** Returns a sentence with the place of the rule. */
  readonly remark: (message: string) => string;
}

/**
 * Finds faults in the tables that the rules `unique` and `exists` name instead of a resource. Each
 * is a sentence that names the place in the mapping file. Queries the database only when there are
 * such rules. Rules of a code module are only known when it runs.
 */
export async function lookupFaults(
  client: ClientBase | Pool,
  definitions: Definitions,
): Promise<readonly string[]> {
  const all = [...definitions.values()];
  const byTable = new Map(all.map((definition) => [definition.table, definition]));
  const lookups = all
    .flatMap(lookupsOf)
    .filter(
      ({ table, column }) => !definitions.has(table) && !hasColumn(byTable.get(shortTable(table)), column),
    );
  const live = await readColumns(client, [...new Set(lookups.map(({ table }) => table))]);
  return lookups.flatMap(({ table, column, remark }) => {
    const columns = live.filter((one) => one.table === shortTable(table)).map(({ name }) => name);
    if (columns.length === 0) return [remark(`there is neither a resource nor a table "${table}"`)];
    return columns.includes(column)
      ? []
      : [remark(`the table "${table}" has no column "${column}" (the columns are ${columns.join(", ")})`)];
  });
}

function lookupsOf(definition: Definition): readonly TableLookup[] {
  return (["createRules", "updateRules"] as const).flatMap((key) => {
    const specs = definition.code[key] === undefined ? (definition[key] ?? {}) : {};
    return Object.entries(specs).flatMap(([field, spec]) =>
      parseRules(spec).flatMap(({ name, args: [table = "", column = lookupColumnOf(field)] }) => {
        const remark = (message: string): string => definition.remark([key, field], `${name}: ${message}`);
        return name === "unique" || name === "exists" ? [{ table, column, remark }] : [];
      }),
    );
  });
}

/** Returns whether the mapping file gives the table the column, which may not exist yet. */
function hasColumn(definition: Definition | undefined, name: string): boolean {
  return definition?.fields.some((field) => field.name === name || field.column === name) === true;
}
