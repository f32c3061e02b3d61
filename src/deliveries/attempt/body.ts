import type { Trigger } from "../../mapping/definition.ts";

/**
 * The bytes of one delivery (specification, 6.2), in parts that are signed and sent one after the other: the record, however large it is,
 * is shared by all deliveries of its event. Pure: the same on every attempt.
 *
 * @param data JSON of the record, as the resource's transform gives it.
 * @param timestamp UTC, ISO 8601 with microseconds and a trailing `Z`.
 */
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
  readonly data: Uint8Array;
  readonly timestamp: string;
}): readonly Uint8Array[] {
  const head = { event, resource, event_id: eventUuid, delivery_id: deliveryUuid };
  return [
    Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":`),
    data,
    Buffer.from(`,"timestamp":${JSON.stringify(timestamp)}}`),
  ];
}
