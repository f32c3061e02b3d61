import type { Trigger } from "../mapping/definition.ts";

/** One record change, as published on the exchange `svc.events` (contract, section 6). */
export interface EventEnvelope {
  /** Event UUID, also the message id. */
  readonly event_id: string;
  readonly event: Trigger;
  readonly resource: string;
  readonly record_id: string;
  /** User id of the record's owner when the event happened; null when the resource has no owner or the column was null. */
  readonly owner_id: string | null;
  /** The record as the resource's transform gives it. */
  readonly data: unknown;
  /** UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
}
