import type { ClientBase } from "pg";
import { quoteTable } from "../db/names.ts";
import { referenceOf } from "./orphans.ts";
import { clausesOf, type Clause, type Statement } from "./statements.ts";

/** The tables that statements lock, as names for `to_regclass`. */
export interface Ends {
  /**
   * Tables that change, and tables at the other end of a foreign key that is dropped or recreated.
   */
  readonly changed: readonly string[];
  /** Tables that a new foreign key references. They may be read meanwhile. */
  readonly referred: readonly string[];
}

const endsQuery = `
  SELECT DISTINCT con.conrelid::regclass::text AS own, con.confrelid::regclass::text AS other
  FROM unnest($1::text[], $2::text[], $3::text[]) AS gone (place, kind, name)
  JOIN pg_constraint AS con ON con.contype = 'f' AND to_regclass(gone.place) IN (con.conrelid, con.confrelid)
  LEFT JOIN pg_attribute AS att ON gone.kind = 'column' AND att.attrelid = to_regclass(gone.place) AND att.attname = gone.name
  WHERE (gone.kind = 'constraint' AND con.conname = gone.name)
    OR (con.conrelid = att.attrelid AND att.attnum = ANY(con.conkey))
    OR (con.confrelid = att.attrelid AND att.attnum = ANY(con.confkey))`;

/**
 * Finds the tables that statements lock. At foreign keys, these are both ends, because PostgreSQL
 * has triggers there.
 */
export async function foreignEnds(client: ClientBase, statements: readonly Statement[]): Promise<Ends> {
  const clauses = clausesOf(statements).filter(({ table }) => table !== "");
  const gone = clauses.filter(({ clause }) => endsKey(clause));
  const { rows } = await client.query<{ own: string; other: string }>(endsQuery, [
    gone.map(({ table }) => quoteTable(table)),
    gone.map(({ clause }) => clause.kind),
    gone.map(({ clause }) => clause.name),
  ]);
  const changed = [
    ...clauses.map(({ table }) => quoteTable(table)),
    ...rows.flatMap(({ own, other }) => [own, other]),
  ];
  const referred = clauses.flatMap((one) => referenceOf(one)?.target ?? []);
  return { changed: [...new Set(changed)], referred: [...new Set(referred)].map(quoteTable) };
}

/** Returns whether a clause drops a foreign key, or recreates it for another type. */
function endsKey({ action, kind, part, sql }: Clause): boolean {
  if (kind === "column") return action === "drop" || part === "type";
  return kind === "constraint" && sql.startsWith("DROP ");
}
