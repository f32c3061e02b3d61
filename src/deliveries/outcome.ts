import type { AttemptResult, AttemptTrigger, DeliveryStatus } from "./delivery.ts";
import type { TakenDelivery } from "./taken.ts";

/** Result of an attempt, or of the decision not to make one. */
export interface Outcome {
  readonly id: string;
  /**
   * Part of the fence: after a crash of the database, another delivery may have the row id of a
   * lost one.
   */
  readonly uuid: string;
  readonly status: DeliveryStatus;
  /**
   * Number of attempts before this one. Part of the fence: nothing is written when another process
   * has made an attempt since.
   */
  readonly attemptsBefore: number;
  /** Time until the next attempt; undefined when there is no next attempt. */
  readonly delayMs?: number;
  readonly lastError?: string;
  /** Undefined when no POST was made. */
  readonly result?: AttemptResult;
  /** Cause of the attempt. Default: its schedule. */
  readonly trigger?: AttemptTrigger;
  /** URL of the POST. Default: the URL stored with the delivery. */
  readonly url?: string;
}

/** A delivery that goes back to the queue without an attempt. */
export interface RequeuedDelivery {
  readonly id: string;
  /**
   * Wait in the queue; undefined when the delivery waits for a slot, or for its subscription to be
   * active.
   */
  readonly delayMs: number | undefined;
  /**
   * UUID of the delivery when only other dispatchers have a share of its receiver: they get a
   * message.
   */
  readonly uuidForOthers?: string;
  /** Whether a person has requested the attempt. */
  readonly isHurried?: boolean;
}

/**
 * Delay of a manual retry that has found no slot. It is short, because a person waits for the
 * result.
 */
export const urgentMs = 1_000;

/**
 * Describes how a delivery goes back to the queue without an attempt. A manual retry stays a manual
 * retry and always has a due time: the breaker that parks other deliveries lets it pass.
 */
export function toRequeued(
  { id, trigger }: Pick<TakenDelivery, "id" | "trigger">,
  delayMs: number | undefined,
): RequeuedDelivery {
  return trigger === "manual" ? { id, delayMs: delayMs ?? urgentMs, isHurried: true } : { id, delayMs };
}
