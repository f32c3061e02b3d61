import { createHash, randomUUID } from "node:crypto";
import { arraysOf, type Sql } from "../../db/sql.ts";
import { createAlarm, pause, type Worker } from "../../kit/worker.ts";
import type { Log } from "../../telemetry/log.ts";
import type { Breakers, OpenBreaker } from "./breakers.ts";

/**
 * Breakers that all dispatchers share. A change in one dispatcher reaches the others a second
 * later.
 */
export interface SharedBreakers
  extends Pick<Breakers, "mayAcquire" | "tryAcquire" | "report" | "counts">, Worker {}

interface Options {
  readonly own: Breakers;
  readonly sql: Sql;
  readonly log: Log;
  /**
   * Resolves when no attempt is in flight: an orderly stop also writes the results of the last
   * attempts.
   */
  readonly drained: () => Promise<void>;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
  readonly random: () => number;
  readonly intervalMs?: number;
  /** Most rows to read. Default: as many as this process's own breakers. */
  readonly limit?: number;
}

interface State extends Pick<Options, "own" | "sql" | "now"> {
  /** Breakers that other processes have opened or probe, by hexadecimal key. */
  others: ReadonlyMap<string, OpenBreaker>;
  /** Receivers whose breaker this process has opened, by key. */
  readonly opened: Map<string, string>;
  /** Breakers to be written, by key; undefined for a breaker that has closed. */
  readonly changed: Map<string, OpenBreaker | undefined>;
  readonly holder: string;
  /** Delay of this process's probe after that of the breaker's holder. */
  readonly laterMs: number;
  readonly limit: number;
}

const pollMs = 1_000;
const gatherMs = 50;
/**
 * The process that has opened a breaker probes it first. The others wait one to two times as long
 * as this, and learn of the probe meanwhile.
 */
const holderFirstMs = 2_000;
/**
 * How long a row is kept after its pause. When an owner changes the URL of a webhook, no attempt
 * removes the row of the old URL.
 */
const keptFor = "interval '1 hour'";
const mostRead = 10_000;

const writeText = `
  INSERT INTO svc.breakers (key, pause_ms, until, holder)
  SELECT decode(given.key, 'hex'), given.pause_ms, now() + given.ms * interval '1 millisecond', $4::uuid
  FROM unnest($1::text[], $2::float8[], $3::float8[]) AS given (key, pause_ms, ms)
  ON CONFLICT (key) DO UPDATE SET pause_ms = EXCLUDED.pause_ms, until = EXCLUDED.until, holder = EXCLUDED.holder`;

const closeText = `
  DELETE FROM svc.breakers WHERE key = ANY(ARRAY(SELECT decode(key, 'hex') FROM unnest($1::text[]) AS given (key)))`;

const readText = `
  WITH old AS (DELETE FROM svc.breakers WHERE until < now() - ${keptFor})
  SELECT encode(key, 'hex') AS key, pause_ms AS "pauseMs", (extract(epoch FROM until - now()) * 1000)::float8 AS ms,
    holder = $1::uuid AS "isOwn"
  FROM svc.breakers ORDER BY until DESC LIMIT $2`;

/**
 * Shares the breakers of this process by the rows of `svc.breakers`. Attempts never wait for the
 * database. While it is unavailable, a dispatcher uses only its own breakers.
 */
