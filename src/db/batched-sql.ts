import { DatabaseError, type Pool } from "pg";
import { createBatcher, type Batcher } from "../kit/batcher.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { isTimeLimitOver } from "./database-fault.ts";
import { resultTooLargeCode } from "./result-limit.ts";
import {
  isStalePlan,
  limitsOf,
  sentOf,
  tryBatch,
  type BatchFault,
  type SentValue,
  type Statement,
  type TextRow,
} from "./statement-batch.ts";
import type { StatementNames } from "./statement-name.ts";
import { createTextSql, type TextSql } from "./text-sql.ts";

/** Most statements of one batch; `mostNew` is for a new text, whose duration is not known yet. */
const mostStatements = 16;
const mostNew = 4;
/** Most texts whose duration is known. */
const mostKnown = 1000;
/** Target duration of a batch, because statements wait for a slow one before them. */
const mostMs = 50;

/**
 * Returns the SQL of a holder. Its statements share batches with those of no other holder.
 *
 * @param lockLimitMs Limit of the wait of each statement for a lock. Default: the limit of the
 *   statement.
 */
export type SqlOf<Holder> = (holder: Holder, lockLimitMs?: number) => TextSql;

interface BatchedSqlOptions<Holder> {
  readonly pool: Pool;
  /** See `createStatementNames`. A statement without a name is run alone. */
  readonly names: StatementNames;
  /** Returns the same key for holders whose statements may share a batch. */
  readonly keyOf: (holder: Holder) => string;
  /** Runs a batch, or a statement that is alone, when the holder has its turn. */
  readonly inTurn?: <T>(holder: Holder, act: () => Promise<T>) => Promise<T>;
  /**
   * The same for a batch of reads, which may have a limit for each of its statements. One that
   * reaches the limit is run again, alone and without it. Default: `inTurn`.
   */
  readonly inBatchTurn?: <T>(holder: Holder, act: (limitMs?: number) => Promise<T>) => Promise<T>;
  /** Gets the time that each statement of a batch took in ms, without the wait for a connection. */
  readonly onTaken?: (holder: Holder, ms: number) => void;
  /**
   * Kind of the statements. With `equal reads`, statements of a batch with equal values are run
   * once.
   */
  readonly kind: "reads" | "equal reads" | "writes";
}

/**
 * Statement before a batch of writes. A write that meets a lock gives up soon and is run again
 * alone. The others therefore do not wait.
 */
const shortLocks = limitsOf({ lockLimitMs: 50 });

type Values = readonly SentValue[];
interface Item {
  readonly values: Values;
  readonly lockLimitMs: number | undefined;
}
/** A statement of a holder, and the limit of the time of each of its executions. */
interface Limited<Holder> extends Statement {
  readonly holder: Holder;
  readonly limitMs: number | undefined;
}
/** Outcome of a statement; `again` means that it must be run alone. */
type Outcome = { readonly rows: TextRow[] } | { readonly error: unknown } | "again";

/**
 * Returns SQL for statements that need no transaction. Statements of one holder and one text share
 * a batch when they come in one turn of the event loop. So do statements that wait for the same
 * turn of the holder.
 *
 * PostgreSQL runs a batch as one transaction, with one commit. When a write fails, the whole batch
 * has done nothing, and each write is run once more, alone. Each statement has its own snapshot,
 * taken after the call.
 */
