export type Cell = string | number;
export type Row = readonly Cell[];

/** A table as the pages of docs have them; its first column is text, the others are figures. */
export function markdownTable(head: readonly string[], rows: readonly Row[]): string {
  const line = (cells: Row): string => `| ${cells.join(" | ")} |`;
  const rule = head.map((_, index) => (index === 0 ? "---" : "---:"));
  return [line(head), `|${rule.join("|")}|`, ...rows.map(line)].join("\n");
}

/** A dash for what could not be measured. Thousands have commas. */
export function fixed(value: number | undefined, digits = 0): string {
  if (value === undefined || Number.isNaN(value)) return "-";
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** Undefined when a part is. */
export function sumOf(parts: readonly (number | undefined)[]): number | undefined {
  return parts.reduce((sum, part) => (sum === undefined || part === undefined ? undefined : sum + part), 0);
}

const columns = 98;

/** Text wrapped as the prose of the pages is. */
export function prose(text: string): string {
  const lines: string[] = [];
  for (const word of text.split(/\s+/)) {
    const last = lines.at(-1);
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word);
    else lines.splice(-1, 1, `${last} ${word}`);
  }
  return lines.join("\n");
}
