import type { LookupAddress } from "node:dns";
import { performance } from "node:perf_hooks";
import { setBounded } from "../kit/bounded-map.ts";
import { NoTurnError } from "./outbound-errors.ts";
import { createNameResolver, type ResolveName } from "./resolve-name.ts";

/** A request that needs an address. */
export interface Asker {
  /** User who owns the webhook. */
  readonly userId: number;
  /** Set by the look-up while it has not begun, because the user's other look-ups go first. */
  isWaiting: boolean;
  /**
   * Set by the asker when the answer is no longer needed. A look-up that has not begun then does
   * not begin.
   */
  isGone: boolean;
  /** Set by the connection for this request: times of `performance.now()`. */
  connection?: ConnectionTimes;
}

/** Times when the phases of a new connection ended; undefined before. */
export interface ConnectionTimes {
  readonly beganAt: number;
  lookedUpAt?: number;
  connectedAt?: number;
  securedAt?: number;
}

type Answer = (error: Error | null, addresses: readonly LookupAddress[]) => void;
/** Looks up a name. Calls back later, never synchronously. */
export type AddressLookup = (name: string, asker: Asker, answer: Answer) => void;

const shortestMs = 1_000;
const longestMs = 60_000;
/**
 * How long a failure is kept: long enough for a burst, short enough that a repaired name is soon
 * found.
 */
const failureMs = 2_000;

interface Known {
  readonly error: Error | null;
  readonly addresses: readonly LookupAddress[];
  readonly untilMs: number;
}

interface User {
  underway: number;
  /** In the order of arrival; each function begins a look-up. */
  readonly waiting: Set<() => void>;
}

interface State {
  readonly resolve: ResolveName;
  readonly perUser: number;
  readonly patienceMs: number;
  readonly maxNames: number;
  readonly now: () => number;
  /** Answers by name. The most recently used name is at the end. */
  readonly kept: Map<string, Known>;
  readonly underway: Map<string, Answer[]>;
  readonly users: Map<number, User>;
}

/**
 * Creates a look-up of names in which no user can delay another. A name has one look-up at a time,
 * however many requests wait for it. Answers are kept for their TTL, between 1 s and 60 s, failures
 * for 2 s. Each user has few look-ups at a time, so that dead name servers only delay that user.
 * There are never more look-ups than attempts.
 *
 * @param perUser Most look-ups of a user at a time.
 * @param patienceMs A look-up that waits longer for its turn fails with a `NoTurnError`. Look-ups
 *   take milliseconds: one that waits is behind dead servers, and holds an attempt's slot.
 * @param maxNames Most answers that are kept. The least recently used are dropped first.
 * @param now Monotonic clock, in ms.
 */
export function createSharedLookup({
  resolve = createNameResolver(),
  perUser = 8,
  patienceMs = 2_000,
  maxNames = 10_000,
  now = () => performance.now(),
}: Partial<Omit<State, "kept" | "underway" | "users">> = {}): AddressLookup {
  const state: State = {
    resolve,
    perUser,
    patienceMs,
    maxNames,
    now,
    kept: new Map(),
    underway: new Map(),
    users: new Map(),
  };
  return (name, asker, answer) => lookUp(state, name, asker, answer);
}

function lookUp(state: State, name: string, asker: Asker, answer: Answer): void {
  const { underway, users, perUser } = state;
  const known = knownOf(state, name);
  const others = underway.get(name);
  if (known !== undefined) process.nextTick(answer, known.error, known.addresses);
  else if (others !== undefined) others.push(answer);
  else {
    const user = users.get(asker.userId) ?? { underway: 0, waiting: new Set() };
    users.set(asker.userId, user);
    if (user.underway >= perUser) return waitForTurn({ state, name, asker, answer, user });
    underway.set(name, [answer]);
    void begin(state, name, asker.userId, user);
  }
}

function knownOf({ kept, now }: State, name: string): Known | undefined {
  const known = kept.get(name);
  if (known === undefined) return undefined;
  kept.delete(name);
  if (known.untilMs <= now()) return undefined;
  kept.set(name, known);
  return known;
}

function waitForTurn({
  state,
  name,
  asker,
  answer,
  user,
}: {
  readonly state: State;
  readonly name: string;
  readonly asker: Asker;
  readonly answer: Answer;
  readonly user: User;
}): void {
  const leave = (): void => {
    clearTimeout(timer);
    user.waiting.delete(enter);
    asker.isWaiting = false;
  };
  const enter = (): void => {
    leave();
    // Another request may have begun to look up the same name by now.
    if (!asker.isGone) lookUp(state, name, asker, answer);
  };
  const timer = setTimeout(() => {
    leave();
    answer(new NoTurnError(), []);
  }, state.patienceMs);
  asker.isWaiting = true;
  user.waiting.add(enter);
}

async function begin(state: State, name: string, userId: number, user: User): Promise<void> {
  const { resolve, now, perUser, users } = state;
  user.underway += 1;
  try {
    const { addresses, ttlMs } = await resolve(name);
    const keptMs = Math.min(Math.max(ttlMs, shortestMs), longestMs);
    settle(state, name, { error: null, addresses, untilMs: now() + keptMs });
  } catch (error) {
    settle(state, name, { error: error as Error, addresses: [], untilMs: now() + failureMs });
  }
  user.underway -= 1;
  for (const enter of user.waiting) if (user.underway < perUser) enter();
  if (user.underway === 0) users.delete(userId);
}

function settle({ kept, underway, maxNames }: State, name: string, known: Known): void {
  setBounded(kept, [name, known], maxNames);
  const answers = underway.get(name) ?? [];
  underway.delete(name);
  for (const answer of answers) answer(known.error, known.addresses);
}
