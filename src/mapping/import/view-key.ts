import { nameOfIdentifier, splitAt, withoutCasts } from "./sql-text.ts";

/** A table beneath a view, as far as the search for a key needs it. */
export interface BaseTable {
  readonly schema: string;
  readonly name: string;
  /** Names of columns that are unique together, those of the primary key first. */
  readonly uniques: readonly (readonly string[])[];
}

/** A part of FROM: its name there, and its table. */
interface Source {
  readonly alias: string;
  readonly table: BaseTable;
}

/**
 * Finds columns of a view that no two of its rows share, as far as its SQL proves that. They are
 * the key of a table whose rows appear at most once, or the columns of GROUP BY.
 *
 * @param definition What `pg_get_viewdef(oid, true)` gives.
 * @param findTable Finds a table by the name that the definition has.
 * @returns Lists of names of the view's columns, the best first; empty when nothing is proved.
 */
export function provedKeys(
  definition: string,
  findTable: (schema: string | undefined, name: string) => BaseTable | undefined,
): readonly (readonly string[])[] {
  const parts =
    /^\s*SELECT (.*?)\n {3}FROM (.*?)(?:\n {2}WHERE .*?)?(?:\n {2}GROUP BY (.*?))?(?:\n {2}ORDER BY .*?)?;?$/s;
  const [, list = "", from = "", groups] = parts.exec(definition.trimEnd()) ?? [];
  if (list === "" || /\b(?:UNION|INTERSECT|EXCEPT|HAVING|LIMIT|OFFSET|WINDOW|GROUPING)\b/.test(definition))
    return [];
  // A function in the list may make several rows of one.
  if (/\b(?:unnest|generate_\w+|\w+_(?:each|elements|split_to_table)\w*)\(/.test(list)) return [];
  const shown = shownColumns(list.replace(/^DISTINCT(?: ON \(.*?\))?\s+/s, ""));
  const keyOf = (paths: readonly string[]): readonly (readonly string[])[] => {
    const names = paths.flatMap((path) => shown.get(path) ?? []);
    return names.length === paths.length ? [names] : [];
  };
  if (groups !== undefined) {
    const paths = splitAt(groups.replaceAll(/\s+/g, " "), ", ").map(pathOf);
    if (paths.includes(undefined)) return [];
    return [...keysWithin(paths as string[], from, findTable).flatMap(keyOf), ...keyOf(paths as string[])];
  }
  const sources = sourcesOf(from, findTable);
  const [base] = sources ?? [];
  if (base === undefined || sources === undefined) return [];
  return base.table.uniques.flatMap((columns) => {
    const qualified = keyOf(columns.map((column) => `${base.alias}.${column}`));
    return qualified.length > 0 || sources.length > 1 ? qualified : keyOf(columns);
  });
}

/** Returns the groups that are the key of one table, when all groups are columns of it. */
function keysWithin(
  paths: readonly string[],
  from: string,
  findTable: (schema: string | undefined, name: string) => BaseTable | undefined,
): readonly (readonly string[])[] {
  const tables = from.split(/\n\s+(?:(?:LEFT|RIGHT|FULL|CROSS) )?JOIN |,\n\s+/);
  const sources = tables.map((text) => sourceOf(text.replace(/ (?:ON|USING) .*$/s, ""), findTable));
  const found = sources.find((source) => paths.every((path) => path.startsWith(`${source?.alias}.`)));
  if (found === undefined) return [];
  return found.table.uniques
    .map((columns) => columns.map((column) => `${found.alias}.${column}`))
    .filter((columns) => columns.every((path) => paths.includes(path)));
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
    const [, table = "", condition = "", using = ""] =
      /^(?:LEFT )?JOIN (.+?) (?:ON (.+)|USING \((.+)\))$/s.exec(join) ?? [];
    const source = sourceOf(table, findTable);
    if (source === undefined) return undefined;
    const isOwn = (path = ""): boolean => path.startsWith(`${source.alias}.`);
    const sides = conjuncts(condition).flatMap((one) => {
      const [left, right] = splitAt(one, " = ").map(pathOf);
      return isOwn(left) === isOwn(right) ? [] : [left, right];
    });
    const shared = splitAt(using, ", ").map((name) => `${source.alias}.${nameOfIdentifier(name)}`);
    const isUnique = source.table.uniques.some((columns) =>
      columns.every((column) => [...sides, ...shared].includes(`${source.alias}.${column}`)),
    );
    if (!isUnique) return undefined;
    sources.push(source);
  }
  return sources;
}

/** Returns the comparisons of a condition that has only AND between them. */
function conjuncts(condition: string): readonly string[] {
  return splitAt(withoutCasts(condition), " AND ").map(withoutCasts);
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
