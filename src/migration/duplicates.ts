import type { ClientBase } from "pg";
import type { LiveObject } from "./live-objects.ts";
import { findOwnRows, rowNameOf, type RowChecks, type TableColumn } from "./row-checks.ts";
import { clausesOf, type TableClause } from "./statements.ts";
import { partsOfTable, quoteName } from "../db/names.ts";

/** Columns whose values must be unique together. */
interface UniqueColumns {
  readonly table: string;
  readonly columns: readonly string[];
}

interface DuplicateChecks extends RowChecks {
  /**
   * Columns that get another type. Each of their values can be cast, and may then equal another
   * one.
   */
  readonly castable: readonly TableColumn[];
}

/** Ends with the columns: `("a", "b")`. */
const uniqueClause = /^(?:CREATE UNIQUE INDEX|ADD CONSTRAINT "[^"]+" PRIMARY KEY) .*\(([^()]+)\)$/s;

/**
 * Counts the values that new unique indexes and keys would refuse, so that a plan reports them. It
 * uses the values after the other changes: cast to a new type, or a new default.
 *
 * @returns `settled`: the warnings of the engine about columns whose values were counted.
 */
export async function findDuplicates({
  client,
  statements,
  objects,
  warnings,
  castable,
}: DuplicateChecks): Promise<{
  readonly impossible: readonly string[];
  readonly settled: readonly string[];
}> {
  const clauses = clausesOf(statements);
  const isDropped = ({ name }: LiveObject): boolean =>
    clauses.some(({ clause }) => clause.action === "drop" && clause.name === name);
  const rebuilt = objects.filter(
    (object) =>
      uniqueKinds.includes(object.what) &&
      object.isPlain &&
      castable.some(({ table, column }) => table === object.table && object.columns.includes(column)) &&
      !isDropped(object),
  );
  const wanted = [...clauses.flatMap(uniqueColumnsOf), ...rebuilt].flatMap((unique) => {
    const values = valuesOf({ unique, statements, objects, castable });
    return values === undefined ? [] : [{ unique, values }];
  });
  const impossible: string[] = [];
  for (const { unique, values } of wanted) {
    const sentence = await duplicatesOf(client, unique, values, objects);
    if (sentence !== undefined) impossible.push(sentence);
  }
  const settled = warnings.filter((warning) => wanted.some(({ unique }) => isAbout(warning, unique)));
  return { impossible, settled };
}

const uniqueKinds = ["primary key", "unique constraint", "unique index"];
/** A default that is equal in all rows. */
const constant =
  /\bDEFAULT (?:'(?:[^']|'')*'|-?[\d.]+|true|false|CURRENT_TIMESTAMP|\('(?:[^']|'')*'::text\)::[^']+)$/;

/**
 * Returns the expressions that differ between the rows of a table: a new column with a constant
 * default has none. Undefined when the values of a column are not known.
 */
function valuesOf({
  unique: { table, columns },
  statements,
  objects,
  castable,
}: Omit<DuplicateChecks, "client" | "warnings"> & { readonly unique: UniqueColumns }):
  | readonly string[]
  | undefined {
  const clauses = clausesOf(statements).flatMap(({ table: of, clause }) =>
    of === table && clause.kind === "column" ? [clause] : [],
  );
  const values = columns.map((name) => {
    const own = clauses.filter((one) => one.name === name);
    const added = own.find(({ action }) => action === "add");
    if (added !== undefined) return constant.test(added.sql) ? [] : undefined;
    const isThere = objects.some((one) => one.kind === "column" && one.table === table && one.name === name);
    if (!isThere) return undefined;
    // A counting column only changes the size of its numbers.
    const type = own.find((one) => one.type?.endsWith("SERIAL") === false)?.type;
    const isCast = type !== undefined && castable.some((one) => one.table === table && one.column === name);
    return [isCast ? `${quoteName(name)}::${type}` : quoteName(name)];
  });
  const known = values.filter((value) => value !== undefined);
  return known.length < columns.length ? undefined : known.flat();
}

function uniqueColumnsOf({ table, clause: { action, kind, sql } }: TableClause): readonly UniqueColumns[] {
  const list = uniqueClause.exec(sql)?.[1];
  if (action !== "add" || kind !== "index" || list === undefined) return [];
  return [{ table, columns: [...list.matchAll(/"([^"]+)"/g)].map(([, name = ""]) => name) }];
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
  values: readonly string[],
  objects: readonly LiveObject[],
): Promise<string | undefined> {
  const row = rowNameOf(table, objects);
  const shown = row ?? "NULL";
  const list = values.join(", ");
  const areGiven = values.map((value) => `${value} IS NOT NULL`).join(" AND ");
  const { rows } = await client.query<{ count: string; one: string; other: string }>(
    `SELECT count(*) OVER () AS count, min(${shown}) AS one, max(${shown}) AS other FROM ${await findOwnRows(client, table)}
     WHERE ${areGiven || "true"} GROUP BY ${list || "()"} HAVING count(*) > 1 ORDER BY 2 LIMIT 1`,
  );
  const [found] = rows;
  if (found === undefined) return undefined;
  const what = columns.length === 1 ? `column ${columns[0]}` : `columns ${columns.join(", ")} together`;
  const occur = found.count === "1" ? "1 value occurs" : `${found.count} values occur`;
  const example = row === undefined ? "" : `, for example in the rows with ${found.one} and ${found.other}`;
  return `The ${what} of the table ${table} must be unique, and ${occur} more than once${example}. Change the values first.`;
}