export function createBatchedSql<Holder>(options: BatchedSqlOptions<Holder>): SqlOf<Holder> {
  const { pool, names, keyOf, kind, inTurn = (_holder, act) => act(), onTaken } = options;
  const inBatchTurn: NonNullable<typeof options.inBatchTurn> = options.inBatchTurn ?? inTurn;
  const open = new Map<string, { readonly batcher: Batcher<Item, Outcome>; count: number }>();
  const pace = createPace();

  async function runTogether(
    statement: Limited<Holder>,
    batch: readonly Item[],
  ): Promise<readonly Outcome[]> {
    const { holder, limitMs } = statement;
    const own = batch[0]?.lockLimitMs;
    const limits = limitMs === undefined ? { lockLimitMs: own } : { timeLimitMs: limitMs };
    const before = kind === "writes" && batch.length > 1 ? shortLocks : limitsOf(limits);
    const values = batch.map((item) => item.values);
    const { results, fault, ms } = await tryBatch(pool, { ...statement, values, before });
    pace.note(statement.name, ms / batch.length);
    onTaken?.(holder, ms / batch.length);
    if (fault === undefined) return results.map((rows) => ({ rows }));
    const isOver = limitMs !== undefined && isTimeLimitOver(fault.error);
    if (batch.length === 1) return [isOver || isStalePlan(fault.error) ? "again" : { error: fault.error }];
    return results.map((rows, at) =>
      isOver && at === fault.at ? "again" : outcomeOf(rows, fault, { index: at, kind }),
    );
  }

  async function runDifferent(
    statement: Limited<Holder>,
    batch: readonly Item[],
  ): Promise<readonly Outcome[]> {
    if (kind !== "equal reads" || batch.length === 1) return runTogether(statement, batch);
    const ids = batch.map(({ values }) => JSON.stringify(values));
    const different = new Map(ids.map((id, index) => [id, batch[index] as Item]));
    const outcomes = await runTogether(statement, [...different.values()]);
    const found = new Map([...different.keys()].map((id, index) => [id, outcomes[index]]));
    return ids.map((id) => copyOf(found.get(id) ?? "again"));
  }

  /** Adds a statement to the current batch of the holder. */
  async function join(holder: Holder, name: string, text: string, item: Item): Promise<Outcome> {
    const key = `${keyOf(holder)} ${name}`;
    let entry = open.get(key);
    if (entry === undefined) {
      const batcher = createBatcher<Item, Outcome, number | undefined>({
        maxItems: () => pace.most(name),
        atWork: Infinity,
        inTurn: (act) => inBatchTurn(holder, act),
        handle: (batch, limitMs) => runDifferent({ name, text, holder, limitMs }, batch),
      });
      entry = { batcher, count: 0 };
      open.set(key, entry);
    }
    entry.count += 1;
    try {
      return await entry.batcher.add(item);
    } finally {
      entry.count -= 1;
      if (entry.count === 0) open.delete(key);
    }
  }

  return (holder, lockLimitMs) => async (text, values) => {
    const name = names(text);
    if (name !== undefined) {
      const outcome = await join(holder, name, text, { values: sentOf(values), lockLimitMs });
      if (outcome !== "again") {
        if ("error" in outcome) throw outcome.error;
        return outcome.rows;
      }
    }
    return inTurn(holder, () => createTextSql(pool, names, lockLimitMs)(text, values));
  };
}

/** Limits batches of slow statements. */
interface Pace {
  most(name: string): number;
  /** @param ms Duration of one statement of that name in its batch. */
  note(name: string, ms: number): void;
}

function createPace(): Pace {
  const took = new Map<string, number>();
  return {
    most(name) {
      const ms = took.get(name);
      if (ms === undefined) return mostNew;
      return Math.min(mostStatements, Math.max(1, Math.floor(mostMs / ms)));
    },
    note(name, ms) {
      const before = took.get(name) ?? ms;
      setBounded(took, [name, before + (ms - before) / 4], mostKnown);
    },
  };
}

/** Returns the outcome of the statement at `index` of several. */
function outcomeOf(
  rows: TextRow[],
  { error, at }: BatchFault,
  { index, kind }: { readonly index: number; readonly kind: BatchedSqlOptions<unknown>["kind"] },
): Outcome {
  if (isStalePlan(error)) return "again";
  if (!isOfOneStatement(error)) return { error };
  // The server may have committed the batch before the connection was cut.
  if (kind === "writes" && isTooLarge(error)) return { error };
  // A write may have failed because of an earlier one.
  if (kind === "writes") return index === at && isTimeLimitOver(error) ? { error } : "again";
  // The result may only have been too large together with earlier results.
  if (index === at) return isTooLarge(error) && at > 0 ? "again" : { error };
  return index < at ? { rows } : "again";
}

/** Copies the rows, because each caller may change its own. */
function copyOf(outcome: Outcome): Outcome {
  return typeof outcome === "object" && "rows" in outcome
    ? { rows: outcome.rows.map((row) => [...row]) }
    : outcome;
}

/**
 * Returns whether the fault is that of one statement, rather than of the server (class 57: it
 * stops).
 */
function isOfOneStatement(error: Error): boolean {
  if (isTooLarge(error)) return true;
  return error instanceof DatabaseError && (isTimeLimitOver(error) || error.code?.startsWith("57") !== true);
}

function isTooLarge(error: Error): boolean {
  return "code" in error && error.code === resultTooLargeCode;
}
