import type { JsonRecord } from "../../api/types.ts";
import { valueAt } from "./form-fields.ts";

/**
 * Returns a record's `{id}`: the values of its key, separated by commas; null when the record does
 * not show the key.
 *
 * @param keys Paths of the key in the record; null when the record does not show it.
 */
export function idOf(
  record: JsonRecord,
  { keys }: { readonly keys: readonly string[] | null },
): string | null {
  if (keys === null) return null;
  const values = keys.map((path) => valueAt(record, path));
  const texts = values.filter((value) => ["string", "number", "boolean"].includes(typeof value)).map(String);
  if (texts.length !== keys.length) return null;
  return texts.length === 1 ? (texts[0] ?? null) : texts.map(encodeURIComponent).join(",");
}

/** Returns the path of the records of a resource, in the API and in the console. */
export function recordsPath(resource: string): string {
  return `/resources/${encodeURIComponent(resource)}`;
}

/** Returns the path of a record, in the API and in the console. */
export function recordPath(resource: string, id: string): string {
  return `${recordsPath(resource)}/${encodeURIComponent(id)}`;
}

/** Returns the key of the query for a record with its entity tag. */
export function recordQuery(resource: string, id: string): readonly string[] {
  return ["record", resource, id];
}

const telling = ["name", "title", "reference", "label", "subject", "email", "number", "code", "slug"];

/**
 * Returns a label of a record: its name, a similar field, or the first other text. Null without
 * one.
 */
export function labelOf(record: JsonRecord): string | null {
  for (const key of telling) {
    const value = record[key];
    if (typeof value === "string" && value !== "") return value;
  }
  const text = Object.entries(record).find(
    ([key, value]) => typeof value === "string" && value !== "" && !/(^|_)(id|at|on|uuid)$/.test(key),
  )?.[1];
  return typeof text === "string" ? text : null;
}
