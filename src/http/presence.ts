/** How long a user counts as active after a request. */
const presenceMs = 1000;

/** Knows which users send requests at present. */
export interface Presence {
  /** Notes that a request of the user has come. */
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
