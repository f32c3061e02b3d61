/**
 * Limits what each holder does at one time. The others of that holder wait, first in, first out.
 */
export interface Turns<Id extends number | string = number> {
  /** Takes a place. Returns undefined when one is free at once. */
  take(holder: Id): Promise<void> | undefined;
  /** Passes the place to the next of the holder that waits. */
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
 * @param places Places of each holder.
 */
export function createTurns<Id extends number | string = number>(places: number): Turns<Id> {
  const holders = new Map<Id, Holder>();
  const turns: Turns<Id> = {
    take(id) {
      let holder = holders.get(id);
      if (holder === undefined) {
        holder = { taken: 0, waiting: [] };
        holders.set(id, holder);
      }
      if (holder.taken < places) {
        holder.taken += 1;
        return undefined;
      }
      const { waiting } = holder;
      return new Promise((resolve) => waiting.push(resolve));
    },
    leave(id) {
      const holder = holders.get(id);
      if (holder === undefined) return;
      const next = holder.waiting.shift();
      if (next !== undefined) {
        next();
        return;
      }
      holder.taken -= 1;
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
