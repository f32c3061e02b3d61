import type { EventKind } from "../../events/event.ts";
import { formatDateTime } from "../../kit/date-time.ts";

/**
 * Result of an event for a subscription: the status of its newest delivery, or `never` without one.
 */
export const replayedStatuses = ["failed", "delivered", "cancelled", "never"] as const;
type ReplayedStatus = (typeof replayedStatuses)[number];

export const replayStates = ["running", "paused", "done", "cancelled"] as const;
export type ReplayState = (typeof replayStates)[number];

/** Actions of an owner on a replay, with the state after each. */
export const replayMoves = { pause: "paused", resume: "running", cancel: "cancelled" } as const;

/** Conditions of a replay. Times are those of the events. */
export interface AskedReplay {
  /** ISO 8601. */
  readonly since: string;
  /** ISO 8601, exclusive. */
  readonly until: string;
  readonly status: readonly ReplayedStatus[];
  /** Events to replay; null for those of the subscription. */
  readonly events: readonly EventKind[] | null;
  /** Resource to replay; null for that of the subscription. */
  readonly resource: string | null;
}

/** A reason why a replay waits. Its message is for the owner of the webhook. */
export class ReplayDelay extends Error {}

/** A job that makes deliveries again. */
export interface Replay {
  /** Id, as a decimal string, like the ids below. */
  readonly id: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly asked: AskedReplay;
  readonly state: ReplayState;
  /** Reason why the service has cancelled the replay, or why it waits; otherwise null. */
  readonly reason: string | null;
  /** Id of the last event that was scanned. */
  readonly cursor: string;
  /** Id of the last event to scan. */
  readonly untilId: string;
  readonly total: number;
  readonly isEstimate: boolean;
  /** Number of handled events. All but the failed ones have deliveries. */
  readonly done: number;
  /** Number of events for which no delivery could be made. */
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
