import {
  isMap,
  isScalar,
  isSeq,
  parseDocument,
  type Document,
  type Pair,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { blockLines, commentLine, inOneLine, valueText } from "./yaml-lines.ts";
import { isObject } from "../kit/is-object.ts";
import { parseOptions } from "./yaml-source.ts";

/** A replacement of a part of a text. */
interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/** Lines of comments by the place that they stand above: `fields.id`, or a key of the top level. */
export type Comments = Readonly<Record<string, readonly string[]>>;

/** A file that was made from data, and then edited by hand. */
interface Edited {
  readonly text: string;
  /** Its data. */
  readonly before: Readonly<Record<string, unknown>>;
  /** The data that it is to have. */
  readonly after: Readonly<Record<string, unknown>>;
  /** Comments above new keys. */
  readonly comments: Comments;
}

/**
 * Changes a YAML text from one data to another, and leaves every other character as it is:
 * comments, order, spaces and quotes.
 *
 * @throws Error when the text does not have the data that it should have.
 */
export function editYaml({ text, before, after, comments }: Edited): string {
  const document = parse(text);
  if (!isMap(document.contents)) throw new Error("expected keys and values in the file");
  const edits: Edit[] = [];
  editMap({ text, map: document.contents, before, after, comments, path: "", edits });
  const edited = apply(text, edits);
  const result = parse(edited);
  if (result.errors.length === 0 && isSame(result.toJS(), after)) return edited;
  return rewritten(document, before, after);
}

function parse(text: string): Document.Parsed {
  return parseDocument(text, parseOptions);
}

function isSame(one: unknown, other: unknown): boolean {
  return (
    JSON.stringify(one) === JSON.stringify(other) ||
    JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))
  );
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}

