import { maskedText } from "../sql-text.ts";

/** The clauses of a view's SQL that decide on its key. */
interface ViewClauses {
  /** The selected expressions. */
  readonly list: string;
  readonly from: string;
  readonly where: string | undefined;
  /** The expressions of GROUP BY. */
  readonly groups: string | undefined;
  /** Whether all rows are distinct. */
  readonly isDistinct: boolean;
  /** Whether several SELECTs make its rows; the list is that of the first one. */
  readonly isUnion: boolean;
}

const words = [
  ["list", /^SELECT /g],
  ["from", /\sFROM /g],
  ["where", /\sWHERE /g],
  ["groups", /\sGROUP BY /g],
  ["end", /\s(?:HAVING|WINDOW|ORDER BY|LIMIT|OFFSET|FETCH) /g],
] as const;

/**
 * Splits the SQL of a view. Returns undefined for anything but a plain SELECT, such as one with
 * WITH.
 */
export function clausesOf(definition: string): ViewClauses | undefined {
  const text = definition.trim().replace(/;$/, "");
  const masked = maskedText(text);
  const union = /\s(?:UNION|INTERSECT|EXCEPT)\s/.exec(masked);
  const first = union === null ? text : text.slice(0, union.index);
  const parts = partsOf(first, masked.slice(0, first.length));
  if (parts === undefined || /\bGROUPING SETS|\bROLLUP|\bCUBE/.test(parts.groups ?? "")) return undefined;
  const { list, from = "", where, groups } = parts;
  const isDistinct = list.startsWith("DISTINCT ") && !list.startsWith("DISTINCT ON");
  // Rows that UNION ALL adds may equal the rows before them.
  const isAll = /\s(?:UNION|INTERSECT|EXCEPT) ALL\s/.test(masked);
  return {
    list: list.replace(/^DISTINCT /, "").replace(/^ON \([^)]*\) /, ""),
    from,
    where,
    groups,
    isDistinct: union === null ? isDistinct : !isAll,
    isUnion: union !== null,
  };
}

/** @param masked The same text, with parentheses and quotes masked. */
function partsOf(
  text: string,
  masked: string,
):
  | { readonly list: string; readonly from?: string; readonly where?: string; readonly groups?: string }
  | undefined {
  const found = words.flatMap(([name, word]) => {
    word.lastIndex = 0;
    const match = word.exec(masked);
    return match === null ? [] : [{ name, start: match.index, end: match.index + match[0].length }];
  });
  const places = found.toSorted((a, b) => a.start - b.start);
  const entries = places.map(({ name, end }, index): [string, string] => [
    name,
    text.slice(end, places[index + 1]?.start ?? text.length).trim(),
  ]);
  const { list, ...rest } = Object.fromEntries(entries);
  return places[0]?.name === "list" && list !== undefined ? { list, ...rest } : undefined;
}
