import { setBounded } from "./bounded-map.ts";

/** Places of all holders together, for actions that may take long. */
export interface FairPlaces {
  /**
   * Runs `act` in a place. Waits for one at most `limitMs`; returns undefined when that was too
   * short.
   */
  runWithin<T>(holder: number, limitMs: number, act: () => Promise<T>): Promise<T | undefined>;
}

interface Waiting {
  readonly dueAt: number;
  readonly begin: () => void;
}

/** Most holders whose earlier actions are known. */
const mostHolders = 10_000;

/**
 * Creates places that go to the holder whose actions have taken least since the others began to
 * wait: start-time fair queueing (Goyal, Vin and Cheng, 1996), as for the fan-out. First in, first
 * out, one action of a holder would wait for a long one of each other holder.
 *
 * @param now Monotonic clock, in ms.
 */
export function createFairPlaces(places: number, now: () => number = () => performance.now()): FairPlaces {
  /** Virtual time at which each holder's next action is due: the sum of what its actions took. */
  const dueAtOf = new Map<number, number>();
  const waiting = new Set<Waiting>();
  let [taken, clock] = [0, 0];

  function beginNext(): void {
    let next: Waiting | undefined;
    for (const one of waiting) if (next === undefined || one.dueAt < next.dueAt) next = one;
    if (next === undefined) return;
    waiting.delete(next);
    next.begin();
  }

  function take(dueAt: number, limitMs: number): Promise<boolean> {
    if (taken < places) {
      taken += 1;
      return Promise.resolve(true);
    }
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        waiting.delete(one);
        resolve(false);
      }, limitMs);
      const one: Waiting = {
        dueAt,
        begin() {
          clearTimeout(timer);
          taken += 1;
          resolve(true);
        },
      };
      waiting.add(one);
    });
  }

  return {
    async runWithin(holder, limitMs, act) {
      const dueAt = Math.max(clock, dueAtOf.get(holder) ?? 0);
      if (!(await take(dueAt, limitMs))) return undefined;
      clock = Math.max(clock, dueAt);
      const beganAt = now();
      try {
        return await act();
      } finally {
        setBounded(dueAtOf, [holder, dueAt + now() - beganAt], mostHolders);
        taken -= 1;
        beginNext();
        // A long action of an hour ago must not count.
        if (taken === 0) dueAtOf.clear();
      }
    },
  };
}
