import { hash } from "node:crypto";
import { unsampledComment } from "./traceparent.ts";

/** Returns the name of a statement; undefined when no connection should keep it prepared. */
export type StatementNames = (text: string) => string | undefined;

/** Returns the name under which connections keep a statement. Equal texts have equal names. */
export function statementName(text: string): string {
  return `svc_${hash("sha256", text, "base64url").slice(0, 24)}`;
}

/** Most characters of a named text: a connection closes others for it. */
const longestNamed = 50_000;

/**
 * @param isEmbedded The embedded database is one backend behind many sockets, in which the names
 *   would collide.
 * @param salt With another salt, the same text has another name. For statements on tables of the
 *   mapping files: a connection outlives a reload, and keeps a statement with the types of its
 *   parameters.
 */
export function createStatementNames(isEmbedded: boolean, salt = ""): StatementNames {
  const own = statementName(salt);
  return (text) => {
    // A text that ends with a trace's comment is never repeated.
    const isOnce = text.endsWith("*/") && !text.endsWith(unsampledComment);
    if (isEmbedded || isOnce || text.length > longestNamed) return undefined;
    return statementName(own + text);
  };
}
