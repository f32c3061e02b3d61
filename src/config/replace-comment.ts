import { isDeepStrictEqual } from "node:util";
import { isMap } from "yaml";
import { commentLine } from "./yaml-lines.ts";
import { commentLength, keyOf, lineStart, parse, rangeOf } from "./yaml-positions.ts";

/** Replaces a comment of the import by another one. A text without that comment stays as it is. */
export function replaceComment(
  text: string,
  key: string | undefined,
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
): string {
  if (isDeepStrictEqual(before, after)) return text;
  const start = key === undefined ? headEnd(text, before) : keyStart(text, key);
  if (start === undefined) return text;
  const length = commentLength(text, start, before);
  if (before.length > 0 && length === 0) return text;
  const [, indent = ""] = /^( *)/.exec(text.slice(start)) ?? [];
  const lines = after.map((line) => `${key === undefined ? "" : indent}${commentLine(line)}\n`).join("");
  return text.slice(0, start - length) + lines + text.slice(start);
}

/** Returns the offset behind the comment lines in a text; undefined without them. */
function headEnd(text: string, lines: readonly string[]): number | undefined {
  const block = lines.map((line) => `${commentLine(line)}\n`).join("");
  const at = text.indexOf(block);
  return block === "" || at === -1 ? undefined : at + block.length;
}

function keyStart(text: string, path: string): number | undefined {
  const document = parse(text);
  let node: unknown = document.contents;
  let start: number | undefined;
  for (const step of path.split(".")) {
    const pair =
      isMap(node) && node.flow !== true ? node.items.find((one) => keyOf(one) === step) : undefined;
    if (pair === undefined) return undefined;
    start = lineStart(text, rangeOf(pair.key)[0]);
    node = pair.value;
  }
  return start;
}
