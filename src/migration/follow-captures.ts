import { isDeepStrictEqual } from "node:util";
import type { Client } from "pg";
import { tableSql } from "../db/names.ts";
import { hasTable } from "./live-tables.ts";

/** A column that a capture function may name. */
interface Captured {
  /** The id of the function. */
  readonly id: string;
  readonly number: number;
  readonly column: string;
  readonly type: string;
  readonly table: string;
}

// Leaves out partitions and children: their triggers have the same functions, but other column
// numbers.
const capturedQuery = `
  SELECT trg.tgfoid::text AS id, att.attnum AS number, att.attname AS column, att.atttypid::text AS type, ${tableSql} AS "table"
  FROM pg_trigger AS trg
  JOIN pg_proc AS fn ON fn.oid = trg.tgfoid AND fn.pronamespace = to_regnamespace('svc')
  JOIN pg_class AS cls ON cls.oid = trg.tgrelid AND cls.relnamespace <> fn.pronamespace
  JOIN pg_attribute AS att ON att.attrelid = cls.oid AND att.attnum > 0 AND NOT att.attisdropped
  WHERE trg.tgnargs = 0 AND trg.tgparentid = 0 ORDER BY 1, 2`;

/**
 * Notes the columns of the captures, before a migration by hand.
 *
 * @returns A function that writes the columns' later names into the captures. Without it, all
 *   writes to the tables fail until the mapping files have the new names. It also marks the
 *   captures, so that the next migration creates them again from the files. Captures of columns
 *   with other types are replaced too: see `retyped` of plan-migration.ts.
 */
export async function watchCaptures(client: Client): Promise<() => Promise<void>> {
  const readCaptured = async (): Promise<readonly Captured[]> =>
    (await client.query<Captured>(capturedQuery)).rows;
  if (!(await hasTable(client, "svc.installed_resources"))) return () => Promise.resolve();
  const before = await readCaptured();
  return async () => {
    const all = await readCaptured();
    const after = new Map(all.map((one) => [keyOf(one), one.column]));
    const renamed = before.filter((one) => {
      const now = after.get(keyOf(one)) ?? one.column;
      // Names with an apostrophe are not followed, because the capture of TRUNCATE contains them
      // within a text.
      return now !== one.column && !`${now}${one.column}`.includes("'");
    });
    for (const id of new Set(before.map((one) => one.id))) {
      const [was, is] = [before, all].map((captured) => captured.filter((one) => one.id === id));
      if (isDeepStrictEqual(was, is)) continue;
      const names = new Map(
        renamed.filter((one) => one.id === id).map((one) => [one.column, after.get(keyOf(one)) ?? ""]),
      );
      const { rows } = await client.query<{ text: string | null }>(
        "SELECT pg_get_functiondef($1::oid) AS text",
        [id],
      );
      await client.query(withNames(rows[0]?.text ?? "", names));
    }
    if (renamed.length === 0) return;
    await client.query(
      `UPDATE svc.installed_resources SET hash = split_part(hash, ' ', 1) || ' renamed' WHERE "table" = ANY($1)`,
      [renamed.map(({ table }) => table)],
    );
  };
}

function keyOf({ id, number }: Captured): string {
  return `${id} ${number}`;
}

/**
 * Row names in captures, before the quoted name of a column. The column names contain no quotes.
 */
const rows = ["NEW.", "OLD.", "svc_row."];

/** Replaces the column names in the text of a capture, all at once because two may be swapped. */
function withNames(text: string, names: ReadonlyMap<string, string>): string {
  const parts = text.split('"');
  return parts
    .map((part, place) =>
      rows.some((row) => parts[place - 1]?.endsWith(row)) ? (names.get(part) ?? part) : part,
    )
    .join('"');
}
