import { addCount } from "../kit/add-count.ts";

/** A request that waits for its client: for the rest of a body, or until an answer is taken. */
interface Lender {
  readonly userId: number;
  /** Begin of the wait, on the clock of `performance.now()`. */
  readonly sinceMs: number;
  /** Returns the bytes that it can lose: 0 while it waits for more. */
  readonly held: () => number;
  /** Called when it has lost them. */
  readonly onLost: () => void;
}

/** The memory of the requests in flight, by user. */
export interface MemoryLedger {
  readonly limitOfUser: number;
  /** Returns the bytes of all users. */
  readonly held: () => number;
  readonly heldBy: (userId: number) => number;
  /** Returns whether the user may have `bytes` more when that much is free. */
  readonly hasShare: (userId: number, bytes: number) => boolean;
  /**
   * Returns whether `bytes` are 0, or the user would hold little with them. It may then have memory
   * beyond the limit, and waits behind no others.
   */
  readonly isLittle: (userId: number, bytes: number) => boolean;
  /** Returns whether the user may have `bytes` more now. */
  readonly fits: (userId: number, bytes: number) => boolean;
  /** Gives the user `bytes` more, or takes them back where `bytes` is negative. */
  readonly count: (userId: number, bytes: number) => void;
  /** Adds a request that may lose its memory. Returns a function that removes it. */
  lend(lender: Lender): () => void;
  /** Gives the user `bytes` more, which others may lose for it. Returns whether it did. */
  take(userId: number, bytes: number): boolean;
}

/**
 * Time for which a request may wait for its client and keep memory that another user needs. A body
 * of 1 MB comes in 5 s at 1.6 Mbit/s.
 */
const defaultPatienceMs = 5000;

/**
 * Parts of the limit. Users who hold at most `each` share `beyond` in addition to the limit.
 * Otherwise two users could hold both halves by bodies that never arrive, in new requests every
 * four seconds. Every read of another user was then refused.
 */
const ofLittle = { each: 1 / 64, beyond: 1 / 8 };

/** Counts the memory. One user has at most half of it. */
export function createMemoryLedger(limitBytes: number, patienceMs: number = defaultPatienceMs): MemoryLedger {
  const limitOfUser = Math.floor(limitBytes / 2);
  const byUser = new Map<number, number>();
  /** In the order in which their waits began. */
  const lenders = new Set<Lender>();
  let reserved = 0;

  const heldBy = (userId: number): number => byUser.get(userId) ?? 0;
  const hasShare = (userId: number, bytes: number): boolean => heldBy(userId) + bytes <= limitOfUser;
  // A request that needs no more must end, whatever users with little hold beyond the limit.
  const isLittle = (userId: number, bytes: number): boolean =>
    bytes === 0 || heldBy(userId) + bytes <= limitBytes * ofLittle.each;
  function hasRoom(userId: number, bytes: number): boolean {
    const after = reserved + bytes;
    if (after <= limitBytes) return true;
    // Leaves as much free as the user then holds. Otherwise 72 users with a MB each had all, and
    // small requests of others got 503.
    const left = bytes === 0 ? 0 : heldBy(userId) + bytes;
    return isLittle(userId, bytes) && after + left <= limitBytes * (1 + ofLittle.beyond);
  }
  const fits = (userId: number, bytes: number): boolean => hasShare(userId, bytes) && hasRoom(userId, bytes);

  function count(userId: number, bytes: number): void {
    reserved += bytes;
    addCount(byUser, userId, bytes);
  }

  /**
   * Returns a request that may lose its memory: of the user who holds most, and more than `bytes`,
   * the one that has waited longest.
   *
   * @param lost Requests that would lose theirs before.
   */
  function findLender(bytes: number, lost: ReadonlySet<Lender>): Lender | undefined {
    let [found, most]: [Lender | undefined, number] = [undefined, bytes];
    const latest = performance.now() - patienceMs;
    for (const one of lenders) {
      if (one.sinceMs > latest) break;
      if (heldBy(one.userId) <= most || one.held() === 0 || lost.has(one)) continue;
      [found, most] = [one, heldBy(one.userId)];
    }
    return found;
  }

  return {
    limitOfUser,
    held: () => reserved,
    heldBy,
    hasShare,
    isLittle,
    fits,
    count,
    lend(lender) {
      lenders.add(lender);
      return () => void lenders.delete(lender);
    },
    take(userId, bytes) {
      const lost = new Set<Lender>();
      while (hasShare(userId, bytes) && !hasRoom(userId, bytes)) {
        const lender = findLender(heldBy(userId) + bytes, lost);
        if (lender === undefined) break;
        lost.add(lender);
        count(lender.userId, -lender.held());
      }
      const isFound = fits(userId, bytes);
      if (isFound) count(userId, bytes);
      for (const lender of lost) {
        if (isFound) {
          lenders.delete(lender);
          lender.onLost();
        }
        // No request loses its memory for a user who would still have too little.
        else count(lender.userId, lender.held());
      }
      return isFound;
    },
  };
}
