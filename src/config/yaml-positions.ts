import { isScalar, parseDocument, type Document, type Pair } from "yaml";
import { commentLine } from "./yaml-lines.ts";
import { parseOptions } from "./yaml-source.ts";

/** Parses a text for editing: the nodes know their positions in it. */
export function parse(text: string): Document.Parsed {
  return parseDocument(text, parseOptions);
}

/** Returns the key of a pair as text; empty for a key that is not a scalar. */
export function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : "";
}

/** Returns start and end of a node, without the white space and comments after it. */
export function rangeOf(node: unknown): readonly [number, number] {
  const [from = 0, to = 0] = (node as { range?: readonly number[] | null } | null)?.range ?? [];
  return [from, to];
}

/** Returns the end of a pair: the end of its value, or of its key without a value. */
export function endOf(pair: Pair): number {
  return pair.value === null ? rangeOf(pair.key)[1] : Math.max(rangeOf(pair.value)[1], rangeOf(pair.key)[1]);
}

/** Returns the offset at which the line of an offset starts. */
export function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

/** Returns the offset at which the next line starts; the end of the text after the last line. */
export function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end + 1;
}

/** Returns the end of a pair without the line break that ends a block. */
export function lastCharacter(text: string, pair: Pair): number {
  const [from] = rangeOf(pair.key);
  return text.slice(from, endOf(pair)).trimEnd().length + from;
}

/** Returns the length of the comment's lines when they are above a place, and 0 otherwise. */
export function commentLength(text: string, start: number, comment: readonly string[]): number {
  if (comment.length === 0) return 0;
  const lines = text
    .slice(0, start)
    .split("\n")
    .slice(-comment.length - 1, -1);
  const isOwn = lines.every((line, index) => line.trim() === commentLine(comment[index] ?? ""));
  return isOwn ? lines.reduce((sum, line) => sum + line.length + 1, 0) : 0;
}
