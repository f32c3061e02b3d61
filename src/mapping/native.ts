import type { Field } from "./definition.ts";

/** Types of PostgreSQL that it compares and sorts directly, and that often have an index for it. */
const ordered: ReadonlySet<string> = new Set([
  "inet",
  "cidr",
  "macaddr",
  "macaddr8",
  "citext",
  "bit",
  "varbit",
  "money",
  "name",
  "ltree",
  "timetz",
  "pg_lsn",
  "tsvector",
  "int4range",
  "int8range",
  "numrange",
  "tsrange",
  "tstzrange",
  "daterange",
]);

/** Returns whether the values of a field of this type are texts as they are. */
export function isTextItself({ native }: Pick<Field, "native">): boolean {
  return native === undefined || native === "citext";
}

/**
 * Returns whether a field can be compared and sorted directly. For other native types, the text is
 * compared: `point`, `xml` and many types of extensions have no equality.
 */
export function hasOrder({ native }: Pick<Field, "native">): boolean {
  return native === undefined || ordered.has(native.replace(/\(.*$/, "").toLowerCase());
}
