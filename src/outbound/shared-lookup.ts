import type { LookupAddress } from "node:dns";
import { performance } from "node:perf_hooks";
import { setBounded } from "../kit/bounded-map.ts";
import { createTurns, type Turns } from "../kit/turns.ts";
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

interface State {
  readonly resolve: ResolveName;
  readonly patienceMs: number;
  readonly maxNames: number;
  readonly now: () => number;
  /** Answers by name. The most recently used name is at the end. */
  readonly kept: Map<string, Known>;
  readonly underway: Map<string, Answer[]>;
  /** Turns of the users to look up names. */
  readonly turns: Turns;
}

/**
 * Creates a look-up of names in which no user can delay another. A name has one look-up at a time,
 * however many requests wait for it. Answers are kept for their TTL, between 1 s and 60 s, failures
 * for 2 s. Each user has few look-ups at a time, so that dead name servers only delay that user.
 * There are never more look-ups than attempts.
 *
 * @param perUser Most look-ups of a user at a time.
 * @param patienceMs A look-up that waits longer for its turn fails with a `NoTurnError`. A look-up
 *   takes milliseconds. One that waits is delayed by dead servers, and holds an attempt's slot.
 * @param maxNames Most answers that are kept. The least recently used are dropped first.
 * @param now Monotonic clock, in ms.
 */
export function createSharedLookup({
  resolve = createNameResolver(),
  perUser = 8,
  patienceMs = 2_000,
  maxNames = 10_000,
  now = () => performance.now(),
}: Partial<Omit<State, "kept" | "underway" | "turns">> & { readonly perUser?: number } = {}): AddressLookup {
  const state: State = {
    resolve,
    patienceMs,
    maxNames,
    now,
    kept: new Map(),
    underway: new Map(),
    turns: createTurns(perUser),
  };
  return (name, asker, answer) => lookUp(state, name, asker, answer);
}

function lookUp(state: State, name: string, asker: Asker, answer: Answer): void {
  const { turns } = state;
  if (isAnswered(state, name, answer)) return;
  if (!turns.isFree(asker.userId)) return void waitForTurn(state, name, asker, answer);
  void turns.take(asker.userId);
  void begin(state, name, asker.userId, answer);
}

/**
 * Answers from known results, or from a look-up that is under way. Returns whether there is either.
 */
function isAnswered(state: State, name: string, answer: Answer): boolean {
  const known = knownOf(state, name);
  const others = state.underway.get(name);
  if (known !== undefined) process.nextTick(answer, known.error, known.addresses);
  else others?.push(answer);
  return known !== undefined || others !== undefined;
}

function knownOf({ kept, now }: State, name: string): Known | undefined {
  const known = kept.get(name);
  if (known === undefined) return undefined;
  kept.delete(name);
  if (known.untilMs <= now()) return undefined;
  kept.set(name, known);
  return known;
}

async function waitForTurn(state: State, name: string, asker: Asker, answer: Answer): Promise<void> {
  const { turns, patienceMs } = state;
  asker.isWaiting = true;
  const hasTurn = await turns.takeWithin(asker.userId, patienceMs);
  asker.isWaiting = false;
  if (!hasTurn) answer(new NoTurnError("look-up"), []);
  // Another request may have begun to look up the same name by now.
  else if (asker.isGone || isAnswered(state, name, answer)) turns.leave(asker.userId);
  else await begin(state, name, asker.userId, answer);
}

async function begin(state: State, name: string, userId: number, answer: Answer): Promise<void> {
  const { resolve, now, underway, turns } = state;
  underway.set(name, [answer]);
  try {
    const { addresses, ttlMs } = await resolve(name);
    const keptMs = Math.min(Math.max(ttlMs, shortestMs), longestMs);
    settle(state, name, { error: null, addresses, untilMs: now() + keptMs });
  } catch (error) {
    settle(state, name, { error: error as Error, addresses: [], untilMs: now() + failureMs });
  }
  turns.leave(userId);
}

function settle({ kept, underway, maxNames }: State, name: string, known: Known): void {
  setBounded(kept, [name, known], maxNames);
  const answers = underway.get(name) ?? [];
  underway.delete(name);
  for (const answer of answers) answer(known.error, known.addresses);
}
