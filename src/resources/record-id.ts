import { percentDecoded } from "../http/query-string.ts";
import type { Definition, Row } from "../mapping/definition.ts";
import { rendererOf } from "../querying/transform.ts";
import { parseKey } from "./coerce.ts";

/**
 * Returns the key of an id: its value, or a list of values for a key of several fields. In such an
 * id each value is percent-encoded, and commas separate the values.
 *
 * @returns Undefined when no record can have such a key, see `parseKey`.
 */
export function parseId({ key, keys }: Definition, id: string): unknown {
  if (keys.length === 1) return parseKey(key, id);
  const parts = id.split(",");
  if (parts.length !== keys.length) return undefined;
  const values = keys.map((field, index) => {
    const text = percentDecoded(parts[index] ?? "");
    // A blank text may be a part of a key, but not an address by itself.
    return text === undefined || (text === "" && field.type === "String") ? text : parseKey(field, text);
  });
  return values.includes(undefined) ? undefined : values;
}

/** Returns the id of a record in the form of events and addresses. */
export function idOf({ keys }: Definition, row: Row): string {
  const texts = keys.map((field) => String(rendererOf(field)(row[field.name])));
  return keys.length === 1 ? (texts[0] ?? "") : texts.map(encodeURIComponent).join(",");
}

/**
 * Returns the id in the path of a request.
 *
 * @param path Path, not decoded. Its last part is the id.
 * @param given The decoded id, for a key of one field.
 */
export function idInPath({ keys }: Definition, path: string, given: string): string {
  if (keys.length === 1) return given;
  const last = path.replace(/\/$/, "").split("/").at(-1) ?? "";
  // Clients that encode the whole id also encode its commas.
  return last.includes(",") ? last : given;
}

/** Returns the last part of the address of a record. */
export function pathOfId({ keys }: Definition, id: string): string {
  return keys.length === 1 ? encodeURIComponent(id) : id;
}
