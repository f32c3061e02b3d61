/** Lets so many of one holder do something at one time; the others of that holder wait, in the order in which they came. */
export interface Turns<Id extends number | string = number> {
  /** Undefined when there is a place at once. */
  take(holder: Id): Promise<void> | undefined;
  /** Gives the place to the next of the holder that waits. */
  leave(holder: Id): void;
  /** Does something in its turn. */
  run<T>(holder: Id, act: () => Promise<T>): Promise<T>;
}

interface Holder {
  taken: number;
  readonly waiting: (() => void)[];
}

/** @param places Of each holder. */
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
