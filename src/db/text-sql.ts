import { createHash } from "node:crypto";
import { Pool, type ClientBase } from "pg";
import { unsampledComment } from "./traceparent.ts";

/** Runs one statement. Its rows are PostgreSQL's texts of the values, by position. */
export type TextSql = (text: string, values: readonly unknown[]) => Promise<(string | null)[][]>;

/** Runs statements in one transaction, which is rolled back when `work` rejects. */
export type TextTransact = <T>(work: (sql: TextSql) => Promise<T>) => Promise<T>;

/**
 * Keeps the texts: pg would make numbers, dates and objects of them, and most are only written into
 * JSON.
 */
const asText = { getTypeParser: () => (text: string) => text };

/**
 * Limits the named statements: a connection keeps each one for its life. Requests choose filters
 * and fields, so that the first shapes are kept, and later ones are parsed each time.
 */
const maxNames = 1000;

/**
 * @param isEmbedded The embedded database is one backend behind many sockets, in which statement
 *   names would collide.
 */
export function createStatementNames(isEmbedded: boolean): (text: string) => string | undefined {
  const names = new Map<string, string>();
  return (text) => {
    if (isEmbedded) return undefined;
    let name = names.get(text);
    // A trace's comment at the end is never seen again.
    if (
      name === undefined &&
      names.size < maxNames &&
      (!text.endsWith("*/") || text.endsWith(unsampledComment))
    ) {
      name = `svc_${createHash("sha256").update(text).digest("base64url").slice(0, 24)}`;
      names.set(text, name);
    }
    return name;
  };
}

/** @param names Of all pools of the process together, see `createStatementNames`. */
export function createTextSql(over: Pool | ClientBase, names: (text: string) => string | undefined): TextSql {
  const run = async (
    text: string,
    values: readonly unknown[],
    name: string | undefined,
  ): Promise<(string | null)[][]> => {
    const result = await over.query<(string | null)[]>({
      text,
      values: [...values],
      rowMode: "array",
      types: asText,
      ...(name === undefined ? {} : { name }),
    });
    return result.rows;
  };
  return async (text, values) => {
    const name = names(text);
    try {
      return await run(text, values, name);
    } catch (error) {
      // In a transaction the fault has ended everything: the caller tries again as a whole.
      if (name === undefined || !(over instanceof Pool) || !isStalePlan(error)) throw error;
      return run(text, values, undefined);
    }
  };
}

/**
 * Whether a prepared statement no longer fits its table: a column has another type since ("cached
 * plan must not change result type"). The connection keeps the statement for its life.
 */
export function isStalePlan(error: unknown): boolean {
  return (error as { readonly code?: unknown }).code === "0A000";
}

export function createTextTransact(pool: Pool, names: (text: string) => string | undefined): TextTransact {
  return async (work) => {
    const client = await pool.connect();
    // The end of a connection rolls back as well, where the statement cannot.
    let isUsable = false;
    try {
      await client.query("BEGIN");
      const result = await work(createTextSql(client, names));
      await client.query("COMMIT");
      isUsable = true;
      return result;
    } catch (error) {
      isUsable = await client.query("ROLLBACK").then(
        () => true,
        () => false,
      );
      throw error;
    } finally {
      client.release(!isUsable);
    }
  };
}
