import {
  literalOf,
  maskedText,
  nameOfIdentifier,
  splitAt,
  withoutCasts,
  withoutParentheses,
} from "../sql-text.ts";

/** A table beneath a view, reduced to the properties that decide on a key. */
export interface BaseTable {
  /** Names of all its columns. */
  readonly columns: readonly string[];
  /**
   * Names of columns that together are unique and never null; those of the primary key come first.
   */
  readonly uniques: readonly (readonly string[])[];
}

/** Finds a table by its name in the definition of a view. */
export type FindTable = (schema: string | undefined, name: string) => BaseTable | undefined;

/** A table in FROM. */
export interface Source {
  readonly alias: string;
  /** Names of all its columns. */
  readonly columns: readonly string[];
  /** Paths of the columns of each of its keys, the primary key first. */
  readonly uniques: readonly (readonly string[])[];
  /** Whether a row of the view may have no row of this table, because of an outer join. */
  readonly isOptional: boolean;
}

/** A comparison of two columns. */
interface Equality {
  readonly from: string;
  readonly to: string;
}

/** The tables of FROM, and facts about their columns. */
export interface Joined {
  readonly sources: readonly Source[];
  /** Pairs of columns in which the first determines the second. */
  readonly decisions: readonly Equality[];
  /** Columns that have one value in all rows. */
  readonly constants: readonly string[];
  /** Returns the columns that have the same value as this one in every row. */
  equalTo(path: string): readonly string[];
}

const separator = "\0";

/**
 * Returns the path of a plain column: its table's name in FROM, and its own name. Returns undefined
 * for any other expression.
 */
export function pathOf(sql: string, sources: readonly Source[] | undefined): string | undefined {
  const names = splitAt(withoutTextCast(sql), ".").map(nameOfIdentifier);
  if (names.length > 2 || names.includes(undefined)) return undefined;
  // A view of one table names its columns without the table.
  if (names.length === 1 && sources?.length === 1) return [sources[0]?.alias, ...names].join(separator);
  return names.join(separator);
}

/** Any other cast may give several values the same result: a day for times. */
function withoutTextCast(sql: string): string {
  const inner = withoutParentheses(sql);
  return inner.endsWith("::text") ? withoutParentheses(inner.slice(0, -"::text".length)) : inner;
}

/** Finds all columns that the paths determine. */
export function determinedBy(
  { sources, decisions, constants }: Joined,
  paths: readonly string[],
): { readonly sources: ReadonlySet<Source>; isKnown(path: string): boolean } {
  const known = new Set([...paths, ...constants]);
  const found = new Set<Source>();
  const isKnown = (path: string): boolean => {
    const [alias] = path.split(separator);
    return known.has(path) || [...found].some((source) => source.alias === alias);
  };
  for (let before = -1; before < known.size + found.size;) {
    before = known.size + found.size;
    for (const { from, to } of decisions) if (isKnown(from)) known.add(to);
    for (const source of sources)
      if (source.uniques.some((unique) => unique.every(isKnown))) found.add(source);
  }
  return { sources: found, isKnown };
}

/** Returns the tables that have a row for each row of the view, and the facts about them. */
export function innerOf(joined: Joined): Joined {
  const { sources, decisions, constants } = joined;
  const inner = sources.filter(({ isOptional }) => !isOptional);
  const isInner = (path: string): boolean =>
    inner.some(({ alias }) => path.startsWith(`${alias}${separator}`));
  return {
    ...joined,
    sources: inner,
    decisions: decisions.filter(({ from, to }) => isInner(from) && isInner(to)),
    constants: constants.filter(isInner),
  };
}

interface Parts {
  readonly sources: Source[];
  readonly equalities: Equality[];
  readonly decisions: Equality[];
  readonly constants: string[];
}

/** Parses FROM and WHERE. Returns undefined when FROM contains anything but tables and joins. */
export function sourcesOf(from: string, where: string | undefined, findTable: FindTable): Joined | undefined {
  const parts: Parts = { sources: [], equalities: [], decisions: [], constants: [] };
  const isRead = splitAt(from, ",").every((item) => readJoins(item, false, parts, findTable));
  if (!isRead) return undefined;
  readCondition(where ?? "", parts, undefined);
  const { sources, equalities, decisions, constants } = parts;
  const both = equalities.flatMap(({ from: one, to }) => [
    { from: one, to },
    { from: to, to: one },
  ]);
  return {
    sources,
    decisions: [...both, ...decisions],
    constants,
    equalTo(path) {
      const same = new Set([path]);
      for (const one of same) for (const { from: left, to } of both) if (left === one) same.add(to);
      return [...same];
    },
  };
}

