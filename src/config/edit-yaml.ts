import { isDeepStrictEqual } from "node:util";
import {
  isMap,
  isScalar,
  isSeq,
  visit,
  type Document,
  type Pair,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from "yaml";
import { isObject } from "../kit/is-object.ts";
import { blockLines, commentLine, inOneLine, valueText } from "./yaml-lines.ts";
import {
  commentLength,
  endOf,
  keyOf,
  lastCharacter,
  lineEnd,
  lineStart,
  parse,
  rangeOf,
} from "./yaml-positions.ts";

/** A replacement of a part of a text. */
interface Edit {
  readonly from: number;
  readonly to: number;
  readonly text: string;
}

/**
 * Comment lines by the key below them: `fields.id`, or a key of the top level. The empty key is the
 * head of the file.
 */
export type Comments = Readonly<Record<string, readonly string[]>>;

/** A text that was written from data, and may have been edited by hand since. */
interface Edited {
  readonly text: string;
  /** The data that the text contains. */
  readonly before: Readonly<Record<string, unknown>>;
  /** The data of the edited text. */
  readonly after: Readonly<Record<string, unknown>>;
  /** Comments above new keys. */
  readonly comments: Comments;
}

/**
 * Changes a YAML text from one data to another, and leaves every other character as it is:
 * comments, order, spaces and quotes.
 *
 * @throws Error when the text is not a map of keys and values.
 */
export function editYaml(given: Edited): string {
  const { text, before, after } = given;
  const document = parse(text);
  if (!isMap(document.contents)) throw new Error("expected keys and values in the file");
  const edits: Edit[] = [];
  editMap({ ...given, map: document.contents, path: "", edits });
  const edited = apply(text, edits);
  return hasData(edited, after) ? edited : rewritten(document, before, after);
}

function hasData(text: string, data: unknown): boolean {
  const document = parse(text);
  try {
    return document.errors.length === 0 && isDeepStrictEqual(document.toJS(), data);
  } catch {
    // The anchor of an alias was removed with its value.
    return false;
  }
}

/**
 * Writes the text with the library, which keeps comments and order, but not every space. Each alias
 * becomes its own value.
 */
function rewritten(
  document: Document.Parsed,
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): string {
  const change = (path: readonly string[], one: unknown, other: unknown): void => {
    if (isDeepStrictEqual(one, other)) return;
    if (!isObject(one) || !isObject(other)) {
      if (other === undefined) document.deleteIn(path);
      else document.setIn(path, document.createNode(other, { flow: true }));
      return;
    }
    for (const key of new Set([...Object.keys(one), ...Object.keys(other)]))
      change([...path, key], one[key], other[key]);
  };
  visit(document, {
    Alias(_key, alias) {
      const value = alias.resolve(document)?.clone() as Scalar | YAMLMap | YAMLSeq;
      delete value.anchor;
      return value;
    },
  });
  change([], before, after);
  return document.toString({ lineWidth: 0 });
}

function apply(text: string, edits: readonly Edit[]): string {
  let result = text;
  // Applies the edits from the end, so that offsets before an edit stay valid. Insertions at one
  // offset are applied in reverse too.
  for (const { from, to, text: inserted } of edits
    .toReversed()
    .toSorted((a, b) => b.from - a.from || b.to - a.to))
    result = result.slice(0, from) + inserted + result.slice(to);
  return result;
}

interface MapEdit extends Edited {
  readonly map: YAMLMap;
  /** Path of the map, with dots between the keys. */
  readonly path: string;
  readonly edits: Edit[];
}

function editMap(place: MapEdit): void {
  const { map, before, after, edits } = place;
  const pairs = new Map(map.items.map((pair) => [keyOf(pair), pair]));
  for (const [key, pair] of pairs) {
    if (!(key in after)) edits.push(...removal(place, pair));
    else if (!isDeepStrictEqual(before[key], after[key])) changeValue(place, key, pair);
  }
  let previous: string | undefined;
  for (const key of Object.keys(after)) {
    if (!pairs.has(key)) insert(place, key, previous);
    else previous = key;
  }
}

function pathOf({ path }: MapEdit, key: string): string {
  return path === "" ? key : `${path}.${key}`;
}

function changeValue(place: MapEdit, key: string, pair: Pair): void {
  const { text, map, before, after, edits } = place;
  const { value } = pair;
  const [one, other] = [before[key], after[key]];
  if (isMap(value) && isObject(one) && isObject(other) && value.items.length > 0)
    return editMap({ ...place, map: value, before: one, after: other, path: pathOf(place, key) });
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
  { text, edits }: MapEdit,
  list: YAMLSeq,
  before: readonly unknown[],
  after: readonly unknown[],
): boolean {
  const kept = before.filter((item) => after.includes(item));
  const added = after.filter((item) => !before.includes(item));
  const isPlain = [...before, ...after].every((item) => typeof item === "string");
  if (!isPlain || kept.length === 0 || !isDeepStrictEqual([...kept, ...added], after)) return false;
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

function removal(place: MapEdit, pair: Pair): readonly Edit[] {
  const { text, map, comments } = place;
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
  const end = lineEnd(text, lastCharacter(text, pair));
  const above = comments[pathOf(place, keyOf(pair))] ?? [];
  return [{ from: start - commentLength(text, start, above), to: end, text: "" }];
}

function insert(place: MapEdit, key: string, previous: string | undefined): void {
  const { text, map, after, comments, edits } = place;
  const pairs = map.items;
  const [first] = pairs;
  const last = pairs.find((pair) => keyOf(pair) === previous) ?? pairs.at(-1);
  if (map.flow === true) {
    const value = `${inOneLine(key)}: ${inOneLine(after[key])}`;
    const at = last === undefined ? rangeOf(map)[0] + 1 : endOf(last);
    edits.push({ from: at, to: at, text: last === undefined ? ` ${value} ` : `, ${value}` });
    return;
  }
  if (first === undefined || last === undefined) throw new Error("expected keys and values in the file");
  const [start] = rangeOf(first.key);
  const indent = " ".repeat(start - lineStart(text, start));
  const lines = (comments[pathOf(place, key)] ?? []).map(commentLine);
  const inserted = [...lines, ...blockLines(key, after[key])].map((line) => `${indent}${line}\n`).join("");
  const end = lineEnd(text, lastCharacter(text, last));
  const isOpen = end === text.length && !text.endsWith("\n");
  edits.push({ from: end, to: end, text: isOpen ? `\n${inserted}` : inserted });
}
