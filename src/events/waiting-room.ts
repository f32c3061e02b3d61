/** Events that failed one by one, and when each may be tried again. */
export interface WaitingRoom {
  has(id: string): boolean;
  isFull(): boolean;
  /** Notes a failure; answers the wait in ms, which doubles with each. */
  add(id: string): number;
  /** Those whose time has come; the more often they have failed, the fewer at once, down to one alone. */
  take(limit: number): readonly string[];
  forget(id: string): void;
}

interface Guest {
  failures: number;
  /** Infinity once it was taken. */
  retryAtMs: number;
}

const mostGuests = 10_000;

/** @param now In ms, never going back. */
export function createWaitingRoom({
  longestPauseMs,
  now,
}: {
  readonly longestPauseMs: number;
  readonly now: () => number;
}): WaitingRoom {
  const guests = new Map<string, Guest>();
  return {
    has: (id) => guests.has(id),
    isFull: () => guests.size >= mostGuests,
    add(id) {
      const failures = (guests.get(id)?.failures ?? 0) + 1;
      const pauseMs = Math.min(1_000 * 2 ** Math.min(failures - 1, 20), longestPauseMs);
      guests.set(id, { failures, retryAtMs: now() + pauseMs });
      return pauseMs;
    },
    take(limit) {
      const due = [...guests].filter(([, { retryAtMs }]) => retryAtMs <= now());
      if (due.length === 0) return [];
      const least = Math.min(...due.map(([, { failures }]) => failures));
      const atOnce = Math.max(1, limit >> (2 * Math.min(least, 15)));
      const taken = due.filter(([, { failures }]) => failures === least).slice(0, atOnce);
      for (const [, guest] of taken) guest.retryAtMs = Infinity;
      return taken.map(([id]) => id);
    },
    forget: (id) => void guests.delete(id),
  };
}
