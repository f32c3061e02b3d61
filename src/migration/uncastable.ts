import type { ClientBase } from "pg";
import { quoteTable } from "../db/names.ts";
import { arraysOf } from "../db/sql.ts";
import { plainTypeOf } from "./live-tables.ts";
import { clausesOf, type Statement } from "./statements.ts";

// PostgreSQL casts anything to a text, and a list item by item.
const uncastableQuery = `
  SELECT given.at::int AS at, format_type(att.atttypid, att.atttypmod) AS type
  FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY AS given (place, name, type, at)
  JOIN pg_attribute AS att ON att.attrelid = to_regclass(given.place) AND att.attname = given.name AND NOT att.attisdropped
  JOIN pg_type AS old ON old.oid = ${plainTypeOf("att.atttypid")}
  JOIN pg_type AS new ON new.oid = ${plainTypeOf("to_regtype(given.type)")}
  JOIN pg_type AS source ON source.oid = ${plainTypeOf("CASE WHEN old.typcategory = 'A' AND new.typcategory = 'A' THEN old.typelem ELSE old.oid END")}
  JOIN pg_type AS target ON target.oid = ${plainTypeOf("CASE WHEN old.typcategory = 'A' AND new.typcategory = 'A' THEN new.typelem ELSE new.oid END")}
  WHERE source.oid <> target.oid AND target.typcategory <> 'S' AND NOT EXISTS (
    SELECT FROM pg_cast WHERE castsource = source.oid AND casttarget = target.oid AND castcontext IN ('a', 'i'))
  ORDER BY at`;

/**
 * Finds changes of types for which PostgreSQL requires USING. The engine assumes that everything
 * can be cast to a type that it does not know, such as `interval`.
 *
 * @returns A sentence for each column.
 */
export async function findUncastable(
  client: ClientBase,
  statements: readonly Statement[],
): Promise<readonly string[]> {
  const changes = clausesOf(statements).flatMap(({ table, clause: { name, type } }) =>
    type === undefined ? [] : [{ table, name, type }],
  );
  if (changes.length === 0) return [];
  const { rows } = await client.query<{ at: number; type: string }>(uncastableQuery, [
    changes.map(({ table }) => quoteTable(table)),
    ...arraysOf(changes, "name", "type"),
  ]);
  return rows.flatMap(({ at, type: old }) =>
    changes
      .slice(at - 1, at)
      .map(
        ({ table, name, type }) =>
          `The column ${name} of the table ${table} is ${old}, which PostgreSQL casts to ${type} with USING only. Change the type in a migration by hand.`,
      ),
  );
}