/** Parses tables with joins between them. Returns false for anything else. */
function readJoins(text: string, isOptional: boolean, parts: Parts, findTable: FindTable): boolean {
  const masked = maskedText(text);
  const words = [...masked.matchAll(/\s(?:(LEFT|RIGHT|FULL|CROSS) )?JOIN /g)];
  const kinds = words.map(([, kind]) => kind);
  // Tables before a RIGHT or FULL JOIN may have no row.
  const isLeftOptional = (index: number): boolean =>
    isOptional || kinds.slice(index).some((kind) => kind === "RIGHT" || kind === "FULL");
  const end = (index: number): number => words[index]?.index ?? text.length;
  if (!readItem(text.slice(0, end(0)), isLeftOptional(0), parts, findTable)) return false;
  return words.every(([word], index) => {
    const part = text.slice(end(index) + word.length, end(index + 1));
    const on = /\s(?:ON|USING) /.exec(maskedText(part));
    const item = on === null ? part : part.slice(0, on.index);
    const isOuter = kinds[index] === "LEFT" || kinds[index] === "FULL";
    const before = parts.sources.length;
    if (!readItem(item, isOuter || isLeftOptional(index + 1), parts, findTable)) return false;
    const left = parts.sources.slice(0, before);
    const right = parts.sources.slice(before);
    // The condition of an outer join applies only where both sides have a row.
    const outer = isOuter ? right : kinds[index] === "RIGHT" ? left : undefined;
    if (on === null) return true;
    const condition = part.slice(on.index + on[0].length);
    if (on[0].includes("ON")) readCondition(condition, parts, kinds[index] === "FULL" ? [] : outer);
    else readUsing(condition, left, right, isOuter, parts);
    return true;
  });
}

/** Parses a table, or joins in parentheses. */
function readItem(text: string, isOptional: boolean, parts: Parts, findTable: FindTable): boolean {
  const item = text.trim();
  if (item.startsWith("(") && item.endsWith(")"))
    return readJoins(item.slice(1, -1), isOptional, parts, findTable);
  const name = String.raw`(?:"(?:[^"]|"")+"|[\p{L}_][\p{L}\p{N}_$]*)`;
  const pattern = new RegExp(`^(?:(${name})\\.)?(${name})(?: (${name}))?$`, "u");
  const [, schema, table = "", given = table] = pattern.exec(item) ?? [];
  const found = findTable(
    schema === undefined ? undefined : nameOfIdentifier(schema),
    nameOfIdentifier(table) ?? "",
  );
  if (found === undefined) return false;
  const alias = nameOfIdentifier(given) ?? given;
  const uniques = found.uniques.map((columns) => columns.map((column) => [alias, column].join(separator)));
  parts.sources.push({ alias, columns: found.columns, uniques, isOptional });
  return true;
}

/**
 * Parses a condition.
 *
 * @param optional The side of an outer join that may be missing; undefined without an outer join.
 */
function readCondition(condition: string, parts: Parts, optional: readonly Source[] | undefined): void {
  for (const one of conjuncts(condition)) {
    const sides = splitAt(one, " = ");
    const [left, right] = sides.map((side) => pathOf(side, parts.sources));
    const isOptional = (path: string): boolean =>
      optional?.some(({ alias }) => path.startsWith(`${alias}${separator}`)) === true;
    if (sides.length !== 2) continue;
    if (left !== undefined && right !== undefined) {
      if (optional === undefined) parts.equalities.push({ from: left, to: right });
      else if (isOptional(right) && !isOptional(left)) parts.decisions.push({ from: left, to: right });
      else if (isOptional(left) && !isOptional(right)) parts.decisions.push({ from: right, to: left });
      continue;
    }
    const plain = left ?? right;
    if (plain === undefined || (optional !== undefined && !isOptional(plain))) continue;
    if (left !== undefined && literalOf(sides[1] ?? "") !== undefined) parts.constants.push(left);
    // A column determines its cast, but the cast does not determine the column.
    const cast = pathOf(withoutCasts((left === undefined ? sides[0] : sides[1]) ?? ""), parts.sources);
    if (cast !== undefined && (optional === undefined || !isOptional(cast)))
      parts.decisions.push({ from: cast, to: plain });
  }
}

function readUsing(
  list: string,
  left: readonly Source[],
  right: readonly Source[],
  isOuter: boolean,
  parts: Parts,
): void {
  for (const name of splitAt(withoutCasts(list), ",").map((one) => nameOfIdentifier(one) ?? "")) {
    const pathsIn = (sources: readonly Source[]): readonly string[] =>
      sources
        .filter(({ columns }) => columns.includes(name))
        .map(({ alias }) => [alias, name].join(separator));
    for (const from of pathsIn(left))
      for (const to of pathsIn(right)) {
        parts.decisions.push({ from, to });
        if (!isOuter) parts.decisions.push({ from: to, to: from });
      }
  }
}

/** Returns the parts of a condition that are joined by AND only. */
function conjuncts(condition: string): readonly string[] {
  const whole = withoutCasts(condition);
  const parts = splitAt(whole.replaceAll(/\s+/g, " "), " AND ");
  return parts.length === 1 ? [withoutCasts(whole)] : parts.flatMap(conjuncts);
}
