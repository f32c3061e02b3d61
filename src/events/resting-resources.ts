/** Resources that fail as a whole, with the time of their next try. */
export type RestingResources = ReturnType<typeof createRestingResources>;

interface Resting {
  readonly failures: number;
  readonly untilMs: number;
  readonly tried: Map<string, boolean>;
}

/**
 * Longest pause of a single resource, whose cause may have ended. With several, it is as many times
 * as long: a try of each takes up to 4 s of one of the relay's connections.
 */
const longestOfOneMs = 30_000;

/** @param now Monotonic clock, in ms. */
export function createRestingResources({
  longestPauseMs,
  now,
}: {
  readonly longestPauseMs: number;
  readonly now: () => number;
}) {
  const resting = new Map<string, Resting>();
  /**
   * Returns the ids of the events that failed together before the pause, or alone during it. The
   * value is true for events that failed alone, which the next probe omits. The caller may change
   * the map.
   */
  const tried = (resource: string): Map<string, boolean> => resting.get(resource)?.tried ?? new Map();
  return {
    has: (resource: string): boolean => resting.has(resource),
    /** Returns the resources whose pause is over. */
    due: (): readonly string[] =>
      [...resting].filter(([, { untilMs }]) => untilMs <= now()).map(([resource]) => resource),
    /**
     * Pauses a resource. Returns the pause in ms: it doubles with each failure. While the database
     * is unavailable, which is no fault of the resource, it is one second.
     */
    rest(resource: string, { isPassing }: { readonly isPassing: boolean }): number {
      const failures = isPassing ? 0 : (resting.get(resource)?.failures ?? 0) + 1;
      const others = resting.size - Number(resting.has(resource));
      const longestMs = Math.min(longestOfOneMs * (others + 1), longestPauseMs);
      const pauseMs = Math.min(1_000 * 2 ** Math.max(0, failures - 1), longestMs);
      resting.set(resource, { failures, untilMs: now() + pauseMs, tried: tried(resource) });
      return pauseMs;
    },
    tried,
    /** Ends the pause of a resource. Returns whether the resource was paused. */
    wake: (resource: string): boolean => resting.delete(resource),
  };
}
