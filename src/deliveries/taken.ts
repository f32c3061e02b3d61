import type { EventKind } from "../events/event.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import type { SealedSigning } from "../subscriptions/signing.ts";
import type { AttemptTrigger } from "./delivery.ts";

/** A delivery that this process has taken out of the queue. */
export interface TakenDelivery {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly event: EventKind;
  readonly resource: string;
  /** Time of the event: UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
  /** Attempts made so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /**
   * Whether a user's choice causes the delay: a manual retry, a replay, a held delivery, or a rate
   * limit.
   */
  readonly isPaced: boolean;
  /** Cause of the next attempt. */
  readonly trigger: AttemptTrigger;
  /** Time since the delivery was created or last attempted. */
  readonly waitedMs: number;
  readonly ownerId: string | null;
  /** Age of the event by the database's clock. */
  readonly eventAgeMs: number;
  /** W3C `traceparent` of the operation that created the delivery; null when it was not traced. */
  readonly traceparent: string | null;
  /** Size of the payload's JSON. */
  readonly bytes: number;
  /** Whether the delivery's body shows the old row of the update. */
  readonly hasPrevious: boolean;
  readonly subscriptionId: number;
  /**
   * The subscription as it is now, so that a corrected URL applies to retries; null when it was
   * deleted.
   */
  readonly subscription: {
    readonly url: string;
    readonly signing: SealedSigning;
    /** Attempts a second; null for no limit. */
    readonly rateLimit: number | null;
    /** False also when the subscription's user is disabled. */
    readonly isActive: boolean;
    readonly user: Caller;
  } | null;
}

/** Deliveries that this process took in one statement; see `svc.flights`. */
export interface TakenDeliveries {
  /** Undefined when nothing was taken. */
  readonly flightId: string | undefined;
  /** Time before the statement, by `performance.now()`. */
  readonly beganAtMs: number;
  readonly deliveries: readonly TakenDelivery[];
  /** Number of rows removed from the queue, which includes those of finished deliveries. */
  readonly removed: number;
}

/** A result row of a statement that takes deliveries. */
export interface TakenRow
  extends Omit<TakenDelivery, "subscription">, SealedSigning, Omit<Caller, "id" | "claims"> {
  readonly removed: number;
  /** Null, like all later columns, when nothing was taken: the row then only carries `removed`. */
  readonly flightId: string | null;
  readonly url: string | null;
  readonly rateLimit: number | null;
  readonly isActive: boolean;
  readonly userId: number;
}

/** Converts the rows of a statement to the deliveries that it has taken. */
export function toTaken(rows: readonly TakenRow[], beganAtMs: number): TakenDeliveries {
  const taken = rows.filter(({ flightId }) => flightId !== null);
  const deliveries = taken.map((row) => {
    const {
      flightId: _,
      removed: __,
      url,
      encryptedSecret,
      encryptedPrevious,
      encryptedHeaders,
      rateLimit,
      isActive,
      userId,
      name,
      email,
      isAdmin,
      ...delivery
    } = row;
    const user = { id: userId, name, email, isAdmin, claims: noClaims };
    const signing = { encryptedSecret, encryptedPrevious, encryptedHeaders };
    return { ...delivery, subscription: url === null ? null : { url, signing, rateLimit, isActive, user } };
  });
  const flightId = taken[0]?.flightId ?? undefined;
  return { flightId, beganAtMs, deliveries, removed: rows[0]?.removed ?? 0 };
}
