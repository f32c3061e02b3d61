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
   * Attempts made before. The fence: nothing is written when another process has made an attempt
   * since.
   */
  readonly attemptsBefore: number;
  /** Time until the next attempt; undefined when there is none. */
  readonly delayMs?: number;
  readonly lastError?: string;
  /** Undefined when no POST was made. */
  readonly result?: AttemptResult;
  /** What made the attempt; default: its schedule. */
  readonly trigger?: AttemptTrigger;
  /** Where it went. Default: where the delivery was to go. */
  readonly url?: string;
}

/** A delivery that goes back to the queue without an attempt. */
export interface RequeuedDelivery {
  readonly id: string;
  /** Undefined: the delivery waits for a slot, or for its subscription to be active. */
  readonly delayMs: number | undefined;
  /** Its UUID, where only other dispatchers have a share of its receiver: they get a message. */
  readonly uuidForOthers?: string;
  /** Whether a person has asked for the attempt. */
  readonly isHurried?: boolean;
}

/** Until the next try of a manual retry that has found no slot: a person waits for it. */
export const urgentMs = 1_000;

/**
 * Describes how a delivery goes back to the queue without an attempt. A manual retry stays one, and
 * never waits for a slot there: the breaker that parks the others lets it pass.
 */
export function toRequeued(
  { id, trigger }: Pick<TakenDelivery, "id" | "trigger">,
  delayMs: number | undefined,
): RequeuedDelivery {
  return trigger === "manual" ? { id, delayMs: delayMs ?? urgentMs, isHurried: true } : { id, delayMs };
}

/** The fence: only deliveries that the flight still has are put back. */
export interface RequeuedFromFlight extends RequeuedDelivery {
  readonly flightId: string;
}
