/**
 * Limits the concurrent actions of each holder. Further actions of a holder wait, first in, first
 * out.
 */
export interface Turns<Id extends number | string = number> {
  isFree(holder: Id): boolean;
  /** Takes a place. Returns undefined when one is free at once. */
  take(holder: Id): Promise<void> | undefined;
  /** Waits for a place, at most `limitMs`. Returns whether it has taken one. */
  takeWithin(holder: Id, limitMs: number): Promise<boolean>;
  /** Returns a place, or passes it to the next action that waits for the same holder. */
  leave(holder: Id): void;
  /** Runs `act` when the holder has a place. */
  run<T>(holder: Id, act: () => Promise<T>): Promise<T>;
}

interface Holder {
  taken: number;
  readonly waiting: (() => void)[];
}

/**
 * Creates turns.
 *
 * @param places Places of each holder, or a function of the number of other holders with places.
 *   When the number falls, a holder keeps the places that it has.
 */
export function createTurns<Id extends number | string = number>(
  places: number | ((holder: Id, others: number) => number),
): Turns<Id> {
  const holders = new Map<Id, Holder>();
  const placesOf = (id: Id): number =>
    typeof places === "number" ? places : places(id, holders.size - (holders.has(id) ? 1 : 0));
  /** Takes a free place and returns undefined; otherwise returns the queue of the holder. */
  const takeOrWait = (id: Id): Holder["waiting"] | undefined => {
    let holder = holders.get(id);
    if (holder === undefined) {
      holder = { taken: 0, waiting: [] };
      holders.set(id, holder);
    }
    if (holder.taken >= placesOf(id)) return holder.waiting;
    holder.taken += 1;
    return undefined;
  };
  const turns: Turns<Id> = {
    isFree: (id) => (holders.get(id)?.taken ?? 0) < placesOf(id),
    take(id) {
      const waiting = takeOrWait(id);
      return waiting && new Promise((resolve) => waiting.push(resolve));
    },
    async takeWithin(id, limitMs) {
      const waiting = takeOrWait(id);
      if (waiting === undefined) return true;
      return new Promise((resolve) => {
        const timer = setTimeout(() => {
          waiting.splice(waiting.indexOf(begin), 1);
          resolve(false);
        }, limitMs);
        const begin = (): void => {
          clearTimeout(timer);
          resolve(true);
        };
        waiting.push(begin);
      });
    },
    leave(id) {
      const holder = holders.get(id);
      if (holder === undefined) return;
      holder.taken -= 1;
      for (let free = placesOf(id) - holder.taken; free > 0; free -= 1) {
        const next = holder.waiting.shift();
        if (next === undefined) break;
        holder.taken += 1;
        next();
      }
      if (holder.taken === 0) holders.delete(id);
    },
    async run(id, act) {
      await turns.take(id);
      try {
        return await act();
      } finally {
        turns.leave(id);
      }
    },
  };
  return turns;
}

/**
 * Creates the function that runs actions in places that all holders share. Each holder waits for
 * its own places before it waits for those of all, so holders take turns: an action of one does not
 * wait for all actions of another.
 *
 * @param ofAll Places of all holders together.
 * @param ofEach Most of these for one holder.
 */
export function createSharedPlaces({
  ofAll,
  ofEach,
}: {
  readonly ofAll: number;
  readonly ofEach: number;
}): Turns<number | string>["run"] {
  const holders = createTurns<number | string>(ofEach);
  const all = createTurns<"all">(ofAll);
  return (holder, act) => holders.run(holder, () => all.run("all", act));
}
