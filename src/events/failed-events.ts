/** Events that failed one by one, and when each may be tried again. */
export interface FailedEvents {
  has(id: string): boolean;
  isFull(): boolean;
  /** Notes a failure; answers the wait in ms, which doubles with each. */
  add(id: string): number;
  /** Those whose time has come; the more often they have failed, the fewer at once, down to one alone. */
  take(limit: number): readonly string[];
  forget(id: string): void;
}

interface FailedEvent {
  failures: number;
  /** Infinity once it was taken. */
  retryAtMs: number;
}

const mostFailed = 10_000;

/** @param now In ms, never going back. */
export function createFailedEvents({
  longestPauseMs,
  now,
}: {
  readonly longestPauseMs: number;
  readonly now: () => number;
}): FailedEvents {
  const failed = new Map<string, FailedEvent>();
  return {
    has: (id) => failed.has(id),
    isFull: () => failed.size >= mostFailed,
    add(id) {
      const failures = (failed.get(id)?.failures ?? 0) + 1;
      const pauseMs = Math.min(1_000 * 2 ** Math.min(failures - 1, 20), longestPauseMs);
      failed.set(id, { failures, retryAtMs: now() + pauseMs });
      return pauseMs;
    },
    take(limit) {
      const due = [...failed].filter(([, { retryAtMs }]) => retryAtMs <= now());
      if (due.length === 0) return [];
      const least = Math.min(...due.map(([, { failures }]) => failures));
      const atOnce = Math.max(1, limit >> (2 * Math.min(least, 15)));
      const taken = due.filter(([, { failures }]) => failures === least).slice(0, atOnce);
      for (const [, event] of taken) event.retryAtMs = Infinity;
      return taken.map(([id]) => id);
    },
    forget: (id) => void failed.delete(id),
  };
}
