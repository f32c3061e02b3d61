import { quoteName } from "../db/names.ts";
import type { Definition, Field, FieldType } from "../mapping/definition.ts";

/**
 * Returns the SQL expression of a row's id, with the same result as `idOf` of
 * resources/record-id.ts.
 */
export function recordIdOf({ key, keys }: Definition, row: string): string {
  const textOf = (field: Field): string => keyText(field, `${row}.${quoteName(field.column)}`);
  if (keys.length === 1) return textOf(key);
  const parts = keys.map((field) => {
    if (field.type === "Date") return dayOf(`${row}.${quoteName(field.column)}`);
    return plainTypes.includes(field.type) ? textOf(field) : percentEncoded(textOf(field));
  });
  return parts.join(" || ',' || ");
}

/**
 * Returns the SQL expression of a day. Other programs may write days before the year 1, or
 * `infinity`, for which `to_char` returns NULL. Events then have the text of PostgreSQL.
 */
function dayOf(column: string): string {
  const isDay = `isfinite(${column}) AND ${column} >= '0001-01-01'`;
  return `CASE WHEN ${isDay} THEN to_char(${column}, 'YYYY-MM-DD') ELSE ${percentEncoded(`${column}::text`)} END`;
}

/**
 * Returns the SQL expression of a key as answers show it. The id in an event then equals the id in
 * a URL.
 */
function keyText({ type, native, scale = 0 }: Field, value: string): string {
  // A cast to text adds the mask to an `inet`, and removes the blanks of a `char(3)`.
  if (native !== undefined || type === "String") return `format('%s', ${value})`;
  if (type === "Instant") {
    const time = `to_char(${value}, 'YYYY-MM-DD"T"HH24:MI:SS.US')`;
    const isPlain = `isfinite(${value}) AND ${value} >= '0001-01-01'`;
    return `(CASE WHEN ${isPlain} THEN regexp_replace(${time}, '000$', '') || '+00:00' ELSE ${value}::text END)`;
  }
  if (type === "Decimal") {
    const isLonger = `scale(trim_scale(${value})) > ${scale}`;
    return `(CASE WHEN ${isLonger} THEN trim_scale(${value}) ELSE round(${value}, ${scale}) END)::text`;
  }
  return `${value}::text`;
}

/** Types whose texts contain no character that an id would encode. */
const plainTypes: readonly FieldType[] = ["Int", "BigInt", "Uuid"];

/**
 * Returns the SQL expression that encodes a text like `encodeURIComponent`, byte by byte.
 * PostgreSQL refuses patterns under a collation in which different texts are equal.
 */
function percentEncoded(text: string): string {
  const kept = `one ~ '[A-Za-z0-9_.!~*''()-]'`;
  const escaped = `regexp_replace(upper(encode(convert_to(one, 'UTF8'), 'hex')), '(..)', '%\\1', 'g')`;
  const characters = `regexp_split_to_table(${text} COLLATE "C", '') WITH ORDINALITY AS part (one, place)`;
  return `(SELECT coalesce(string_agg(CASE WHEN ${kept} THEN one ELSE ${escaped} END, '' ORDER BY place), '') FROM ${characters})`;
}
