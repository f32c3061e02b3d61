import type { Trigger } from "../events/event.ts";

/** The bytes of one delivery (specification, 6.2), made once: they are stored, signed and sent as they are. Pure. */
export function deliveryBody({
  event,
  resource,
  eventUuid,
  deliveryUuid,
  data,
  timestamp,
}: {
  readonly event: Trigger;
  readonly resource: string;
  readonly eventUuid: string;
  readonly deliveryUuid: string;
  /** JSON-safe, as the resource's transform gives it. */
  readonly data: unknown;
  /** UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
}): Buffer<ArrayBuffer> {
  return Buffer.from(
    JSON.stringify({ event, resource, event_id: eventUuid, delivery_id: deliveryUuid, data, timestamp }),
  );
}

/**
 * The same content for another delivery: what a manual retry sends. Pure.
 *
 * Every byte outside `delivery_id` stays: reading and writing again gives back what `JSON.stringify` once wrote.
 */
export function withDeliveryUuid(body: Uint8Array, deliveryUuid: string): Buffer<ArrayBuffer> {
  const content = JSON.parse(Buffer.from(body).toString()) as Record<string, unknown>;
  return Buffer.from(JSON.stringify({ ...content, delivery_id: deliveryUuid }));
}
