import type { Ratio } from "./numbers.ts";

type Cell = string | number;
export type Row = readonly Cell[];

/** Returns a table in the format of docs. The first column is text, the others are figures. */
export function markdownTable(head: readonly string[], rows: readonly Row[]): string {
  const rule = head.map((_, index) => (index === 0 ? "---" : "---:"));
  return [markdownRow(head), `|${rule.join("|")}|`, ...rows.map(markdownRow)].join("\n");
}

/** Returns one row, for a table that is printed row by row. */
export function markdownRow(cells: Row): string {
  return `| ${cells.join(" | ")} |`;
}

/** Formats a number with commas; a dash for a value that could not be measured. */
export function fixed(value: number | undefined, digits = 0): string {
  // JSON has null for NaN.
  if (!Number.isFinite(value)) return "-";
  return Number(value).toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Formats the ratios of pairs or rounds. */
export function ratioText({ median, min, max }: Ratio): string {
  return `${fixed(median, 2)} (${fixed(min, 2)} to ${fixed(max, 2)})`;
}

export const sumOf = (parts: readonly number[]): number => parts.reduce((sum, part) => sum + part, 0);

export const megabytes = (bytes: number): string => fixed(bytes / 1024 ** 2);

/** Formats the numbers of outcomes: `POST 422: 120, ECONNRESET: 3`. */
export function countsText(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(", ");
}

const columns = 98;

/** Wraps a text like the prose of the docs. */
export function prose(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word);
    else lines.splice(-1, 1, `${last} ${word}`);
  }
  return lines.join("\n");
}
