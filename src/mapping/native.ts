import type { Field } from "./definition.ts";

/** Types of PostgreSQL that compare and sort by themselves, and often have an index for it. */
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

/**
 * Returns whether a field can be compared and sorted as it is. The text of any other native type is
 * compared: `point`, `xml` and many types of extensions have no equality of their own.
 */
export function hasOrder({ native }: Pick<Field, "native">): boolean {
  return native === undefined || ordered.has(native.replace(/\(.*$/, "").toLowerCase());
}
