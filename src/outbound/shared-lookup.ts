import type { LookupAddress } from "node:dns";
import { performance } from "node:perf_hooks";
import { createNameResolver, type ResolveName } from "./resolve-name.ts";

/** Who wants to know an address: one for each request, since the answer may come when nobody needs it any more. */
export interface Asker {
  /** Whose webhook it is. */
  readonly userId: number;
  /** Written by the look-up: it has not begun, since others of the same user go first. */
  isWaiting: boolean;
  /** Written by the asker: nobody waits for the answer. What has not begun then does not begin. */
  isGone: boolean;
}

type Answer = (error: Error | null, addresses: readonly LookupAddress[]) => void;
/** Answers later, and never at once. */
export type Lookup = (name: string, asker: Asker, answer: Answer) => void;

/** The look-up never began: the user's other look-ups took too long. */
export class NoTurnError extends Error {
  constructor() {
    super("Other names of the same user were being looked up for too long.");
    this.name = "NoTurnError";
  }
}

const shortestMs = 1_000;
const longestMs = 60_000;
/** Long enough for the names of a burst, short enough that a repaired name is soon found. */
const failureMs = 2_000;

interface Known {
  readonly error: Error | null;
  readonly addresses: readonly LookupAddress[];
  readonly untilMs: number;
}

interface User {
  underway: number;
  /** In the order in which they came; each begins its look-up. */
  readonly waiting: Set<() => void>;
}

/**
 * Look-ups that cannot spend the time of others: a name is asked for once, however many want to know it; answers are kept for their
 * TTL, between 1 s and 60 s, failures for 2 s; and each user has a few under way at most, so that a user whose names are on dead
 * servers waits for them alone. In all there are no more of them than attempts.
 *
 * @param perUser Most look-ups of a user under way.
 * @param patienceMs What waits longer for its turn ends in a `NoTurnError`: a look-up usually takes milliseconds, so this one waits
 *   behind dead servers, and keeps an attempt's place meanwhile.
 * @param maxNames Most answers kept; the ones used last stay.
 */
export function createSharedLookup({
  resolve = createNameResolver(),
  perUser = 8,
  patienceMs = 2_000,
  maxNames = 10_000,
  now = () => performance.now(),
}: {
  readonly resolve?: ResolveName;
  readonly perUser?: number;
  readonly patienceMs?: number;
  readonly maxNames?: number;
  /** In ms, never going back. */
  readonly now?: () => number;
} = {}): Lookup {
  /** The one used last at the end. */
  const kept = new Map<string, Known>();
  const underway = new Map<string, Answer[]>();
  const users = new Map<number, User>();

  function knownOf(name: string): Known | undefined {
    const known = kept.get(name);
    if (known === undefined) return undefined;
    kept.delete(name);
    if (known.untilMs <= now()) return undefined;
    kept.set(name, known);
    return known;
  }

  function keep(name: string, known: Known): void {
    kept.set(name, known);
    const [oldest] = kept.keys();
    if (oldest !== undefined && kept.size > maxNames) kept.delete(oldest);
    const answers = underway.get(name) ?? [];
    underway.delete(name);
    for (const answer of answers) answer(known.error, known.addresses);
  }

  async function begin(name: string, userId: number, user: User): Promise<void> {
    user.underway += 1;
    try {
      const { addresses, ttlMs } = await resolve(name);
      keep(name, {
        error: null,
        addresses,
        untilMs: now() + Math.min(Math.max(ttlMs, shortestMs), longestMs),
      });
    } catch (error) {
      keep(name, { error: error as Error, addresses: [], untilMs: now() + failureMs });
    }
    user.underway -= 1;
    for (const enter of user.waiting) if (user.underway < perUser) enter();
    if (user.underway === 0) users.delete(userId);
  }

  function waitForTurn(name: string, asker: Asker, answer: Answer, user: User): void {
    const leave = (): void => {
      clearTimeout(timer);
      user.waiting.delete(enter);
      asker.isWaiting = false;
    };
    const enter = (): void => {
      leave();
      // By now somebody else may have asked for the same name.
      if (!asker.isGone) lookup(name, asker, answer);
    };
    const timer = setTimeout(() => {
      leave();
      answer(new NoTurnError(), []);
    }, patienceMs);
    asker.isWaiting = true;
    user.waiting.add(enter);
  }

  function lookup(name: string, asker: Asker, answer: Answer): void {
    const known = knownOf(name);
    const others = underway.get(name);
    if (known !== undefined) process.nextTick(answer, known.error, known.addresses);
    else if (others !== undefined) others.push(answer);
    else {
      const user = users.get(asker.userId) ?? { underway: 0, waiting: new Set() };
      users.set(asker.userId, user);
      if (user.underway >= perUser) return waitForTurn(name, asker, answer, user);
      underway.set(name, [answer]);
      void begin(name, asker.userId, user);
    }
  }

  return lookup;
}
