import { byKey, type Sql } from "../db/sql.ts";
import type { EventKind } from "../events/event.ts";
import type { DeliveryStatus } from "./delivery.ts";
import { timestampOfEvent } from "./store-texts.ts";

/** A delivery as people and their programs see it. */
export interface DeliveryRow {
  /** Row ids are decimal strings. */
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly parentDeliveryId: string | null;
  readonly rootDeliveryId: string;
  readonly triggerKind: "automatic" | "manual";
  readonly resource: string;
  /** Whether the delivery's body shows the old row of the update. */
  readonly hasPrevious: boolean;
  /** Trigger, record and time of the event; the time is UTC with microseconds. */
  readonly event: EventKind;
  readonly recordId: string;
  readonly occurredAt: string;
  /** Owner of the event's record; null without one. */
  readonly ownerId: string | null;
  readonly status: DeliveryStatus;
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly url: string;
  readonly lastError: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** Null when the delivery is finished, in flight, or waits for a slot or its subscription. */
  readonly nextAttemptAt: Date | null;
}

/**
 * Selects `DeliveryRow`s, from the tables `delivery` and `event`. OFFSET 0 makes PostgreSQL look up
 * one event by its key for each delivery, whatever the planner expects.
 */
export const selectDeliveries = `SELECT delivery.id, delivery.uuid, delivery.event_id AS "eventId", delivery.event_uuid AS "eventUuid",
    delivery.subscription_id AS "subscriptionId", delivery.user_id AS "userId", delivery.parent_delivery_id AS "parentDeliveryId",
    delivery.root_delivery_id AS "rootDeliveryId", delivery.trigger_kind AS "triggerKind", delivery.status, delivery.attempt,
    delivery.max_attempts AS "maxAttempts", delivery.url, delivery.last_error AS "lastError",
    delivery.created_at AS "createdAt", delivery.updated_at AS "updatedAt", delivery.resource, delivery.has_previous IS TRUE AS "hasPrevious",
    event.trigger AS event, event.record_id AS "recordId", event.owner_id AS "ownerId", ${timestampOfEvent} AS "occurredAt",
    (SELECT due_at FROM svc.delivery_queue WHERE ${byKey("delivery_id", "delivery.id")}) AS "nextAttemptAt"
  FROM svc.deliveries AS delivery LEFT JOIN LATERAL (
    SELECT trigger, record_id, occurred_at, owner_id FROM svc.events WHERE id = delivery.event_id OFFSET 0) AS event ON true`;

const findText = `${selectDeliveries} WHERE delivery.id = $1`;

/** Returns the delivery with an id; undefined when there is none. */
export async function findDelivery(sql: Sql, id: string): Promise<DeliveryRow | undefined> {
  const [delivery] = await sql<DeliveryRow>(findText, [id]);
  return delivery;
}

/** Headers of a delivery's requests beyond those that every receiver gets. */
export interface ExtraHeaders {
  /** Names of the subscription's own headers as of now; empty when it was deleted. */
  readonly headerNames: readonly string[];
  /** Null when the operation that made the delivery was not traced. */
  readonly traceparent: string | null;
}

const extraHeadersText = `
  SELECT traceparent, coalesce((SELECT header_names FROM svc.subscriptions WHERE id = subscription_id), '{}') AS "headerNames"
  FROM svc.deliveries WHERE id = $1`;

/**
 * Returns the extra headers of a delivery; no headers and no trace when there is no such delivery.
 */
export async function findExtraHeaders(sql: Sql, id: string): Promise<ExtraHeaders> {
  const [found] = await sql<ExtraHeaders>(extraHeadersText, [id]);
  return found ?? { headerNames: [], traceparent: null };
}
