import type { ClientBase } from "pg";
import { placeOf, type LiveObject, type ObjectKind } from "./live-objects.ts";
import { hasTable } from "./live-tables.ts";
import { quoteTable, quoteText } from "../db/names.ts";
import type { ColumnPart } from "./statements.ts";

/**
 * A row of `svc.made`, the record of the objects that the service made in the managed tables. The
 * service changes no other objects.
 *
 * The key is the name, because object ids and column numbers change with pg_dump and restore. The
 * definition shows that an index or a constraint was replaced by hand. A column that was replaced
 * by hand cannot be recognised.
 */
export interface MadeObject {
  readonly table: string;
  readonly kind: ObjectKind | "table";
  readonly name: string;
  /** False for an object of others that equals the mapping file. It is used and never dropped. */
  readonly isMade: boolean;
  /** PostgreSQL's definition of an index or constraint; the `ColumnWish` of a column, as JSON. */
  readonly definition: string;
}

/** The wish of the mapping file for a column, part by part. The texts are only compared. */
export type ColumnWish = Readonly<Record<ColumnPart, string>>;

/** Reads the whole record. Empty in a database of a version without a record. */
export async function readMade(client: ClientBase): Promise<readonly MadeObject[]> {
  if (!(await hasTable(client, "svc.made"))) return [];
  const { rows } = await client.query<MadeObject>(
    `SELECT "table", kind, name, is_made AS "isMade", definition FROM svc.made ORDER BY "table", kind, name`,
  );
  return rows;
}

/**
 * Returns whether a live object is the one on record. A check is also recognised by its comment,
 * because its text depends on the type of its column.
 */
export function isSame(object: LiveObject, made: MadeObject): boolean {
  return object.kind === "column" || object.definition === made.definition || isSigned(object);
}

/**
 * Returns whether a check has the comment of the service: the condition as it was written. See
 * value-checks.ts.
 */
export function isSigned({ what, comment }: LiveObject): boolean {
  return what === "check" && comment !== null && /^"[^"]+" (?:IN \(|<@ ARRAY\[)/.test(comment);
}

/**
 * Returns statements that replace the record of a table. They run after the objects are made, and
 * read their definitions.
 */
export function recordStatements(
  table: string,
  made: readonly Omit<MadeObject, "table">[],
): readonly string[] {
  const rows = made.map(
    ({ kind, name, isMade, definition }) =>
      `(${[quoteText(table), quoteText(kind), quoteText(name), String(isMade), definitionOf({ table, kind, name, definition })].join(", ")})`,
  );
  const forget = `DELETE FROM svc.made WHERE "table" = ${quoteText(table)}`;
  if (rows.length === 0) return [forget];
  return [
    forget,
    `INSERT INTO svc.made ("table", kind, name, is_made, definition) VALUES\n  ${rows.join(",\n  ")}`,
  ];
}

function definitionOf({ table, kind, name, definition }: Omit<MadeObject, "isMade">): string {
  if (kind === "index") return `pg_get_indexdef(${quoteText(placeOf({ table, name }))}::regclass)`;
  if (kind === "constraint")
    return `(SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = ${quoteText(quoteTable(table))}::regclass AND conname = ${quoteText(name)})`;
  return quoteText(definition);
}
