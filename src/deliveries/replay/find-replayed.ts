import type { EventKind } from "../../events/event.ts";
import { noClaims, type Caller } from "../../kit/caller.ts";
import type { Sql } from "../../db/sql.ts";
import type { Eligibility } from "../../subscriptions/eligibility.ts";
import type { SnapshotColumn } from "../../subscriptions/snapshot-row-sql.ts";
import { findFirstSince, slackMs } from "../first-since.ts";
import type { AskedReplay } from "./replay.ts";

/** The parts of a subscription that its replay needs. */
export interface ReplayedSubscription {
  readonly id: number;
  readonly resource: string;
  readonly events: readonly EventKind[];
  /** Filter as JSON; null when the subscription gets every event. */
  readonly filter: string | null;
  /** False also when the subscription's user is disabled. */
  readonly isActive: boolean;
  /** Owner of the subscription. */
  readonly user: Caller;
}

/** An event to be delivered again. */
export interface ReplayedEvent {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly resource: string;
  readonly owner_id: string | null;
  /** Id of the event's newest delivery to the subscription; null without one. */
  readonly parentId: string | null;
}

interface FoundEvents {
  readonly events: readonly ReplayedEvent[];
  /** Id of the last event that was scanned. */
  readonly last: string;
  readonly isEnd: boolean;
}

const subscriptionText = `
  SELECT subscription.id, subscription.resource, subscription.events, subscription.filter::text AS filter,
    subscription.is_active AND subscriber.disabled_at IS NULL AS "isActive",
    subscriber.id AS "userId", subscriber.name, subscriber.email, subscriber.is_admin AS "isAdmin"
  FROM svc.subscriptions AS subscription JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE subscription.id = $1`;

/** Returns a subscription of any user; undefined when there is none. */
export async function findReplayedSubscription(
  sql: Sql,
  id: number,
): Promise<ReplayedSubscription | undefined> {
  type Row = Omit<ReplayedSubscription, "user"> & Omit<Caller, "id" | "claims"> & { readonly userId: number };
  const [row] = await sql<Row>(subscriptionText, [id]);
  if (row === undefined) return undefined;
  const { userId, name, email, isAdmin, ...subscription } = row;
  return { ...subscription, user: { id: userId, name, email, isAdmin, claims: noClaims } };
}

/**
 * Returns the range of ids that contains the events of a time span: after `after`, up to `untilId`.
 */
export async function rangeOf(
  sql: Sql,
  { since, until }: Pick<AskedReplay, "since" | "until">,
): Promise<{ readonly after: string; readonly untilId: string }> {
  const idBefore = async (time: number): Promise<string> =>
    String((await findFirstSince(sql, "events", new Date(time))) - 1n);
  return {
    after: await idBefore(Date.parse(since) - slackMs),
    untilId: await idBefore(Date.parse(until) + slackMs),
  };
}

// The limit bounds the scanned events, because few of them may match. OFFSET 0 makes PostgreSQL
// read the deliveries of each event by its index. Events in the outbox are left out, because they
// are still being delivered.
const lookText = `
  WITH looked AS MATERIALIZED (
    SELECT id, resource, trigger, owner_id, occurred_at FROM svc.events WHERE id > $1 AND id <= $2 ORDER BY id LIMIT $3
  ), asked AS MATERIALIZED (
    SELECT looked.id, looked.resource, looked.owner_id, newest.id AS parent_id
    FROM looked LEFT JOIN LATERAL (
      SELECT id, status FROM (SELECT id, status FROM svc.deliveries WHERE event_id = looked.id AND subscription_id = $4 OFFSET 0) AS own
      ORDER BY id DESC LIMIT 1) AS newest ON true
    WHERE looked.occurred_at >= $5::timestamptz AND looked.occurred_at < $6::timestamptz
      AND $7 IN ('*', looked.resource)
      AND looked.resource = coalesce($8, looked.resource) AND looked.trigger = ANY($9::text[])
      AND coalesce(newest.status, 'never') = ANY($10::text[])
      AND (newest.id IS NOT NULL OR NOT EXISTS (SELECT FROM svc.outbox WHERE event_id = looked.id))
    ORDER BY looked.id LIMIT $11
  )
  SELECT id, resource, owner_id, parent_id AS "parentId", NULL::text AS last, NULL::int AS looked FROM asked
  UNION ALL
  SELECT NULL, NULL, NULL, NULL, (SELECT max(id)::text FROM looked), (SELECT count(*)::int FROM looked)
  ORDER BY id`;

/** Scans the next events for those that a replay requests, in the order of ids. */
export async function findReplayed(
  sql: Sql,
  {
    asked,
    subscription,
    after,
    untilId,
    look,
    take,
  }: {
    readonly asked: AskedReplay;
    readonly subscription: ReplayedSubscription;
    readonly after: string;
    readonly untilId: string;
    /** Most events that are scanned. */
    readonly look: number;
    /** Most events that are found. */
    readonly take: number;
  },
): Promise<FoundEvents> {
  const triggers = subscription.events.filter((one) => asked.events?.includes(one) ?? true);
  const { id, resource } = subscription;
  const time = [asked.since, asked.until];
  const which = [resource, asked.resource, triggers, asked.status];
  const rows = await sql<ReplayedEvent & { last: string | null; looked: number }>(lookText, [
    after,
    untilId,
    look,
    id,
    ...time,
    ...which,
    take,
  ]);
  // The last row only shows how far the scan went.
  const events = rows.slice(0, -1);
  const end = rows.at(-1);
  if (events.length === take) return { events, last: events.at(-1)?.id ?? after, isEnd: false };
  const isEnd = (end?.looked ?? 0) < look;
  return { events, last: isEnd ? untilId : (end?.last ?? untilId), isEnd };
}

/**
 * Returns for each event whether the subscription's user may read it. Ends before the first event
 * that cannot be judged now. Its delivery would tell the user of another user's record.
 *
 * @param which With `previous`, judges the old rows.
 */
export async function judgeInOrder(
  eligibility: Pick<Eligibility, "judge">,
  { user }: Pick<ReplayedSubscription, "user">,
  events: readonly ReplayedEvent[],
  which?: SnapshotColumn,
): Promise<readonly boolean[]> {
  const verdicts = await eligibility.judge(
    events.map((event) => ({ event, user })),
    which,
  );
  const judged: boolean[] = [];
  for (const verdict of verdicts) {
    if (verdict === undefined) break;
    judged.push(verdict);
  }
  return judged;
}
