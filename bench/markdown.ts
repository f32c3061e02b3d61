export type Cell = string | number;
export type Row = readonly Cell[];

/** Returns a table in the format of docs. The first column is text, the others are figures. */
export function markdownTable(head: readonly string[], rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) => (index === 0 ? "---" : "---:"));
  return [line(head), `|${rule.join("|")}|`, ...rows.map(line)].join("\n");
}

/** Formats a number with commas; a dash for a value that could not be measured. */
export function fixed(value: number | undefined, digits = 0): string {
  if (value === undefined || Number.isNaN(value)) return "-";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Returns the sum; undefined when a part is undefined. */
export function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.reduce((sum, part) => (sum === undefined || part === undefined ? undefined : sum + part), 0);
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
