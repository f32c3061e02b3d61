import type { DatabaseError } from "pg";

/**
 * Returns the columns of a server fault; empty when it names none. The detail is in the server's
 * language, but holds `(tenant, email)=(1, a)` in every one.
 */
export function columnsOf({ column, detail }: Pick<DatabaseError, "column" | "detail">): readonly string[] {
  if (column !== undefined) return [column];
  const list = detail?.slice(detail.indexOf("(") + 1, Math.max(detail.indexOf(")=("), 0)) ?? "";
  return [...list.matchAll(/"((?:[^"]|"")+)"|[^,\s][^,]*/g)].map(nameOf);
}

function nameOf(match: RegExpMatchArray): string {
  return match[1]?.replaceAll('""', '"') ?? match[0];
}