/** Falls back to the library's own text, which keeps comments and order, and not every space. */
function rewritten(
  document: Document.Parsed,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string {
  const change = (path: readonly string[], one: unknown, other: unknown): void => {
    if (isSame(one, other)) return;
    if (!isObject(one) || !isObject(other)) {
      if (other === undefined) document.deleteIn(path);
      else document.setIn(path, document.createNode(other, { flow: true }));
      return;
    }
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
      change([...path, key], one[key], other[key]);
  };
  change([], before, after);
  return document.toString({ lineWidth: 0 });
}

function apply(text: string, edits: readonly Edit[]): string {
  let result = text;
  // From the end; of several insertions at one place the last one comes first.
  for (const { from, to, text: inserted } of edits
    .toReversed()
    .toSorted((a, b) => b.from - a.from || b.to - a.to))
    result = result.slice(0, from) + inserted + result.slice(to);
  return result;
}

interface Place {
  readonly text: string;
  readonly map: YAMLMap;
  readonly before: Readonly<Record<string, unknown>>;
  readonly after: Readonly<Record<string, unknown>>;
  readonly comments: Comments;
  /** Path of the map, with dots between the keys. */
  readonly path: string;
  readonly edits: Edit[];
}

function editMap(place: Place): void {
  const { map, before, after, edits } = place;
  const pairs = new Map(map.items.map((pair) => [keyOf(pair), pair]));
  for (const [key, pair] of pairs) {
    if (!(key in after)) edits.push(...removal(place, pair));
    else if (!isSame(before[key], after[key])) changeValue(place, key, pair);
  }
  let previous: string | undefined;
  for (const key of Object.keys(after)) {
    if (!pairs.has(key)) insert(place, key, previous);
    else previous = key;
  }
}

function keyOf({ key }: Pair): string {
  return isScalar(key) ? String(key.value) : "";
}

/** Start and end of a node without the white space and comments after it. */
function rangeOf(node: unknown): readonly [number, number] {
  const [from = 0, to = 0] = (node as { range?: readonly number[] | null } | null)?.range ?? [];
  return [from, to];
}

function endOf(pair: Pair): number {
  return pair.value === null ? rangeOf(pair.key)[1] : Math.max(rangeOf(pair.value)[1], rangeOf(pair.key)[1]);
}

function lineStart(text: string, offset: number): number {
  return text.lastIndexOf("\n", offset - 1) + 1;
}

function lineEnd(text: string, offset: number): number {
  const end = text.indexOf("\n", offset);
  return end === -1 ? text.length : end + 1;
}

function changeValue(place: Place, key: string, pair: Pair): void {
  const { text, map, before, after, comments, path, edits } = place;
  const { value } = pair;
  const [one, other] = [before[key], after[key]];
  const inner = path === "" ? key : `${path}.${key}`;
  if (isMap(value) && isObject(one) && isObject(other) && value.items.length > 0)
    return editMap({ text, map: value, before: one, after: other, comments, path: inner, edits });
  if (isSeq(value) && Array.isArray(one) && Array.isArray(other) && editList(place, value, one, other))
    return;
  const [from, to] = value === null ? [endOf(pair), endOf(pair)] : rangeOf(value);
  // The end of a block is the start of the next line.
  const end = text.slice(from, to).trimEnd().length + from;
  edits.push({
    from,
    to: end,
    text: `${value === null ? " " : ""}${map.flow === true ? inOneLine(other) : valueText(other)}`,
  });
}

/** Adds and removes items of a list of texts. Returns false when other changes are needed. */
function editList(
  { text, edits }: Place,
  list: YAMLSeq,
  before: readonly unknown[],
  after: readonly unknown[],
): boolean {
  const kept = before.filter((item) => after.includes(item));
  const added = after.filter((item) => !before.includes(item));
  const isPlain = [...before, ...after].every((item) => typeof item === "string");
  if (!isPlain || kept.length === 0 || !isSame([...kept, ...added], after)) return false;
  const items = list.items.map((node) => ({ node, value: isScalar(node) ? node.value : undefined }));
  const isFlow = list.flow === true;
  for (const [index, { node, value }] of items.entries()) {
    if (after.includes(value)) continue;
    const [from, to] = rangeOf(node);
    const next = items[index + 1];
    const last = items[index - 1];
    if (!isFlow) edits.push({ from: lineStart(text, from), to: lineEnd(text, to), text: "" });
    else if (next !== undefined) edits.push({ from, to: rangeOf(next.node)[0], text: "" });
    else edits.push({ from: rangeOf(last?.node)[1], to, text: "" });
  }
  const lastKept = items.findLast(({ value }) => after.includes(value));
  if (added.length === 0 || lastKept === undefined) return true;
  const [from, to] = rangeOf(lastKept.node);
  const start = lineStart(text, from);
  const indent = text.slice(start, from);
  if (isFlow) edits.push({ from: to, to, text: added.map((item) => `, ${inOneLine(item)}`).join("") });
  else {
    const end = lineEnd(text, to);
    edits.push({ from: end, to: end, text: added.map((item) => `${indent}${inOneLine(item)}\n`).join("") });
  }
  return true;
}

function removal(place: Place, pair: Pair): readonly Edit[] {
  const { text, map, comments, path } = place;
  const [from] = rangeOf(pair.key);
  const to = endOf(pair);
  const index = map.items.indexOf(pair);
  if (map.flow === true) {
    const next = map.items[index + 1];
    if (next !== undefined) return [{ from, to: rangeOf(next.key)[0], text: "" }];
    const last = map.items[index - 1];
    return [{ from: last === undefined ? from : endOf(last), to, text: "" }];
  }
  const start = lineStart(text, from);
  const end = lineEnd(text, text.slice(from, to).trimEnd().length + from);
  const above = comments[path === "" ? keyOf(pair) : `${path}.${keyOf(pair)}`] ?? [];
  return [{ from: start - ownLines(text, start, above), to: end, text: "" }];
}

/** Returns the length of the lines above a place when they are the comment, and 0 otherwise. */
function ownLines(text: string, start: number, comment: readonly string[]): number {
  if (comment.length === 0) return 0;
  const lines = text
    .slice(0, start)
    .split("\n")
    .slice(-comment.length - 1, -1);
  const isOwn = lines.every((line, index) => line.trim() === commentLine(comment[index] ?? ""));
  return isOwn ? lines.reduce((sum, line) => sum + line.length + 1, 0) : 0;
}

function insert(place: Place, key: string, previous: string | undefined): void {
  const { text, map, after, comments, path, edits } = place;
  const pairs = map.items;
  const neighbour = pairs.find((pair) => keyOf(pair) === previous);
  if (map.flow === true) {
    const value = `${inOneLine(key)}: ${inOneLine(after[key])}`;
    const last = neighbour ?? pairs.at(-1);
    const at = last === undefined ? rangeOf(map)[0] + 1 : endOf(last);
    edits.push({ from: at, to: at, text: last === undefined ? ` ${value} ` : `, ${value}` });
    return;
  }
  const first = pairs[0];
  if (first === undefined) throw new Error("expected keys and values in the file");
  const [start] = rangeOf(first.key);
  const indent = " ".repeat(start - lineStart(text, start));
  const lines = (comments[path === "" ? key : `${path}.${key}`] ?? []).map(commentLine);
  const inserted = [...lines, ...blockLines(key, after[key])].map((line) => `${indent}${line}\n`).join("");
  const last = neighbour ?? pairs.at(-1);
  const end = last === undefined ? text.length : lineEnd(text, lastCharacter(text, last));
  const isOpen = end === text.length && !text.endsWith("\n");
  edits.push({ from: end, to: end, text: isOpen ? `\n${inserted}` : inserted });
}

function lastCharacter(text: string, pair: Pair): number {
  const [from] = rangeOf(pair.key);
  return text.slice(from, endOf(pair)).trimEnd().length + from;
}

/**
 * Replaces a comment that the import wrote by another one. Leaves a text without that comment as it
 * is.
 */
export function replaceComment(
  text: string,
  key: string | undefined,
  { before, after }: { readonly before: readonly string[]; readonly after: readonly string[] },
): string {
  if (isSame(before, after)) return text;
  const start = key === undefined ? headEnd(text, before) : keyStart(text, key);
  if (start === undefined) return text;
  const length = ownLines(text, start, before);
  if (before.length > 0 && length === 0) return text;
  const [, indent = ""] = /^( *)/.exec(text.slice(start)) ?? [];
  const lines = after.map((line) => `${key === undefined ? "" : indent}${commentLine(line)}\n`).join("");
  return text.slice(0, start - length) + lines + text.slice(start);
}

/** Finds the end of the lines at the head of a text. */
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
