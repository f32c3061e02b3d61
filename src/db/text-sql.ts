import { Pool, type ClientBase } from "pg";
import { isStalePlan, runBatch, sentOf, type TextRow } from "./statement-batch.ts";
import { nameForPg, statementName, type StatementNames } from "./statement-name.ts";
import { unsampledComment } from "./traceparent.ts";

/** Runs one statement. Its rows have PostgreSQL's texts of the values, by position. */
export type TextSql = (text: string, values: readonly unknown[]) => Promise<TextRow[]>;

/**
 * Types that keep the texts. pg would convert them to numbers, dates and objects, but most are only
 * written into JSON.
 */
const asText = { getTypeParser: () => (text: string) => text };

/**
 * Most named statements, because a connection keeps each one for its life. Requests choose filters
 * and fields, so only the first texts are kept, and later ones are parsed each time.
 */
const maxNames = 1000;
/**
 * Most characters of all named texts: a plan takes up to a hundred times the memory of its text.
 */
const maxCharacters = 500_000;
/** Pattern of statements whose texts depend on the fields of a body. */
const ofBody = /^(?:WITH t AS \()?(?:INSERT|UPDATE) |^SELECT EXISTS /;
/** Share of the names and characters for them, which any user could use up otherwise. */
const shareOfBodies = 0.75;

/**
 * @param isEmbedded The embedded database is one backend behind many sockets, in which statement
 *   names would collide.
 * @param salt With another salt, the same text has another name.
 */
export function createStatementNames(isEmbedded: boolean, salt = ""): StatementNames {
  const names = new Map<string, string>();
  const [used, usedByBodies]: [Used, Used] = [
    { names: 0, characters: 0 },
    { names: 0, characters: 0 },
  ];
  return (text) => {
    if (isEmbedded) return undefined;
    const known = names.get(text);
    if (known !== undefined) return known;
    const isOfBody = ofBody.test(text);
    const hasPlace = hasRoom(used, text) && (!isOfBody || hasRoom(usedByBodies, text, shareOfBodies));
    // A text that ends with a trace's comment never comes again.
    if (!hasPlace || (text.endsWith("*/") && !text.endsWith(unsampledComment))) return undefined;
    const name = statementName(salt + text);
    names.set(text, name);
    count(used, text);
    if (isOfBody) count(usedByBodies, text);
    return name;
  };
}

interface Used {
  names: number;
  characters: number;
}

function count(used: Used, text: string): void {
  used.names += 1;
  used.characters += text.length;
}

function hasRoom({ names, characters }: Used, text: string, share = 1): boolean {
  return names < maxNames * share && characters + text.length <= maxCharacters * share;
}

/** @param names Names for all connections of its kind, see `createStatementNames`. */
export function createTextSql(over: Pool | ClientBase, names: StatementNames): TextSql {
  return async (text, values) => {
    const name = names(text);
    if (name === undefined) return runByPg(over, text, values);
    try {
      const sent = sentOf(values);
      if (sent === undefined) return await runByPg(over, text, values, name);
      const [rows = []] = await runBatch(over, { name, text, values: [sent] });
      return rows;
    } catch (error) {
      // In a transaction, the fault has aborted everything: the caller repeats the whole
      // transaction.
      if (!(over instanceof Pool) || !isStalePlan(error)) throw error;
      return runByPg(over, text, values);
    }
  };
}

/** Runs one statement for each list of values, in their order. Returns the rows of each. */
export type ManySql = (
  text: string,
  lists: readonly (readonly unknown[])[],
) => Promise<readonly (readonly TextRow[])[]>;

/**
 * Sends all executions in one write to one connection. A fault of one fails all.
 *
 * @param names See `createStatementNames`. Statements without a name are sent one by one.
 */
export function createManySql(over: ClientBase, names: StatementNames): ManySql {
  return async (text, lists) => {
    const name = names(text);
    const values = lists.map(sentOf).filter((sent) => sent !== undefined);
    if (name !== undefined && values.length === lists.length) return runBatch(over, { name, text, values });
    const rows: TextRow[][] = [];
    for (const one of lists) rows.push(await runByPg(over, text, one));
    return rows;
  };
}

async function runByPg(
  over: Pool | ClientBase,
  text: string,
  values: readonly unknown[],
  name?: string,
): Promise<TextRow[]> {
  const result = await over.query<TextRow>({
    text,
    values: [...values],
    rowMode: "array",
    types: asText,
    ...nameForPg(name),
  });
  return result.rows;
}
