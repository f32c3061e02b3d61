import { createHash } from "node:crypto";
import { escapeIdentifier, escapeLiteral } from "pg";

/** The PostgreSQL schema of a table whose mapping file names none. */
export const tablesSchema = "public";

/**
 * Most bytes of an identifier. PostgreSQL cuts longer ones without a warning, and two may become
 * equal.
 */
export const maxNameBytes = 63;

/** Returns an identifier, quoted for SQL. */
export const quoteName: (name: string) => string = escapeIdentifier;

/** Returns a string constant, quoted for SQL. */
export const quoteText: (text: string) => string = escapeLiteral;

/** Returns a resource's table with its schema, quoted for SQL. */
export function quoteTable(table: string): string {
  const { schema, name } = partsOfTable(table);
  return `${quoteName(schema)}.${quoteName(name)}`;
}

/**
 * Returns the schema and the name of a table as mapping files write it: `orders`, `sales.orders`.
 * The table's own name contains no dot.
 */
export function partsOfTable(table: string): { readonly schema: string; readonly name: string } {
  const dot = table.indexOf(".");
  return dot < 0
    ? { schema: tablesSchema, name: table }
    : { schema: table.slice(0, dot), name: table.slice(dot + 1) };
}

/** Returns the table as mapping files write it, without the schema `public`. */
export function shortTable(table: string): string {
  const { schema, name } = partsOfTable(table);
  return schema === tablesSchema ? name : table;
}

/**
 * Returns `stem + ending`. When the name is too long for PostgreSQL, the stem is cut and its hash
 * put before the ending. The result is not quoted.
 */
export function fittingName(stem: string, ending = ""): string {
  if (Buffer.byteLength(stem + ending) <= maxNameBytes) return stem + ending;
  const hash = `_${createHash("sha256").update(stem).digest("hex").slice(0, 10)}`;
  const room = maxNameBytes - Buffer.byteLength(hash + ending);
  return cutTo(stem, room) + hash + ending;
}

/** Returns the characters of a text that fit into some bytes. */
export function cutTo(text: string, bytes: number): string {
  // In streaming mode, the decoder leaves out a character that was cut in two.
  return new TextDecoder().decode(Buffer.from(text).subarray(0, bytes), { stream: true });
}

/** SQL for the name of the table in the row `cls` of `pg_class`, as mapping files write it. */
export const tableSql = `(CASE WHEN cls.relnamespace = to_regnamespace('${tablesSchema}') THEN cls.relname::text ELSE concat((SELECT nspname FROM pg_namespace WHERE oid = cls.relnamespace), '.', cls.relname) END)`;

/** Returns the body of a function, quoted for SQL. */
export function dollarQuoted(body: string): string {
  let tag = "$svc$";
  for (let n = 1; body.includes(tag); n++) tag = `$svc${n}$`;
  return `${tag}${body}${tag}`;
}
