import type { ClientBase } from "pg";
import type { LiveObject } from "./live-objects.ts";
import type { Statement } from "./statements.ts";
import type { ValueLimit } from "./value-limits.ts";
import { partsOfTable, quoteName, quoteTable, quoteText } from "../db/names.ts";

/** Columns whose values must be unique together. */
interface UniqueColumns {
  readonly table: string;
  readonly columns: readonly string[];
}

/** Ends with the columns: `("a", "b")`. */
const uniqueClause = /^(?:CREATE UNIQUE INDEX|ADD CONSTRAINT "[^"]+" PRIMARY KEY) .*\(([^()]+)\)$/s;

/**
 * Counts the values that new unique indexes and keys would refuse, so that a plan reports them. It
 * uses the values after the other changes: cast to a new type, or a new default.
 *
 * @param warnings Warnings of the engine, which does not read the rows.
 * @param castable Columns that get another type. Each of their values can be cast, and may then
 *   equal another one.
 */
export async function findDuplicates({
  client,
  statements,
  objects,
  warnings,
  castable,
}: {
  readonly client: ClientBase;
  readonly statements: readonly Statement[];
  readonly objects: readonly LiveObject[];
  readonly warnings: readonly string[];
  readonly castable: readonly Pick<ValueLimit, "table" | "column">[];
}): Promise<{ readonly impossible: readonly string[]; readonly settled: readonly string[] }> {
  const isDropped = ({ name }: LiveObject): boolean =>
    statements.some(({ clauses }) => clauses.some((one) => one.action === "drop" && one.name === name));
  const rebuilt = objects.filter(
    (object) =>
      uniqueKinds.includes(object.what) &&
      object.isPlain &&
      castable.some(({ table, column }) => table === object.table && object.columns.includes(column)) &&
      !isDropped(object),
  );
  const wanted = [...statements.flatMap(uniqueColumnsOf), ...rebuilt].flatMap((unique) => {
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
}: {
  readonly unique: UniqueColumns;
} & Pick<Parameters<typeof findDuplicates>[0], "statements" | "objects" | "castable">):
  | readonly string[]
  | undefined {
  const clauses = statements
    .filter((one) => one.table === table)
    .flatMap((one) => one.clauses)
    .filter(({ kind }) => kind === "column");
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

/**
 * Returns SQL for the rows that keys of a table apply to: those of its partitions, without tables
 * that inherit from it. It names no columns, because the role may not read some.
 */
export async function findOwnRows(client: ClientBase, table: string): Promise<string> {
  const place = quoteTable(table);
  const { rows } = await client.query<{ isPartitioned: boolean }>(
    `SELECT relkind = 'p' AS "isPartitioned" FROM pg_class WHERE oid = to_regclass($1)`,
    [place],
  );
  return rows[0]?.isPartitioned === true ? place : `ONLY ${place}`;
}

/** Returns an SQL expression that names a row by its key; undefined for a table without a key. */
export function rowNameOf(table: string, objects: readonly LiveObject[]): string | undefined {
  const key = objects.find((one) => one.table === table && one.what === "primary key")?.columns ?? [];
  if (key.length === 0) return undefined;
  const parts = key.map((name) => `concat(${quoteText(`${name} `)}, ${quoteName(name)})`);
  return `concat_ws(', ', ${parts.join(", ")})`;
}
