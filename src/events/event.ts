import type { Trigger } from "../mapping/definition.ts";

/**
 * Operational events about webhooks and deliveries, of the resource `service` (docs/webhooks.md,
 * "Operational events").
 */
export const serviceEvents = ["webhook.failing", "webhook.disabled", "delivery.failed"] as const;

/** Name of the resource of operational events. */
export const serviceResource = "service";

/** Kind of an event: a trigger of a resource, or an operational event. */
export type EventKind = Trigger | (typeof serviceEvents)[number];

/** A record change, as published on the exchange `svc.events` (docs/webhooks.md, "RabbitMQ"). */
export interface EventEnvelope {
  /** UUID of the event, also the message id. */
  readonly event_id: string;
  readonly event: EventKind;
  readonly resource: string;
  readonly record_id: string;
  /**
   * User id of the record's owner at the time of the event; null when the resource has no owner, or
   * the column was null.
   */
  readonly owner_id: string | null;
  /** The record as the resource's transform returns it. */
  readonly data: unknown;
  /** UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
  /** The record before an update, of a resource with `previous: true`. */
  readonly previous?: unknown;
}
