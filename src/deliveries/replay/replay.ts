import type { EventKind } from "../../events/event.ts";
import { formatDateTime } from "../../kit/date-time.ts";

/**
 * How an event ended for a subscription: the status of its newest delivery, or `never` without one.
 */
export const replayedStatuses = ["failed", "delivered", "cancelled", "never"] as const;
type ReplayedStatus = (typeof replayedStatuses)[number];

export const replayStates = ["running", "paused", "done", "cancelled"] as const;
export type ReplayState = (typeof replayStates)[number];

/** The actions of its owner on a replay, and the state after each. */
export const replayMoves = { pause: "paused", resume: "running", cancel: "cancelled" } as const;

/** What a replay asks for. Times are of the events. */
export interface AskedReplay {
  /** ISO 8601. */
  readonly since: string;
  /** ISO 8601; it is no longer within the time. */
  readonly until: string;
  readonly status: readonly ReplayedStatus[];
  /** Null: those of the subscription. */
  readonly events: readonly EventKind[] | null;
  /** Null: that of the subscription. */
  readonly resource: string | null;
}

/** A job that makes deliveries again. */
export interface Replay {
  /** Decimal, like the ids below. */
  readonly id: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly asked: AskedReplay;
  readonly state: ReplayState;
  /** Why the service has cancelled it; else null. */
  readonly reason: string | null;
  /** Id of the last event that was looked at. */
  readonly cursor: string;
  /** Id of the last event to look at. */
  readonly untilId: string;
  readonly total: number;
  readonly isEstimate: boolean;
  /** Events handled; deliveries were made of all but the failed. */
  readonly done: number;
  /** Events of which no delivery could be made. */
  readonly failed: number;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Returns a replay as the API and `--json` show it. */
export function presentReplay(replay: Replay): Readonly<Record<string, unknown>> {
  const { id, subscriptionId, asked, state, reason, total, isEstimate, done, failed } = replay;
  return {
    id: Number(id),
    webhook_id: subscriptionId,
    ...asked,
    since: formatDateTime(new Date(asked.since)),
    until: formatDateTime(new Date(asked.until)),
    state,
    reason,
    done,
    total,
    is_estimate: isEstimate,
    failed,
    created_at: formatDateTime(replay.createdAt),
    updated_at: formatDateTime(replay.updatedAt),
  };
}
