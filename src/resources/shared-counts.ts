/** Counts that several lists ask for at one time. */
export interface SharedCounts {
  /** Whether a count of this key runs now. */
  isRunning(key: string): boolean;
  /** Runs a count for the caller alone. */
  start<T>(key: string, count: () => Promise<T>): Promise<T>;
  /**
   * Returns a count that starts after this call. All that ask while one runs share the next one,
   * made by the `count` of the first of them.
   */
  join<T>(key: string, count: () => Promise<T>): Promise<T>;
}

/**
 * Creates counts that are shared while they are asked for, and then forgotten. What was committed
 * before a request is in its count: a count that runs already has its snapshot, and serves no later
 * request.
 *
 * The values of one key have one type.
 */
export function createSharedCounts(): SharedCounts {
  const running = new Map<string, Promise<unknown>>();
  const next = new Map<string, Promise<unknown>>();

  function start<T>(key: string, count: () => Promise<T>): Promise<T> {
    const run = count().finally(() => {
      if (running.get(key) === run) running.delete(key);
    });
    running.set(key, run);
    return run;
  }

  function startAfter<T>(run: Promise<unknown>, key: string, count: () => Promise<T>): Promise<T> {
    const begin = (): Promise<T> => {
      next.delete(key);
      return start(key, count);
    };
    return run.then(begin, begin);
  }

  return {
    isRunning: (key) => running.has(key),
    start,
    join<T>(key: string, count: () => Promise<T>) {
      const run = running.get(key);
      if (run === undefined) return start(key, count);
      const joined = (next.get(key) as Promise<T> | undefined) ?? startAfter(run, key, count);
      next.set(key, joined);
      return joined;
    },
  };
}
