import type { IncomingMessage, OutgoingMessage } from "../broker/broker.ts";
import type { Seal } from "../broker/seal.ts";
import { exchanges } from "../broker/topology.ts";
import type { EventEnvelope } from "./event.ts";
import type { OutboxEvent } from "./outbox.ts";

/**
 * An event as the fan-out receives it: the envelope, with the record as the bytes that every
 * delivery carries.
 */
export interface PublishedEvent extends Omit<EventEnvelope, "data"> {
  /** Row id, as a decimal string. */
  readonly id: string;
  /** JSON. */
  readonly data: Buffer;
}

/**
 * `id`: row id of the event. `data`: offset and length of the record in the body. `seal`: signature
 * over both and the body.
 */
const headers = { id: "x-svc-id", data: "x-svc-data", seal: "x-svc-seal" } as const;

/**
 * Returns the message of an event. The record is inserted as it is and found by its offset. So a
 * record of 1 MB is serialised once, and never parsed on its way to the receivers.
 */
export function eventMessage({
  event,
  data,
  traceparent,
  seal,
}: {
  readonly event: Omit<OutboxEvent, "snapshot" | "bytes" | "transaction" | "traceparent">;
  readonly data: string;
  readonly traceparent?: string | undefined;
  readonly seal: Seal;
}): OutgoingMessage {
  const envelope: Omit<EventEnvelope, "data" | "timestamp"> = {
    event_id: event.uuid,
    event: event.trigger,
    resource: event.resource,
    record_id: event.recordId,
    owner_id: event.ownerId,
  };
  const head = Buffer.from(`${JSON.stringify(envelope).slice(0, -1)},"data":`);
  const tail = `,"timestamp":${JSON.stringify(event.timestamp)}}`;
  const body = Buffer.concat([head, Buffer.from(data), Buffer.from(tail)]);
  const place = `${head.length}:${body.length - head.length - tail.length}`;
  return {
    exchange: exchanges.events,
    routingKey: `${event.resource}.${event.trigger}`,
    messageId: event.uuid,
    body,
    headers: {
      [headers.id]: event.id,
      [headers.data]: place,
      [headers.seal]: seal.sign([event.id, " ", place, " ", body]),
      ...(traceparent === undefined ? {} : { traceparent }),
    },
  };
}

/** Returns the event of a message; undefined when this service has not made the message. */
export function eventOf(message: IncomingMessage, seal: Seal): PublishedEvent | undefined {
  const { body } = message;
  const id = message.headers[headers.id];
  const place = message.headers[headers.data];
  // No spaces, so that the sealed parts cannot be split at another place.
  if (typeof id !== "string" || !/^\d+$/.test(id)) return undefined;
  if (typeof place !== "string" || !/^\d+:\d+$/.test(place)) return undefined;
  if (!seal.isValid([id, " ", place, " ", body], message.headers[headers.seal])) return undefined;
  // The seal is valid, so the body has the form that `eventMessage` gave it.
  const [start = 0, length = 0] = place.split(":").map(Number);
  const rest = `${body.toString("utf8", 0, start)}null${body.toString("utf8", start + length)}`;
  const { data: _, ...envelope } = JSON.parse(rest) as EventEnvelope;
  return { ...envelope, id, data: body.subarray(start, start + length) };
}
