import { nameOfIdentifier, splitAt, withoutParentheses } from "../sql-text.ts";
import { clausesOf } from "./view-clauses.ts";
import {
  determinedBy,
  innerOf,
  pathOf,
  sourcesOf,
  type FindTable,
  type Joined,
  type Source,
} from "./view-sources.ts";

/**
 * Finds columns of a view that its SQL proves to be unique. They are the keys of the tables whose
 * rows determine a row, or the columns of GROUP BY. For distinct rows, they are all columns.
 *
 * @param definition Result of `pg_get_viewdef(oid, true)`.
 * @param findTable Finds a table by its name in the definition.
 * @param makesRows Whether a function in the list may make several rows of one.
 * @returns Lists of names of the view's columns, the best first; empty when nothing is proved.
 */
export function provedKeys(
  definition: string,
  findTable: FindTable,
  makesRows: boolean,
): readonly (readonly string[])[] {
  const clauses = clausesOf(definition);
  if (clauses === undefined) return [];
  const { list, from, where, groups, isDistinct, isUnion } = clauses;
  const entries = entriesOf(list);
  const all = entries.map(({ name }) => name);
  if (isUnion) return isDistinct ? [all] : [];
  const whole = isDistinct ? [all] : [];
  if (makesRows) return whole;
  const joined = sourcesOf(from, where, findTable);
  const shown = shownColumns(entries, joined?.sources);
  const keys =
    groups === undefined
      ? joined === undefined
        ? []
        : basesOf(joined).flatMap((bases) => uniquesOf(bases))
      : groupKeys(groups, joined);
  const found = keys.flatMap((paths) => {
    const names = paths.flatMap((path) => shownAs(path, shown, joined));
    return names.length === paths.length ? [names] : [];
  });
  return distinct([...found, ...whole]);
}

interface Entry {
  readonly expression: string;
  readonly name: string;
}

function entriesOf(list: string): readonly Entry[] {
  return splitAt(list.replaceAll(/\s+/g, " "), ", ").flatMap((entry) => {
    const [expression = "", alias] = splitAt(entry, " AS ");
    const name = alias === undefined ? splitAt(expression, ".").at(-1) : alias;
    const read = nameOfIdentifier(name ?? "");
    return read === undefined ? [] : [{ expression, name: read }];
  });
}

function shownColumns(
  entries: readonly Entry[],
  sources: readonly Source[] | undefined,
): ReadonlyMap<string, string> {
  const shown = new Map<string, string>();
  for (const { expression, name } of entries) {
    const path = placeOf(expression, sources);
    if (!shown.has(path)) shown.set(path, name);
  }
  return shown;
}

/** Returns the path of a plain column, or the text of another expression. */
function placeOf(expression: string, sources: readonly Source[] | undefined): string {
  return pathOf(expression, sources) ?? withoutParentheses(expression);
}

/** Finds the view's name for a column, or for a column with the same value. */
function shownAs(
  path: string,
  shown: ReadonlyMap<string, string>,
  joined: Joined | undefined,
): readonly string[] {
  const same = [path, ...(joined?.equalTo(path) ?? [])];
  return same.flatMap((one) => shown.get(one) ?? []).slice(0, 1);
}

/** Returns small sets of sources whose rows determine the rows of all others. */
function basesOf(joined: Joined): readonly (readonly Source[])[] {
  const { sources } = joined;
  const candidates = [sources, sources.toReversed()].map((order) => {
    let bases = sources.filter(({ isOptional }) => !isOptional);
    for (const source of order) {
      const fewer = bases.filter((one) => one !== source);
      if (decides(fewer, joined)) bases = fewer;
    }
    return bases;
  });
  return candidates.filter((bases) => bases.length > 0 && decides(bases, joined));
}

function decides(bases: readonly Source[], joined: Joined): boolean {
  const known = bases.flatMap((source) => (source.uniques[0] === undefined ? [] : [source]));
  if (known.length < bases.length) return false;
  const paths = known.flatMap(({ uniques: [first = []] }) => first);
  const { sources } = determinedBy(joined, paths);
  return joined.sources.every((source) => sources.has(source));
}

/** Returns every combination of one key for each source. */
function uniquesOf(bases: readonly Source[]): readonly (readonly string[])[] {
  let choices: readonly (readonly string[])[] = [[]];
  for (const { uniques } of bases)
    choices = choices.flatMap((choice) => uniques.map((unique) => [...choice, ...unique])).slice(0, 20);
  return choices;
}

/** Returns the groups without those that the others determine, and then all groups. */
function groupKeys(groups: string, joined: Joined | undefined): readonly (readonly string[])[] {
  const paths = splitAt(groups.replaceAll(/\s+/g, " "), ", ").map((group) => placeOf(group, joined?.sources));
  if (joined === undefined) return [paths];
  let fewest: readonly string[] = paths;
  for (const path of paths.toReversed()) {
    const rest = fewest.filter((one) => one !== path);
    if (rest.length > 0 && isDetermined(path, rest, joined)) fewest = rest;
  }
  return [fewest, paths];
}

/**
 * Returns whether groups determine another one. The condition of an outer join is a proof only when
 * they determine whole rows. Its columns are NULL for rows that do not match it.
 */
function isDetermined(path: string, groups: readonly string[], joined: Joined): boolean {
  const inner = innerOf(joined);
  const known = determinedBy(inner, groups);
  const hasRows = inner.sources.length > 0 && inner.sources.every((source) => known.sources.has(source));
  return (hasRows && decides(inner.sources, joined) ? determinedBy(joined, groups) : known).isKnown(path);
}

function distinct(keys: readonly (readonly string[])[]): readonly (readonly string[])[] {
  return [...new Map(keys.map((names) => [names.join("\0"), names])).values()];
}
