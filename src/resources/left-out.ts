import { quoteTable } from "../db/names.ts";
import type { TextSql } from "../db/text-sql.ts";
import type { Definition } from "../mapping/definition.ts";

/** Bits of `tgtype` for the operation of a trigger. */
const bits = { create: 4, delete: 8, update: 16 };

// A BEFORE trigger for each row leaves a row out by returning NULL. The text of a function shows
// that in PL/pgSQL only. Functions in C, which come with extensions, are taken not to.
const triggersText = `
  -- Not by pg_partition_tree, which waits for locks of the table.
  WITH RECURSIVE own AS (
    SELECT to_regclass($1)::oid AS id UNION SELECT inhrelid FROM pg_inherits JOIN own ON inhparent = id
  )
  SELECT coalesce(bit_or(tgtype), 0) FROM own JOIN pg_trigger ON tgrelid = id
  JOIN pg_proc AS fn ON fn.oid = tgfoid JOIN pg_language AS lang ON lang.oid = prolang
  WHERE NOT tgisinternal AND tgenabled <> 'D' AND fn.pronamespace IS DISTINCT FROM to_regnamespace('svc')
  -- Bits of tgtype: ROW and BEFORE.
  AND tgtype & 3 = 3
  AND (lanname NOT IN ('plpgsql', 'c', 'internal') OR prosrc ~* '\\mreturn\\M[^;]*\\mnull\\M')`;

/** Time for which the triggers of a table are known. */
const knownMs = 10_000;

const known = new WeakMap<Definition, { readonly at: number; readonly types: Promise<number> }>();

/**
 * Returns whether a trigger of the table may leave out a write of this kind. Such a write needs a
 * transaction: what the trigger has written instead is undone together with it.
 */
export async function mayBeLeftOut(
  sql: TextSql,
  definition: Definition,
  operation: keyof typeof bits,
): Promise<boolean> {
  let entry = known.get(definition);
  if (entry === undefined || performance.now() - entry.at > knownMs) {
    const types = sql(triggersText, [quoteTable(definition.table)]).then(([row]) => Number(row?.[0]));
    entry = { at: performance.now(), types };
    known.set(definition, entry);
    types.catch(() => known.delete(definition));
  }
  return ((await entry.types) & bits[operation]) > 0;
}

/** The error that undoes a write which no record met, or which was left out. */
export const nothingWritten = new Error("Nothing was written");
