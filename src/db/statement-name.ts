import { hash } from "node:crypto";

/** Returns the name of a statement; undefined when no connection should keep it prepared. */
export type StatementNames = (text: string) => string | undefined;

/** Returns the name under which connections keep a statement. Equal texts have equal names. */
export function statementName(text: string): string {
  return `svc_${hash("sha256", text, "base64url").slice(0, 24)}`;
}
