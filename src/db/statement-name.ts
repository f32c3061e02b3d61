import { createHash } from "node:crypto";

/** Returns the name of a statement; undefined for one that no connection is to keep. */
export type StatementNames = (text: string) => string | undefined;

/** Returns the name under which connections keep a statement: the same for the same text. */
export function statementName(text: string): string {
  return `svc_${createHash("sha256").update(text).digest("base64url").slice(0, 24)}`;
}

/**
 * Names a query of pg's own; empty for an unnamed one. pg has names of its own, since it does not
 * know what `runBatch` prepared on the connection.
 */
export function nameForPg(name: string | undefined): { readonly name?: string } {
  return name === undefined ? {} : { name: `${name}_` };
}
