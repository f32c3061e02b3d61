import type { ClientBase } from "pg";
import type { LiveObject } from "./live-objects.ts";
import type { Statement } from "./statements.ts";
import { partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";

/** Columns whose values must be unique together. */
interface UniqueColumns {
  readonly table: string;
  readonly columns: readonly string[];
}

/** Ends with the columns: `("a", "b")`. */
const uniqueClause = /^(?:CREATE UNIQUE INDEX|ADD CONSTRAINT "[^"]+" PRIMARY KEY) .*\(([^()]+)\)$/s;

/**
 * Counts the values that new unique indexes and keys would refuse, so that a plan reports them.
 *
 * @param warnings Warnings of the engine, which does not read the rows.
 */
export async function findDuplicates({
  client,
  statements,
  objects,
  warnings,
}: {
  readonly client: ClientBase;
  readonly statements: readonly Statement[];
  readonly objects: readonly LiveObject[];
  readonly warnings: readonly string[];
}): Promise<{ readonly impossible: readonly string[]; readonly settled: readonly string[] }> {
  const isThere = ({ table, columns }: UniqueColumns): boolean =>
    columns.every((name) =>
      objects.some((one) => one.kind === "column" && one.table === table && one.name === name),
    );
  const wanted = statements.flatMap(uniqueColumnsOf).filter(isThere);
  const impossible: string[] = [];
  for (const unique of wanted) {
    const sentence = await duplicatesOf(client, unique, objects);
    if (sentence !== undefined) impossible.push(sentence);
  }
  const settled = warnings.filter((warning) => wanted.some((unique) => isAbout(warning, unique)));
  return { impossible, settled };
}

function uniqueColumnsOf({ table, clauses }: Statement): readonly UniqueColumns[] {
  return clauses.flatMap(({ action, kind, sql }) => {
    const list = uniqueClause.exec(sql)?.[1];
    if (table === undefined || action !== "add" || kind !== "index" || list === undefined) return [];
    return [{ table, columns: [...list.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name) }];
  });
}

/** Returns whether a warning of the engine, which names no schema, is about these columns. */
function isAbout(warning: string, { table, columns }: UniqueColumns): boolean {
  const { name } = partsOfTable(table);
  return warning.startsWith(
    `A unique constraint covering the columns \`[${columns.join(",")}]\` on the table \`${name}\` `,
  );
}

/** Describes duplicates by the keys of two rows, because the values may be secrets. */
async function duplicatesOf(
  client: ClientBase,
  { table, columns }: UniqueColumns,
  objects: readonly LiveObject[],
): Promise<string | undefined> {
  const row = rowNameOf(table, objects);
  const shown = row ?? "NULL";
  const list = columns.map(quoteName).join(", ");
  const { rows } = await client.query<{ count: string; one: string; other: string }>(
    `SELECT count(*) OVER () AS count, min(${shown}) AS one, max(${shown}) AS other FROM ${quoteTable(table)}
     WHERE num_nulls(${list}) = 0 GROUP BY ${list} HAVING count(*) > 1 ORDER BY 2 LIMIT 1`,
  );
  const [found] = rows;
  if (found === undefined) return undefined;
  const what = columns.length === 1 ? `column ${columns[0]}` : `columns ${columns.join(", ")} together`;
  const occur = found.count === "1" ? "1 value occurs" : `${found.count} values occur`;
  const example = row === undefined ? "" : `, for example in the rows with ${found.one} and ${found.other}`;
  return `The ${what} of the table ${table} must be unique, and ${occur} more than once${example}. Change the values first.`;
}

/** Returns an SQL expression that names a row by its key; undefined for a table without a key. */
export function rowNameOf(table: string, objects: readonly LiveObject[]): string | undefined {
  const key = objects.find((one) => one.table === table && one.what === "primary key")?.columns ?? [];
  if (key.length === 0) return undefined;
  const parts = key.map((name) => `concat(${quoteText(`${name} `)}, ${quoteName(name)})`);
  return `concat_ws(', ', ${parts.join(", ")})`;
}
