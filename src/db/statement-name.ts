import { createHash } from "node:crypto";

/** Returns the name of a statement; undefined when no connection should keep it prepared. */
export type StatementNames = (text: string) => string | undefined;

/** Returns the name under which connections keep a statement. Equal texts have equal names. */
export function statementName(text: string): string {
  return `svc_${createHash("sha256").update(text).digest("base64url").slice(0, 24)}`;
}

/**
 * Returns the name option of a query of pg itself; empty for an unnamed one. pg uses separate
 * names, because it does not know which statements `runBatch` has prepared on the connection.
 */
export function nameForPg(name: string | undefined): { readonly name?: string } {
  return name === undefined ? {} : { name: `${name}_` };
}
