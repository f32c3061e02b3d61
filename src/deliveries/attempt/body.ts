import type { EventKind } from "../../events/event.ts";

/**
 * Returns the bytes of one delivery (docs/webhooks.md, "The delivery request"). They come in parts
 * that are signed and sent one after the other. All deliveries of an event share the record's
 * bytes, however many. Pure: every attempt has the same bytes.
 *
 * @param data JSON of the record, as the resource's transform returns it.
 * @param previous JSON of the record before an update; undefined when no old row is kept.
 * @param timestamp UTC, ISO 8601 with microseconds and a trailing `Z`.
 */
export function deliveryBody({
  event,
  resource,
  eventUuid,
  uuid,
  data,
  previous,
  timestamp,
}: {
  readonly event: EventKind | "ping";
  readonly resource: string;
  readonly eventUuid: string;
  readonly uuid: string;
  readonly data: Uint8Array;
  readonly previous?: Uint8Array | undefined;
  readonly timestamp: string;
}): readonly Uint8Array[] {
  const head = { event, resource, event_id: eventUuid, delivery_id: uuid };
  const start = Buffer.from(`${JSON.stringify(head).slice(0, -1)},"data":`);
  const time = `,"timestamp":${JSON.stringify(timestamp)}`;
  if (previous === undefined) return [start, data, Buffer.from(`${time}}`)];
  return [start, data, Buffer.from(`${time},"previous":`), previous, Buffer.from("}")];
}

/** Returns the bytes of a body that comes in parts. */
export function sizeOf(body: readonly Uint8Array[]): number {
  return body.reduce((size, part) => size + part.length, 0);
}
