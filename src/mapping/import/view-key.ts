import { nameOfIdentifier, splitAt, withoutCasts } from "./sql-text.ts";

/** A table beneath a view, as far as the search for a key needs it. */
export interface BaseTable {
  readonly schema: string;
  readonly name: string;
  /** Names of columns that are unique by themselves, the primary key first. */
  readonly uniqueColumns: readonly string[];
}

/** A part of FROM: its name there, and its table. */
interface Source {
  readonly alias: string;
  readonly table: BaseTable;
}

/**
 * Finds a column of a view that no two of its rows share, as far as its SQL proves that. It is
 * the key of a table whose rows appear at most once, or the only column of GROUP BY.
 *
 * @param definition What `pg_get_viewdef(oid, true)` gives.
 * @param findTable Finds a table by the name that the definition has.
 * @returns Names of the view's columns, the best first; empty when nothing is proved.
 */
export function provedKeys(
  definition: string,
  findTable: (schema: string | undefined, name: string) => BaseTable | undefined,
): readonly string[] {
  const parts =
    /^\s*SELECT (.*?)\n {3}FROM (.*?)(?:\n {2}WHERE .*?)?(?:\n {2}GROUP BY (.*?))?(?:\n {2}ORDER BY .*?)?;?$/s;
  const [, list = "", from = "", groups] = parts.exec(definition.trimEnd()) ?? [];
  if (list === "" || /\b(?:UNION|INTERSECT|EXCEPT|HAVING|LIMIT|OFFSET|WINDOW|GROUPING)\b/.test(definition))
    return [];
  const shown = shownColumns(list.replace(/^DISTINCT(?: ON \(.*?\))?\s+/s, ""));
  if (groups !== undefined) return keysOfGroups(groups, shown);
  // A function in the list may make several rows of one.
  if (/\b(?:unnest|generate_\w+|\w+_(?:each|elements|split_to_table)\w*)\(/.test(list)) return [];
  const sources = sourcesOf(from, findTable);
  const [base] = sources ?? [];
  if (base === undefined || sources === undefined) return [];
  return base.table.uniqueColumns.flatMap(
    (column) =>
      shown.get(`${base.alias}.${column}`) ?? (sources.length === 1 ? (shown.get(column) ?? []) : []),
  );
}

function keysOfGroups(groups: string, shown: ReadonlyMap<string, string>): readonly string[] {
  const columns = splitAt(groups.replaceAll(/\s+/g, " "), ", ");
  const [only] = columns.map((column) => pathOf(column));
  const name = columns.length === 1 && only !== undefined ? shown.get(only) : undefined;
  return name === undefined ? [] : [name];
}

/** Returns the names in the view of the plain columns that it selects. */
function shownColumns(list: string): ReadonlyMap<string, string> {
  const shown = new Map<string, string>();
  for (const entry of splitAt(list.replaceAll(/\s+/g, " "), ", ")) {
    const [source = "", alias] = splitAt(entry, " AS ");
    const path = pathOf(source);
    const name = nameOfIdentifier(alias ?? path?.split(".").at(-1) ?? "");
    if (path !== undefined && name !== undefined && !shown.has(path)) shown.set(path, name);
  }
  return shown;
}

/** Returns `o.id` for a plain column, without quotes and casts. */
function pathOf(sql: string): string | undefined {
  const names = splitAt(withoutCasts(sql), ".").map(nameOfIdentifier);
  return names.length > 2 || names.includes(undefined) ? undefined : names.join(".");
}

/** Reads FROM when each table after the first adds at most one row to each row before it. */
function sourcesOf(
  from: string,
  findTable: (schema: string | undefined, name: string) => BaseTable | undefined,
): readonly Source[] | undefined {
  const [first = "", ...joins] = from.split(/\n\s+(?=(?:LEFT )?JOIN )/);
  const base = sourceOf(first, findTable);
  if (base === undefined) return undefined;
  const sources = [base];
  for (const join of joins) {
    const [, table = "", condition = ""] = /^(?:LEFT )?JOIN (.+?) ON (.+)$/s.exec(join) ?? [];
    const source = sourceOf(table, findTable);
    const sides = splitAt(withoutCasts(condition), " = ").map(pathOf);
    const isUnique = source?.table.uniqueColumns.some((column) =>
      sides.includes(`${source.alias}.${column}`),
    );
    if (source === undefined || sides.length !== 2 || isUnique !== true) return undefined;
    sources.push(source);
  }
  return sources;
}

function sourceOf(
  text: string,
  findTable: (schema: string | undefined, name: string) => BaseTable | undefined,
): Source | undefined {
  const name = String.raw`(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)`;
  const pattern = new RegExp(`^(?:(${name})\\.)?(${name})(?: (${name}))?$`, "u");
  const [, schema, table = "", alias = table] = pattern.exec(text.trim()) ?? [];
  const found = findTable(
    schema === undefined ? undefined : nameOfIdentifier(schema),
    nameOfIdentifier(table) ?? "",
  );
  return found === undefined ? undefined : { alias: nameOfIdentifier(alias) ?? alias, table: found };
}
