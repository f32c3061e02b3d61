import type { Sql } from "../../db/sql.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import { findReplayed, rangeOf, type ReplayedSubscription } from "./find-replayed.ts";
import type { AskedReplay } from "./replay.ts";

export interface ReplayPlan {
  /** Ids of the event after which the replay begins, and of the last event that it reads. */
  readonly after: string;
  readonly untilId: string;
  readonly total: number;
  /**
   * Whether the total may be wrong: there were too many events to count, the webhook's filter may
   * leave some out, or some cannot be judged now.
   */
  readonly isEstimate: boolean;
  /** Ids of the first events. */
  readonly eventIds: readonly string[];
}

const mostCounted = 10_000;
const mostLookedAt = 50_000;
const portion = 2_000;
const mostShown = 10;

/**
 * Counts the events that a replay would deliver, and makes no deliveries. Counts only events that
 * the subscription's user may read. Otherwise the count and the ids would reveal the records of
 * others.
 *
 * @param sql SQL with a time limit for each statement.
 */
export async function planReplay(
  { sql, eligibility }: { readonly sql: Sql; readonly eligibility: Pick<Eligibility, "judge"> },
  subscription: ReplayedSubscription,
  asked: AskedReplay,
): Promise<ReplayPlan> {
  const range = await rangeOf(sql, asked);
  const { untilId } = range;
  const eventIds: string[] = [];
  let { after } = range;
  let [total, looks, isEnd, isUnjudged] = [0, 0, false, false];
  while (!isEnd && total < mostCounted && looks < mostLookedAt / portion) {
    const query = { asked, subscription, after, untilId, look: portion, take: portion };
    const found = await findReplayed(sql, query);
    const { user } = subscription;
    const verdicts = await eligibility.judge(found.events.map((event) => ({ event, user })));
    const readable = found.events.filter((_, index) => verdicts[index] === true);
    isUnjudged ||= verdicts.includes(undefined);
    eventIds.push(...readable.slice(0, mostShown - eventIds.length).map(({ id }) => id));
    total += readable.length;
    looks += 1;
    ({ last: after, isEnd } = found);
  }
  const [looked, whole] = [BigInt(after) - BigInt(range.after), BigInt(untilId) - BigInt(range.after)];
  return {
    ...range,
    // Extrapolates from the scanned ids to the whole range.
    total: isEnd || looked <= 0n ? total : Math.round((total * Number(whole)) / Number(looked)),
    isEstimate: !isEnd || subscription.filter !== null || isUnjudged,
    eventIds,
  };
}
