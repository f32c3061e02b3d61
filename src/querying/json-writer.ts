import type { Definition, TransformNode } from "../mapping/definition.ts";
import { writerOfValue } from "./json-text.ts";
import type { Need, Raw, RelatedNeed, Selection } from "./selection.ts";

/** Writes a record's JSON from the texts that were read. */
export type WriteRecord = (raw: Raw) => string;

const nothing: WriteRecord = () => "null";

/**
 * Compiles the writer of a resource's records. It gives `JSON.stringify` of what `createTransform`
 * makes of the same record, to the byte.
 *
 * @param transform Undefined: every field under its own name.
 * @param selection See `shownBy`, which says what a transform needs.
 */
export function createRecordWriter(transform: TransformNode | undefined, selection: Selection): WriteRecord {
  return transform === undefined ? fieldsOf(selection) : nodeOf(transform, selection);
}

function nodeOf(node: TransformNode, selection: Selection): WriteRecord {
  if (node.kind === "path") return pathOf(node.path, selection);
  if (node.kind === "object")
    return objectOf(node.entries.map(([key, child]) => [key, nodeOf(child, selection)]));
  const text = JSON.stringify(node.value);
  return () => text;
}

/**
 * Writes integer keys first, and the last of equal keys, as `JSON.stringify` does with an object of
 * JavaScript.
 */
function objectOf(entries: readonly (readonly [string, WriteRecord])[]): WriteRecord {
  const parts = Object.entries(Object.fromEntries(entries)).map(
    ([key, write], index) => [`${index === 0 ? "" : ","}${JSON.stringify(key)}:`, write] as const,
  );
  return (raw) => {
    let text = "{";
    for (const [key, write] of parts) text += key + write(raw);
    return `${text}}`;
  };
}

function fieldsOf(selection: Selection): WriteRecord {
  return objectOf(selection.definition.fields.map(({ name }) => [name, fieldOf(name, selection)]));
}

function fieldOf(name: string, selection: Selection): WriteRecord {
  const column = selection.columns.get(name);
  if (column === undefined) throw new Error(`The selection of ${selection.definition.name} lacks ${name}`);
  const { position } = column;
  const write = writerOfValue(column.field);
  return (raw) => write(raw[position] as string | null);
}

/** A step through a relation that is not read gives null, as one through a missing record does. */
function pathOf([name = "", ...rest]: readonly string[], selection: Selection): WriteRecord {
  if (rest.length === 0 && selection.definition.fields.some((field) => field.name === name))
    return fieldOf(name, selection);
  const joined = selection.ones.get(name);
  if (joined !== undefined) {
    const write = rest.length === 0 ? fieldsOf(joined) : pathOf(rest, joined);
    const { presence } = joined;
    return (raw) => (raw[presence] === null ? "null" : write(raw));
  }
  const many = selection.manys.get(name);
  if (many === undefined) return nothing;
  const { position } = many;
  const { root } = many.statement;
  const write = rest.length === 0 ? fieldsOf(root) : pathOf(rest, root);
  return (raw) => `[${((raw[position] ?? []) as readonly Raw[]).map(write).join(",")}]`;
}

/**
 * Returns the part of what an `include` reads that a transform shows, and no more. Columns and
 * relations that no answer shows are not read.
 *
 * @param fields Read in any case, by name.
 */
export function shownBy(
  transform: TransformNode | undefined,
  definition: Definition,
  included: Need,
  fields: readonly string[],
): Need {
  const paths = transform === undefined ? definition.fields.map(({ name }) => [name]) : pathsOf(transform);
  return narrowed([...paths, ...fields.map((name) => [name])], included);
}

function pathsOf(node: TransformNode): readonly (readonly string[])[] {
  if (node.kind === "path") return [node.path];
  return node.kind === "object" ? node.entries.flatMap(([, child]) => pathsOf(child)) : [];
}

/** A path that ends at a relation shows every field of it. */
function narrowed(paths: readonly (readonly string[])[], included: Need): Need {
  const fields = new Set<string>();
  const within = new Map<string, (readonly string[])[]>();
  for (const [name = "", ...rest] of paths) {
    if (included.related.has(name)) within.set(name, [...(within.get(name) ?? []), rest]);
    else if (rest.length === 0) fields.add(name);
  }
  const related = new Map<string, RelatedNeed>();
  for (const [name, rests] of within) {
    const there = included.related.get(name) as RelatedNeed;
    const isWhole = rests.some((rest) => rest.length === 0);
    const need = narrowed(rests, there.need);
    related.set(name, { ...there, need: isWhole ? { ...need, fields: undefined } : need });
  }
  return { fields, related };
}
