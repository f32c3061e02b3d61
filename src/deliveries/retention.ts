import { getRow, type Sql, type Transact } from "../db/sql.ts";
import { createPeriodicWorker, pause, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";
import { pruneEvents } from "./prune.ts";
import { pruneReplays } from "./replay/replay-store.ts";

interface RetentionOptions {
  readonly transact: Transact;
  /** How long finished events are kept; 0 keeps them forever. */
  readonly keepForMs: number;
  readonly log: Log;
  /** Time between two turns. */
  readonly intervalMs?: number;
}

/** Key of the advisory lock of the one process that removes: a number that nothing else uses. */
const retentionLock = 7_002;

/**
 * Creates the worker that removes finished events older than the setting: one process at a time,
 * one commit per page. It rests after each page for as long as the page took, so that other work is
 * not delayed. When a process dies, the next turn of any process continues. This worker also ends
 * replays whose subscription is gone.
 */
export function createRetention(options: RetentionOptions): Worker {
  return createPeriodicWorker({
    name: "retention",
    intervalMs: options.intervalMs ?? 60_000,
    turn: (signal) => turn(options, signal),
    onError: (error) => options.log.error({ err: error }, "old events not removed; trying again"),
  });
}

async function turn({ transact, keepForMs, log }: RetentionOptions, signal: AbortSignal): Promise<void> {
  let startedAt = 0;
  const mayGoOn = async (sql: Sql): Promise<boolean> => {
    startedAt = performance.now();
    return !signal.aborted && (await isAlone(sql));
  };
  // A pause within a transaction would lock the embedded database for all connections.
  const onProgress = (): Promise<void> => pause(performance.now() - startedAt, signal);
  const { events, deliveries } =
    keepForMs > 0
      ? await pruneEvents({ transact, olderThanMs: keepForMs, isPlan: false, onProgress, mayGoOn })
      : { events: 0, deliveries: 0 };
  await transact(async (sql) => {
    if (await mayGoOn(sql)) await pruneReplays(sql, keepForMs);
  });
  if (events > 0) log.info({ event: "retention.turn", events, deliveries }, "old events removed");
}

async function isAlone(sql: Sql): Promise<boolean> {
  const text = `SELECT pg_try_advisory_xact_lock(${retentionLock}) AS "isAlone"`;
  return (await getRow<{ isAlone: boolean }>(sql, text)).isAlone;
}
