import { quoteName } from "../db/names.ts";
import type { Definition, Field, FieldType } from "../mapping/definition.ts";

/** Writes the id of a row as `idOf` of resources/record-id.ts does. */
export function recordIdOf({ key, keys }: Definition, row: string): string {
  const textOf = ({ column }: Field): string => `${row}.${quoteName(column)}::text`;
  if (keys.length === 1) return textOf(key);
  const parts = keys.map((field) => {
    if (field.type === "Date") return dayOf(`${row}.${quoteName(field.column)}`);
    return plainTypes.includes(field.type) ? textOf(field) : percentEncoded(textOf(field));
  });
  return parts.join(" || ',' || ");
}

/**
 * Writes a day. Other programs may write `infinity`, of which `to_char` makes NULL, and days before
 * the year 1. Events then have the text of PostgreSQL.
 */
function dayOf(column: string): string {
  const isDay = `isfinite(${column}) AND ${column} >= '0001-01-01'`;
  return `CASE WHEN ${isDay} THEN to_char(${column}, 'YYYY-MM-DD') ELSE ${percentEncoded(`${column}::text`)} END`;
}

/** Types whose texts have no character that an id would encode. */
const plainTypes: readonly FieldType[] = ["Int", "BigInt", "Uuid"];

/** Writes what `encodeURIComponent` makes of a text, byte by byte. */
function percentEncoded(text: string): string {
  const kept = `one COLLATE "C" ~ '[A-Za-z0-9_.!~*''()-]'`;
  const escaped = `regexp_replace(upper(encode(convert_to(one, 'UTF8'), 'hex')), '(..)', '%\\1', 'g')`;
  const characters = `regexp_split_to_table(${text}, '') WITH ORDINALITY AS part (one, place)`;
  return `(SELECT coalesce(string_agg(CASE WHEN ${kept} THEN one ELSE ${escaped} END, '' ORDER BY place), '') FROM ${characters})`;
}
