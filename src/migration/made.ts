import type { ClientBase } from "pg";
import { keyOf, type LiveObject, type ObjectKind } from "./live-objects.ts";
import { quoteName, quoteTable, quoteText, tablesSchema } from "../db/names.ts";
import type { ColumnPart } from "./statements.ts";

/**
 * A row of `svc.made`: the service's record of what it made in the managed tables, so that it touches nothing else.
 *
 * The key is the name: object ids and column numbers do not survive pg_dump and restore. An index or a constraint that somebody dropped
 * and made again in another way is told by its definition; a column that somebody dropped and made again cannot be told.
 */
export interface MadeObject {
  readonly table: string;
  readonly kind: ObjectKind | "table";
  readonly name: string;
  /** False for what somebody else made just as the mapping file has it: used, and never dropped. */
  readonly isMade: boolean;
  /** Of an index or constraint PostgreSQL's; of a column the `ColumnWish`, as JSON. */
  readonly definition: string;
}

/** What the mapping file asks of a column, part by part. The texts are compared and never read. */
export type ColumnWish = Readonly<Record<ColumnPart, string>>;

/** The whole record. Empty in a database of a version that kept none. */
export async function readMade(client: ClientBase): Promise<readonly MadeObject[]> {
  const { rows: found } = await client.query<{ isThere: boolean }>(
    `SELECT to_regclass('svc.made') IS NOT NULL AS "isThere"`,
  );
  if (found[0]?.isThere !== true) return [];
  const { rows } = await client.query<MadeObject>(
    `SELECT "table", kind, name, is_made AS "isMade", definition FROM svc.made ORDER BY "table", kind, name`,
  );
  return rows;
}

/** The record by `keyOf`. */
export function byKey(made: readonly MadeObject[]): ReadonlyMap<string, MadeObject> {
  return new Map(made.map((one) => [keyOf(one.kind, one.table, one.name), one]));
}

/** Whether a live object is the one on record. A check has the service's signature too: its wording follows its column's type. */
export function isSame(object: LiveObject, made: MadeObject): boolean {
  return object.kind === "column" || object.definition === made.definition || isSigned(object);
}

/** Whether a check has the comment that the service gives its own: the condition as it was written. See value-checks.ts. */
export function isSigned({ what, comment }: LiveObject): boolean {
  return what === "check" && comment !== null && /^"[^"]+" (?:IN \(|<@ ARRAY\[)/.test(comment);
}

/** Statements that replace what is on record of a table. They run after the objects are made, and take their definitions from there. */
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
  if (kind === "index")
    return `pg_get_indexdef(${quoteText(`${quoteName(tablesSchema)}.${quoteName(name)}`)}::regclass)`;
  if (kind === "constraint")
    return `(SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = ${quoteText(quoteTable(table))}::regclass AND conname = ${quoteText(name)})`;
  return quoteText(definition);
}
