import type { Flight } from "../flights.ts";
import type { TakenDelivery } from "../taken.ts";

/** A delivery that this process has taken, with an active subscription. */
export interface DeliveryInFlight extends Omit<
  TakenDelivery,
  "subscription" | "bytes" | "waitedMs" | "ownerId" | "eventAgeMs"
> {
  readonly subscription: Omit<NonNullable<TakenDelivery["subscription"]>, "isActive">;
  /**
   * Time of the event on the clock of `performance.now()`. Computed from the event's age by the
   * database, whose time of day may differ from this machine's.
   */
  readonly happenedAtMs: number;
  /** Payload; undefined while it is only in the database. */
  readonly payload: PayloadBytes | undefined;
  readonly flight: Flight;
}

/** Payload of a delivery, as JSON. */
export interface PayloadBytes {
  readonly data: Uint8Array;
  /** The record before an update; undefined when no old row is kept. */
  readonly previous?: Uint8Array | undefined;
}
