import type { ClientBase } from "pg";
import { quoteName, quoteTable, quoteText } from "../db/names.ts";
import type { LiveObject } from "./live-objects.ts";
import type { Statement } from "./statements.ts";

/** Dependencies of the checks that count the rows which the changes do not allow. */
export interface RowChecks {
  readonly client: ClientBase;
  /** The changes of the managed tables. */
  readonly statements: readonly Statement[];
  /** Objects of the managed tables. */
  readonly objects: readonly LiveObject[];
  /** Warnings of the schema engine, which does not read the rows. */
  readonly warnings: readonly string[];
}

export interface TableColumn {
  readonly table: string;
  readonly column: string;
}

/**
 * Returns SQL for the rows that keys of a table apply to: those of its partitions, without tables
 * that inherit from it. It names no columns, because the role may not read some.
 */
export async function findOwnRows(client: ClientBase, table: string): Promise<string> {
  const place = quoteTable(table);
  const { rows } = await client.query<{ isPartitioned: boolean }>(
    `SELECT relkind = 'p' AS "isPartitioned" FROM pg_class WHERE oid = to_regclass($1)`,
    [place],
  );
  return rows[0]?.isPartitioned === true ? place : `ONLY ${place}`;
}

/** Returns an SQL expression that names a row by its key; undefined for a table without a key. */
export function rowNameOf(table: string, objects: readonly LiveObject[]): string | undefined {
  const key = objects.find((one) => one.table === table && one.what === "primary key")?.columns ?? [];
  if (key.length === 0) return undefined;
  const parts = key.map((name) => `concat(${quoteText(`${name} `)}, ${quoteName(name)})`);
  return `concat_ws(', ', ${parts.join(", ")})`;
}
