import { isTimeLimitOver } from "../db/database-fault.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { groupBy } from "../kit/group-by.ts";
import { pairKey, type JudgedPair } from "./snapshot-judge.ts";

/** Limit of a statement that judges several pairs, which takes a few ms as a rule. */
export const judgeLimitMs = 2_000;
/** After this time, one pair of each further slow user is judged, so that every call gets on. */
const apartMs = 2 * judgeLimitMs;
/** A shorter statement doubles the pairs of the user's next one. */
const quickMs = judgeLimitMs / 4;
/** Divides the pairs of a user for whom a statement took too long. */
const divisor = 32;
/** A user of so many pairs in a statement is not slow any more. */
const mostPairs = 1_000;
const mostUsers = 10_000;

/**
 * Most pairs of one statement, by resource and user. Contains the users for whom more took too
 * long: a filter may look up a million rows for a record.
 */
export type SlowReaders = Map<string, number>;

/** Judges pairs in one statement. Returns the keys of those that pass. */
type Ask = (pairs: readonly JudgedPair[]) => Promise<ReadonlySet<string>>;

/**
 * Judges pairs of one resource. Slow users are judged apart, and only the first of their pairs.
 * Otherwise one user could delay the judgement of all others.
 *
 * @returns The verdicts by key, without those that are left for later.
 * @throws The error of a single pair that takes too long: its tables may be at fault.
 */
export async function judgeInTime(
  { ask, resource, slow }: { readonly ask: Ask; readonly resource: string; readonly slow: SlowReaders },
  pairs: readonly JudgedPair[],
): Promise<ReadonlyMap<string, boolean>> {
  const verdicts = new Map<string, boolean>();
  /** Returns false when the statement takes too long. */
  const isJudged = async (some: readonly JudgedPair[]): Promise<boolean> => {
    try {
      const passed = await ask(some);
      for (const { event, user } of some) {
        const key = pairKey(event.id, user.id);
        verdicts.set(key, passed.has(key));
      }
      return true;
    } catch (error) {
      if (some.length === 1 || !isTimeLimitOver(error)) throw error;
      return false;
    }
  };
  const different = new Map(pairs.map((pair) => [pairKey(pair.event.id, pair.user.id), pair]));
  const ofUsers = new Map(groupBy([...different.values()], ({ user }) => `${resource} ${user.id}`));
  const quick = [...ofUsers].filter(([name]) => !slow.has(name));
  const together = quick.flatMap(([, own]) => own);
  if (together.length > 0 && (await isJudged(together))) for (const [name] of quick) ofUsers.delete(name);
  const beganAt = performance.now();
  for (const [name, own] of ofUsers) {
    // The statement of all was that of this user.
    if (!slow.has(name) && quick.length === 1)
      setBounded(slow, [name, Math.ceil(own.length / divisor)], mostUsers);
    const isLate = performance.now() - beganAt > apartMs;
    let most = isLate ? 1 : (slow.get(name) ?? own.length);
    let askedAt = performance.now();
    while (!(await isJudged(own.slice(0, most)))) {
      most = Math.ceil(Math.min(most, own.length) / divisor);
      setBounded(slow, [name, most], mostUsers);
      askedAt = performance.now();
    }
    if (isLate || !slow.has(name) || performance.now() - askedAt > quickMs) continue;
    if (2 * most < mostPairs) setBounded(slow, [name, 2 * most], mostUsers);
    else slow.delete(name);
  }
  return verdicts;
}
