import { createHash } from "node:crypto";
import { escapeIdentifier, escapeLiteral } from "pg";

/**
 * Names the PostgreSQL schema of every resource's table, which the models client names in its
 * statements.
 */
export const tablesSchema = "public";

/** PostgreSQL cuts longer identifiers without a word, and then two may become one. */
const maxNameBytes = 63;

/** An identifier, quoted for SQL. */
export function quoteName(name: string): string {
  return escapeIdentifier(name);
}

/** A string constant, quoted for SQL. */
export function quoteText(text: string): string {
  return escapeLiteral(text);
}

/** A resource's table with its schema, quoted for SQL. */
export function quoteTable(table: string): string {
  return `${quoteName(tablesSchema)}.${quoteName(table)}`;
}

/**
 * Returns `stem + ending`. A stem that makes the name too long for PostgreSQL is cut, and its hash
 * put before the ending. Not quoted.
 */
export function fittingName(stem: string, ending = ""): string {
  if (Buffer.byteLength(stem + ending) <= maxNameBytes) return stem + ending;
  const hash = `_${createHash("sha256").update(stem).digest("hex").slice(0, 10)}`;
  const room = maxNameBytes - Buffer.byteLength(hash + ending);
  // Streaming, the decoder keeps back a character that was cut in two.
  const cut = new TextDecoder().decode(Buffer.from(stem).subarray(0, room), { stream: true });
  return cut + hash + ending;
}
