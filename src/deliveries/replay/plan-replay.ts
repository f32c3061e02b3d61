import type { Sql } from "../../db/sql.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import { findReplayed, rangeOf, filterReadable, type ReplayedSubscription } from "./find-replayed.ts";
import type { AskedReplay } from "./replay.ts";

/** What a replay would do. */
export interface ReplayPlan {
  /** Ids of the event after which it begins, and of the last one that it reads. */
  readonly after: string;
  readonly untilId: string;
  readonly total: number;
  /** Whether there were too many events to count, or the webhook's filter leaves some out. */
  readonly isEstimate: boolean;
  /** Ids of the first events. */
  readonly eventIds: readonly string[];
}

const mostCounted = 10_000;
const mostLookedAt = 50_000;
const portion = 2_000;
const mostShown = 10;

/**
 * Counts what a replay would deliver, and makes nothing. Counts only what the subscription's user
 * may read: the count and the ids would otherwise reveal the records of others.
 *
 * @param sql With a limit of time for each statement.
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
  let [total, looks, isEnd] = [0, 0, false];
  while (!isEnd && total < mostCounted && looks < mostLookedAt / portion) {
    const query = { asked, subscription, after, untilId, look: portion, take: portion };
    const found = await findReplayed(sql, query);
    const readable = await filterReadable(eligibility, subscription, found.events);
    eventIds.push(...readable.slice(0, mostShown - eventIds.length).map(({ id }) => id));
    total += readable.length;
    looks += 1;
    ({ last: after, isEnd } = found);
  }
  return {
    ...range,
    total: isEnd ? total : estimateOf(total, { ...range, lookedTo: after }),
    isEstimate: !isEnd || subscription.filter !== null,
    eventIds,
  };
}

/** Extrapolates from the ids that were read to the rest. */
function estimateOf(
  total: number,
  {
    after,
    untilId,
    lookedTo,
  }: { readonly after: string; readonly untilId: string; readonly lookedTo: string },
): number {
  const [from, to, at] = [after, untilId, lookedTo].map(Number) as [number, number, number];
  return at <= from ? total : Math.round((total * (to - from)) / (at - from));
}
