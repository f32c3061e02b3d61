import { quoteName, quoteText } from "../db/names.ts";
import type { Definition, Field, FieldType } from "../mapping/definition.ts";

/** PostgreSQL passes at most 100 arguments to a function, and a pair takes two. */
const maxPairs = 50;

/** Returns the SQL expression of a row's snapshot as JSON; `rowOfSnapshot` reads it. */
export function snapshotOf(definition: Definition, row: string): string {
  const pairs = definition.fields.map(
    (field) => `${quoteText(field.name)}, ${encoded(field, `${row}.${quoteName(field.column)}`)}`,
  );
  const chunks: string[] = [];
  for (let start = 0; start < pairs.length; start += maxPairs)
    chunks.push(`jsonb_build_object(${pairs.slice(start, start + maxPairs).join(", ")})`);
  return `(${chunks.join(" || ")})`;
}

/**
 * Encoding of a column in the snapshot; the decoders of snapshot-row.ts reverse it. Numbers of
 * arbitrary size are text, since JSON numbers lose digits in JavaScript. JSON documents are text
 * too, because `json` may hold `\u0000`, which `jsonb` refuses: the writer's statement would fail.
 */
const encodings: Readonly<Record<FieldType, "json" | "text" | "base64">> = {
  Int: "json",
  BigInt: "text",
  Float: "json",
  Decimal: "text",
  String: "json",
  Boolean: "json",
  DateTime: "json",
  Instant: "json",
  Date: "json",
  Time: "json",
  Interval: "json",
  Json: "text",
  Bytes: "base64",
  Uuid: "json",
  Enum: "json",
};

function encoded({ type, isList, native }: Field, column: string): string {
  const encoding = encodings[type];
  if (native !== undefined) return isList ? listOf(column, nativeOf) : nativeOf(column);
  if (encoding === "json") return column;
  if (encoding === "text") return `${column}::${isList ? "text[]" : "text"}`;
  return isList ? listOf(column, base64Of) : base64Of(column);
}

/**
 * Returns the SQL expression of the text that reads return. JSON would show some types in parts,
 * and a cast to text adds the mask to an `inet`.
 */
function nativeOf(value: string): string {
  return `CASE WHEN ${value} IS NOT NULL THEN format('%s', ${value}) END`;
}

/** `encode` breaks lines after 76 characters, which `Buffer` ignores. */
function base64Of(bytes: string): string {
  return `encode(${bytes}, 'base64')`;
}

function listOf(list: string, write: (item: string) => string): string {
  const items = `SELECT ${write("item")} FROM unnest(${list}) WITH ORDINALITY AS items (item, place) ORDER BY place`;
  return `CASE WHEN ${list} IS NOT NULL THEN ARRAY(${items}) END`;
}
