import { DatabaseError, type Pool } from "pg";
import { createBatcher, type Batcher } from "../kit/batcher.ts";
import { isStalePlan, runBatch, sentOf, type SentValue, type TextRow } from "./statement-batch.ts";
import { createTextSql, type TextSql } from "./text-sql.ts";

/** Most reads of one batch: those behind a slow one wait for it. */
const mostReads = 16;

type Values = readonly SentValue[];
type Outcome = { readonly rows: TextRow[] } | { readonly error: unknown };

/**
 * Runs reads, and only reads: those of one text that come in one turn of the event loop go to the
 * server together. Each is a statement with a snapshot of its own, taken after it was asked for.
 *
 * @param names See `createStatementNames`. What gets none is read alone.
 */
export function createBatchedSql(pool: Pool, names: (text: string) => string | undefined): TextSql {
  const alone = createTextSql(pool, names);
  const batchers = new Map<string, Batcher<Values, Outcome>>();

  /** Runs one by one what failed together, where the fault of one failed the others. */
  async function settle(text: string, batch: readonly Values[], error: unknown): Promise<readonly Outcome[]> {
    if (!isStalePlan(error) && (batch.length === 1 || !isOfOneRead(error)))
      return batch.map(() => ({ error }));
    return Promise.all(
      batch.map((values) =>
        alone(text, values).then(
          (rows) => ({ rows }),
          (fault: unknown) => ({ error: fault }),
        ),
      ),
    );
  }

  function batcherOf(text: string, name: string): Batcher<Values, Outcome> {
    const batcher = createBatcher<Values, Outcome>({
      maxItems: mostReads,
      atWork: Infinity,
      handle: async (values) => {
        try {
          const results = await runBatch(pool, { name, text, values });
          return results.map((rows) => ({ rows }));
        } catch (error) {
          return settle(text, values, error);
        }
      },
    });
    batchers.set(text, batcher);
    return batcher;
  }

  return async (text, values) => {
    const name = names(text);
    const sent = name === undefined ? undefined : sentOf(values);
    if (name === undefined || sent === undefined) return alone(text, values);
    const outcome = await (batchers.get(text) ?? batcherOf(text, name)).add(sent);
    if ("error" in outcome) throw outcome.error;
    return outcome.rows;
  };
}

/** Returns whether the fault is not the server's (class 57: it stops, or stopped the statement). */
function isOfOneRead(error: unknown): boolean {
  return error instanceof DatabaseError && error.code?.startsWith("57") !== true;
}
