/** Time for which a user counts as active after a request. */
const presenceMs = 1000;

/** Tracks which users currently send requests. */
export interface Presence {
  /** Records a request of the user. */
  note(id: number): void;
  /** Returns whether no other user has sent a request for a second. */
  isAlone(id: number): boolean;
}

/** @param now Monotonic clock, in ms. */
export function createPresence(now: () => number = () => performance.now()): Presence {
  let [last, other]: [number | undefined, number | undefined] = [undefined, undefined];
  let changedAt = -presenceMs;
  return {
    note(id) {
      if (id === last) return;
      [last, other] = [id, last];
      changedAt = now();
    },
    isAlone: (id) => id === last && (other === undefined || now() - changedAt > presenceMs),
  };
}
