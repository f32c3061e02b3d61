import { setTimeout as sleep } from "node:timers/promises";
import type { Receiver, System } from "./system.ts";

/** An action of one user, table, resource or receiver that must not affect the others. */
export interface HoldUp {
  readonly name: string;
  /**
   * Changes the configuration or data of the whole service before any user works. Returns the
   * hold-up and its end.
   */
  readonly prepare: (system: System, sizes: Sizes) => Promise<Prepared>;
}

export interface Prepared {
  /**
   * Runs the hold-up for at least `durationMs`, or until it is done. Returns remarks for the table.
   */
  readonly run: (durationMs: number) => Promise<string>;
  /** Ends the hold-up, before the last phase of the others. */
  readonly release?: () => Promise<unknown>;
}

/** Size of the hold-up. */
export interface Sizes {
  readonly subscriptions: number;
  readonly poisoned: number;
  /** Waiting deliveries. */
  readonly waiting: number;
  /** Simultaneous changes for a slow receiver. */
  readonly burst: number;
  /** Changes beside a transaction that stays open. */
  readonly dumped: number;
  /** Rows of one UPDATE. */
  readonly bulk: number;
}

const fullSizes: Sizes = {
  subscriptions: 100_000,
  poisoned: 200_000,
  waiting: 100_000,
  burst: 20_000,
  dumped: 30_000,
  bulk: 100_000,
};
export const quickSizes: Sizes = { ...fullSizes, subscriptions: 20_000, poisoned: 20_000 };

/** @param scale 1 is the largest size. */
export function sizesOf(scale: number): Sizes {
  const entries = Object.entries(fullSizes).map(([name, size]) => [name, Math.round(size * scale)]);
  return Object.fromEntries(entries) as Sizes;
}

/** Inserts notes by one statement. */
export async function insertNotes(
  { sql }: System,
  { userId, count, text = "'a change'" }: NewNotes,
): Promise<void> {
  await sql(`INSERT INTO notes (text, user_id) SELECT ${text}, $1 FROM generate_series(1, $2::int)`, [
    userId,
    count,
  ]);
}

export interface NewNotes {
  readonly userId: number;
  readonly count: number;
  /** An SQL expression. */
  readonly text?: string;
}

/**
 * Waits until this many deliveries have arrived, or the time is over. Returns how many have
 * arrived.
 */
export async function arrivalsOf(
  receivers: readonly Receiver[],
  { count, limitMs }: { readonly count: number; readonly limitMs: number },
): Promise<number> {
  for (const endsAt = performance.now() + limitMs; ;) {
    const counts = await Promise.all(receivers.map((receiver) => receiver.count()));
    const sum = counts.reduce((a, b) => a + b, 0);
    if (sum >= count || performance.now() > endsAt) return sum;
    await sleep(50);
  }
}

/** Returns the duration of `work` in seconds. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}
