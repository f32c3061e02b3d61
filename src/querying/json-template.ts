import type { Field, TransformNode } from "../mapping/definition.ts";
import type { JoinedSelection, ManySelection, Selection } from "./selection.ts";

/** The JSON of a record: constant texts, and places for its values. */
export type JsonTemplate = readonly (string | JsonPlace)[];

/** A place for a value, or for related records. */
export type JsonPlace =
  | { readonly kind: "value"; readonly field: Field; readonly alias: string; readonly position: number }
  | { readonly kind: "one"; readonly joined: JoinedSelection; readonly of: JsonTemplate }
  | { readonly kind: "many"; readonly many: ManySelection; readonly of: JsonTemplate };

/**
 * Returns the template of a resource's records. Its output is, to the byte, `JSON.stringify` of the
 * result of `createTransform` for the same record.
 *
 * @param transform Undefined: every field under its own name.
 * @param selection Selection with all parts that the transform needs; see `shownBy`.
 */
export function jsonTemplateOf(transform: TransformNode | undefined, selection: Selection): JsonTemplate {
  return merged(transform === undefined ? fieldsOf(selection) : nodeOf(transform, selection));
}

function nodeOf(node: TransformNode, selection: Selection): JsonTemplate {
  if (node.kind === "path") return pathOf(node.path, selection);
  if (node.kind === "object")
    return objectOf(node.entries.map(([key, child]) => [key, nodeOf(child, selection)]));
  return [JSON.stringify(node.value)];
}

/**
 * Returns the template of an object. Its keys have the order of `JSON.stringify`: integer keys come
 * first, and the last of equal keys counts.
 */
function objectOf(entries: readonly (readonly [string, JsonTemplate])[]): JsonTemplate {
  const members = Object.entries(Object.fromEntries(entries)).flatMap(([key, of], index) => [
    `${index === 0 ? "" : ","}${JSON.stringify(key)}:`,
    ...of,
  ]);
  return ["{", ...members, "}"];
}

function fieldsOf(selection: Selection): JsonTemplate {
  return objectOf(selection.definition.fields.map(({ name }) => [name, fieldOf(name, selection)]));
}

function fieldOf(name: string, { definition, alias, columns }: Selection): JsonTemplate {
  const column = columns.get(name);
  if (column === undefined) throw new Error(`The selection of ${definition.name} lacks ${name}`);
  return [{ kind: "value", alias, ...column }];
}

/**
 * Returns the template of a path. A step through a relation that is not read gives null, like one
 * through a missing record.
 */
function pathOf([name = "", ...rest]: readonly string[], selection: Selection): JsonTemplate {
  if (rest.length === 0 && selection.definition.fields.some((field) => field.name === name))
    return fieldOf(name, selection);
  const of = (there: Selection): JsonTemplate =>
    merged(rest.length === 0 ? fieldsOf(there) : pathOf(rest, there));
  const joined = selection.ones.get(name);
  if (joined !== undefined) return [{ kind: "one", joined, of: of(joined) }];
  const many = selection.manys.get(name);
  return many === undefined ? ["null"] : [{ kind: "many", many, of: of(many.statement.root) }];
}

function merged(template: JsonTemplate): JsonTemplate {
  const parts: (string | JsonPlace)[] = [];
  for (const part of template) {
    const last = parts.at(-1);
    if (typeof part === "string" && typeof last === "string") parts[parts.length - 1] = last + part;
    else parts.push(part);
  }
  return parts;
}