export function createSharedBreakers({
  own,
  sql,
  log,
  drained,
  now,
  random,
  intervalMs = pollMs,
  limit = mostRead,
}: Options): SharedBreakers {
  const alarm = createAlarm();
  const state: State = {
    own,
    sql,
    others: new Map(),
    opened: new Map(),
    changed: new Map(),
    holder: randomUUID(),
    laterMs: holderFirstMs * (1 + random()),
    limit,
    now,
  };
  const note = (receiver: string): void => {
    noteChange(state, receiver);
    alarm.wake();
  };
  return {
    name: "breakers",
    async run(signal) {
      while (!signal.aborted) {
        try {
          await write(state);
          await read(state);
        } catch (error) {
          log.warn({ err: error }, "breakers not shared; trying again");
        }
        await alarm.wait(intervalMs, signal);
        await pause(gatherMs, signal);
      }
      await drained();
      await write(state).catch((error: unknown) =>
        log.warn({ err: error }, "the last changes of breakers not shared"),
      );
    },
    mayAcquire: (receiver) => own.mayAcquire(receiver) && !isPaused(state, otherOf(state, receiver)),
    tryAcquire(receiver) {
      const other = otherOf(state, receiver);
      if (isPaused(state, other)) return "wait";
      // The other process's pause is over, so the next attempt is a probe.
      if (other !== undefined) own.adopt(receiver, other.pauseMs);
      const permission = own.tryAcquire(receiver);
      if (permission === "probe") note(receiver);
      return permission;
    },
    report(options) {
      const change = own.report(options);
      const { receiver, isProbe, cost } = options;
      const isNews = cost === "answered" ? isKnown(state, receiver) : isProbe || change !== undefined;
      if (isNews) note(receiver);
      return change;
    },
    counts() {
      const counts = own.counts();
      const elsewhere = [...state.others].filter(([key]) => !state.opened.has(key));
      const open = elsewhere.filter(([, { untilMs }]) => now() < untilMs).length;
      return { open: counts.open + open, halfOpen: counts.halfOpen + elsewhere.length - open };
    },
  };
}

/**
 * Returns the key of a receiver in `svc.breakers`: a hash, because the path of a URL may be a
 * secret.
 */
function keyOf(receiver: string): string {
  return createHash("sha256").update(receiver).digest("hex");
}

/** Returns the breaker of a receiver that another process has opened or probes. */
function otherOf({ others }: State, receiver: string): OpenBreaker | undefined {
  return others.size === 0 ? undefined : others.get(keyOf(receiver));
}

function isPaused({ now }: State, other: OpenBreaker | undefined): boolean {
  return other !== undefined && now() < other.untilMs;
}

/** Returns whether a row of a receiver exists or is about to be written. */
function isKnown({ others, opened, changed }: State, receiver: string): boolean {
  if (others.size + opened.size + changed.size === 0) return false;
  const key = keyOf(receiver);
  return others.has(key) || opened.has(key) || changed.has(key);
}

/** Plans the write of a receiver's changed breaker. */
function noteChange({ own, opened, changed }: State, receiver: string): void {
  const open = own.openOf(receiver);
  const key = keyOf(receiver);
  if (open === undefined) opened.delete(key);
  else opened.set(key, receiver);
  changed.set(key, open);
}

async function write({ sql, changed, holder, now }: State): Promise<void> {
  // Sorted, so that two dispatchers that write the same rows never deadlock.
  const planned = [...changed].toSorted(([one], [other]) => (one < other ? -1 : 1));
  if (planned.length === 0) return;
  changed.clear();
  try {
    const open = planned.flatMap(([key, one]) => (one === undefined ? [] : [{ key, ...one }]));
    const closed = planned.flatMap(([key, one]) => (one === undefined ? [key] : []));
    if (open.length > 0)
      await sql(writeText, [
        ...arraysOf(open, "key", "pauseMs"),
        open.map(({ untilMs }) => Math.max(0, untilMs - now())),
        holder,
      ]);
    if (closed.length > 0) await sql(closeText, [closed]);
  } catch (error) {
    for (const [key, one] of planned) if (!changed.has(key)) changed.set(key, one);
    throw error;
  }
}

async function read(state: State): Promise<void> {
  const { own, sql, opened, changed, holder, laterMs, limit, now } = state;
  type Row = { readonly key: string; readonly pauseMs: number; readonly ms: number; readonly isOwn: boolean };
  const rows = await sql<Row>(readText, [holder, limit]);
  const keys = new Set(rows.map(({ key }) => key));
  // A breaker that lasts longer than a pause and its probe dates from before the database's clock
  // was set back. It counts as over.
  const others = rows.filter(({ isOwn, key }) => !isOwn && !changed.has(key));
  state.others = new Map(
    others.map(({ key, pauseMs, ms }) => [
      key,
      { pauseMs, untilMs: now() + (ms > 2 * pauseMs ? 0 : ms + laterMs) },
    ]),
  );
  // A key may be among the rows that were not read.
  if (rows.length === limit) return;
  for (const [key, receiver] of opened) {
    if (keys.has(key) || changed.has(key)) continue;
    // The row is gone because another process got an answer.
    opened.delete(key);
    own.close(receiver);
  }
}
