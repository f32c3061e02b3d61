/** Resources that fail as a whole, and when each may be asked again. */
export interface RestingResources {
  has(resource: string): boolean;
  /** Those whose time has come. */
  due(): readonly string[];
  /**
   * Leaves a resource alone; answers for how long, in ms: twice as long each time, and a second while the database is away, which says
   * nothing about the resource.
   */
  rest(resource: string, options: { readonly isPassing: boolean }): number;
  /** Answers whether it was resting. */
  wake(resource: string): boolean;
}

/** @param now In ms, never going back. */
export function createRestingResources({
  longestPauseMs,
  now,
}: {
  readonly longestPauseMs: number;
  readonly now: () => number;
}): RestingResources {
  const resting = new Map<string, { readonly failures: number; readonly untilMs: number }>();
  return {
    has: (resource) => resting.has(resource),
    due: () => [...resting].filter(([, { untilMs }]) => untilMs <= now()).map(([resource]) => resource),
    rest(resource, { isPassing }) {
      const failures = isPassing ? 0 : (resting.get(resource)?.failures ?? 0) + 1;
      const pauseMs = Math.min(1_000 * 2 ** Math.max(0, failures - 1), longestPauseMs);
      resting.set(resource, { failures, untilMs: now() + pauseMs });
      return pauseMs;
    },
    wake: (resource) => resting.delete(resource),
  };
}
