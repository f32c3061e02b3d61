import { setTimeout as sleep } from "node:timers/promises";
import type { Receiver, System } from "./system.ts";

/**
 * Something that one user, table, resource or receiver does, and that should be nothing to the
 * others.
 */
export interface HoldUp {
  readonly name: string;
  /**
   * Of the whole service's configuration or data, before anybody works; answers what is then done,
   * and what ends it.
   */
  readonly prepare: (system: System, sizes: Sizes) => Promise<Prepared>;
}

export interface Prepared {
  /**
   * Holds up, for `durationMs` at least or until it is through; answers what else there is to tell.
   */
  readonly run: (durationMs: number) => Promise<string>;
  /** Before the others are looked at once more. */
  readonly release?: () => Promise<unknown>;
}

/** How much of it there is. */
export interface Sizes {
  readonly subscriptions: number;
  readonly poisoned: number;
  /** Deliveries that wait. */
  readonly waiting: number;
  /** Changes at once for a receiver that is slow. */
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

/** @param scale 1: as they are at their largest. */
export function sizesOf(scale: number): Sizes {
  const entries = Object.entries(fullSizes).map(([name, size]) => [name, Math.round(size * scale)]);
  return Object.fromEntries(entries) as Sizes;
}

/** Makes notes by one statement. */
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

/** Waits until so many deliveries have come, or the time is over; answers how many have. */
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

/** How long `work` takes, in seconds. */
export async function secondsOf(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return (performance.now() - startedAt) / 1000;
}
