import type { Client } from "pg";
import { keyOfObject } from "./live-objects.ts";
import { readMade, type MadeObject } from "./made.ts";
import { quoteTable, tableSql } from "../db/names.ts";

/** A part of a table in PostgreSQL. A rename does not change its id. */
interface Part extends Pick<MadeObject, "table" | "kind" | "name" | "definition"> {
  readonly id: string;
}

const partsQuery = `
  WITH tables AS (SELECT cls.oid, ${tableSql} AS name FROM pg_class AS cls WHERE cls.oid = ANY($1::oid[])),
  parts AS (
    SELECT oid AS relid, 'table' AS kind, oid::text AS id, name, '' AS definition FROM tables
    UNION ALL
    SELECT attrelid, 'column', concat(attrelid, ' ', attnum), attname, '' FROM pg_attribute JOIN tables ON tables.oid = attrelid
    WHERE attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT indrelid, 'index', indexrelid::text, cls.relname, pg_get_indexdef(indexrelid)
    FROM pg_index JOIN tables ON tables.oid = indrelid JOIN pg_class AS cls ON cls.oid = indexrelid
    UNION ALL
    SELECT conrelid, 'constraint', con.oid::text, conname, pg_get_constraintdef(con.oid)
    FROM pg_constraint AS con JOIN tables ON tables.oid = conrelid WHERE contype IN ('c', 'f')
  )
  SELECT tables.name AS "table", kind, id, parts.name, definition
  FROM tables JOIN parts ON parts.relid = tables.oid`;

/**
 * Notes the parts of tables that the service made, before a migration by hand.
 *
 * @returns A function that writes the parts' later names into the record. Without it, a renamed
 *   part counts as made by others, and its old name as missing.
 */
export async function watchRenames(client: Client): Promise<() => Promise<void>> {
  const made = await readMade(client);
  const { rows: tables } = await client.query<{ id: string }>(
    "SELECT to_regclass(given)::oid::text AS id FROM unnest($1::text[]) AS given WHERE to_regclass(given) IS NOT NULL",
    [[...new Set(made.map(({ table }) => table))].map(quoteTable)],
  );
  const ids = tables.map(({ id }) => id);
  const readParts = async (): Promise<readonly Part[]> => (await client.query<Part>(partsQuery, [ids])).rows;
  const before = new Map((await readParts()).map((part) => [keyOfObject(part), part]));
  return async () => {
    const after = new Map((await readParts()).map((part) => [`${part.kind} ${part.id}`, part]));
    const moved = made.flatMap((one) => {
      const was = before.get(keyOfObject(one));
      const is = after.get(`${was?.kind} ${was?.id}`);
      if (was === undefined || is === undefined) return [];
      // When a column is renamed, the text of its indexes and constraints changes.
      const definition = one.definition === was.definition ? is.definition : one.definition;
      const next = { ...one, table: is.table, name: is.name, definition };
      return JSON.stringify(next) === JSON.stringify(one) ? [] : [{ one, next }];
    });
    for (const { one, next } of moved)
      for (const { table, kind, name } of [one, next])
        await client.query(`DELETE FROM svc.made WHERE "table" = $1 AND kind = $2 AND name = $3`, [
          table,
          kind,
          name,
        ]);
    for (const { next } of moved)
      await client.query(
        `INSERT INTO svc.made ("table", kind, name, is_made, definition) VALUES ($1, $2, $3, $4, $5)`,
        [next.table, next.kind, next.name, next.isMade, next.definition],
      );
  };
}
