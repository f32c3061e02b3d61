import { stringify } from "yaml";
import { isObject } from "../kit/is-object.ts";

/** Writes a value in one line: `{ type: Int, id: true }`, `[a, b]`. */
export function inOneLine(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(inOneLine).join(", ")}]`;
  if (!isObject(value)) return scalarText(value);
  const entries = Object.entries(value).map(([key, item]) => `${scalarText(key)}: ${inOneLine(item)}`);
  return entries.length === 0 ? "{}" : `{ ${entries.join(", ")} }`;
}

/** Quotes a text that would have another meaning within brackets. */
function scalarText(value: unknown): string {
  // The library would continue on the next line, which a comment of a file does not allow.
  if (typeof value === "string" && /[\p{Cc}\u2028\u2029]/u.test(value)) return JSON.stringify(value);
  return stringify([value], oneLine).trim().slice(1, -1).trim();
}

/** Writes a value behind its key and a colon. There, a text needs fewer quotes than in brackets. */
export function valueText(value: unknown): string {
  const text =
    typeof value === "string" ? stringify(value, { lineWidth: 0, schema: "core" }).trimEnd() : "\n";
  return text.includes("\n") ? inOneLine(value) : text;
}

const oneLine = {
  lineWidth: 0,
  schema: "core",
  collectionStyle: "flow",
  doubleQuotedMinMultiLineLength: Number.MAX_SAFE_INTEGER,
} as const;

/** Writes a comment line. An empty one stays a comment, so that the lines belong together. */
export function commentLine(line: string): string {
  return line === "" ? "#" : `# ${line}`;
}

const longestLine = 110;

/** Writes a key and its value: in one line, or with one line for each item of a long list. */
export function blockLines(key: string, value: unknown): readonly string[] {
  const line = `${inOneLine(key)}: ${valueText(value)}`;
  const head = `${inOneLine(key)}:`;
  if (isObject(value) && line.length > longestLine)
    return [head, ...Object.entries(value).map(([name, item]) => `  ${inOneLine(name)}: ${valueText(item)}`)];
  if (Array.isArray(value) && line.length > longestLine)
    return [head, ...value.map((item) => `  - ${valueText(item)}`)];
  return [line];
}

/** Writes a value as YAML, with lines of at most 100 characters where possible. */
export function yamlText(value: unknown): string {
  return stringify(value, { lineWidth: 100 });
}
