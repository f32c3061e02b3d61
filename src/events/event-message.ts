import type { IncomingMessage, OutgoingMessage } from "../broker/broker.ts";
import type { Seal } from "../broker/seal.ts";
import { exchanges } from "../broker/topology.ts";
import type { EventEnvelope } from "./event.ts";
import { holderOf, type OutboxEvent } from "./outbox.ts";

/**
 * An event as the fan-out receives it: the envelope, with the record as bytes that every delivery
 * sends unchanged.
 */
export interface PublishedEvent extends Omit<EventEnvelope, "data" | "previous"> {
  /** Row id, as a decimal string. */
  readonly id: string;
  /** JSON. */
  readonly data: Buffer;
  /** JSON of the old record; undefined when no old row is kept. */
  readonly previous?: Buffer;
}

/**
 * `id`: row id of the event. `data`: offset and length of the record in the body. `seal`: signature
 * over both and the body. `owner`: owner of the record, if any, which is readable without the body.
 */
const headers = {
  id: "x-svc-id",
  data: "x-svc-data",
  seal: "x-svc-seal",
  owner: "x-svc-owner",
} as const;

/**
 * Most characters of an owner in the headers, which is more than an id has. The client of the
 * broker writes all headers into 64 KiB, and an owner's column may hold any text.
 */
const mostOfOwner = 200;

/**
 * Returns the message of an event. The record's JSON is inserted unchanged and found by its offset.
 * A record of 1 MB is therefore serialised once, and never parsed on its way to the receivers.
 */
export function eventMessage({
  event,
  data,
  previous,
  traceparent,
  seal,
}: {
  readonly event: Omit<OutboxEvent, "snapshot" | "previous" | "bytes" | "transaction" | "traceparent">;
  readonly data: string;
  readonly previous?: string | undefined;
  readonly traceparent?: string | undefined;
  readonly seal: Seal;
}): OutgoingMessage {
  const envelope: Omit<EventEnvelope, "data" | "timestamp" | "previous"> = {
    event_id: event.uuid,
    event: event.trigger,
    resource: event.resource,
    record_id: event.recordId,
    owner_id: event.ownerId,
  };
  const head = Buffer.from(`${JSON.stringify(envelope).slice(0, -1)},"data":`);
  const old = previous === undefined ? "" : `,"previous":${previous}`;
  const tail = Buffer.from(`,"timestamp":${JSON.stringify(event.timestamp)}${old}}`);
  const body = Buffer.concat([head, Buffer.from(data), tail]);
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
      ...(event.ownerId === null ? {} : { [headers.owner]: event.ownerId.slice(0, mostOfOwner) }),
      ...(traceparent === undefined ? {} : { traceparent }),
    },
  };
}

/**
 * Returns the holder whose turn a message uses: the owner, or the resource when records have no
 * owner. The value is not sealed, and only decides about turns.
 */
export function holderOfMessage({ routingKey, headers: given }: IncomingMessage): string {
  const owner = given[headers.owner];
  return holderOf({ ownerId: typeof owner === "string" ? owner : null, resource: resourceOf(routingKey) });
}

/**
 * Returns the identity of an event's message, which a repeated message shares. Undefined without a
 * seal, because such a message may have any id.
 */
export function identityOf({ messageId, headers: given }: IncomingMessage): string | undefined {
  const seal = given[headers.seal];
  return typeof seal === "string" ? `${messageId} ${seal}` : undefined;
}

/** Returns the resource of a message. The routing key is not sealed. */
export function resourceOf(routingKey: string): string {
  return routingKey.slice(0, Math.max(0, routingKey.lastIndexOf(".")));
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
  const end = start + length;
  const between = beforePrevious.exec(body.toString("latin1", end, end + 100))?.[0];
  const previous = between === undefined ? {} : { previous: body.subarray(end + between.length, -1) };
  const tail = between === undefined ? body.toString("utf8", end) : `${between}null}`;
  const rest = `${body.toString("utf8", 0, start)}null${tail}`;
  const { data: _, ...envelope } = JSON.parse(rest) as Omit<EventEnvelope, "previous">;
  return { ...envelope, id, data: body.subarray(start, end), ...previous };
}

/** Bytes between the data and the old row. */
const beforePrevious = /^,"timestamp":"[^"]*","previous":/;
