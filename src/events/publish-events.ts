import type { Broker, OutgoingMessage } from "../broker/broker.ts";
import { maxMessageBytes } from "../broker/message-limit.ts";
import type { Seal } from "../broker/seal.ts";
import { exchanges } from "../broker/topology.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import type { EventMetrics } from "../telemetry/metrics/events.ts";
import {
  noTracing,
  traceparentOf,
  unsampledTraceparent,
  type Span,
  type Tracing,
} from "../telemetry/tracing.ts";
import { eventMessage } from "./event-message.ts";
import type { OutboxEvent } from "./outbox.ts";

export interface PublishOptions {
  readonly broker: Pick<Broker, "publish">;
  readonly seal: Seal;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: EventMetrics;
}

/** An event with its record, as the resource's transform returned it. */
export interface PresentedEvent {
  readonly event: OutboxEvent;
  readonly data: unknown;
  /** The old record; undefined when no old row is kept. */
  readonly previous?: unknown;
}

interface SentEvent {
  readonly event: OutboxEvent;
  readonly message: OutgoingMessage;
  readonly span: Span;
}

/** Capacity in flight, which large messages may use up. */
export interface Room {
  /** Returns whether the window has capacity for the message of an event. */
  has(event: OutboxEvent): boolean;
  /** Returns the same for the first message of a group, so that no group waits forever. */
  hasForFirst(event: OutboxEvent, bytes: number): boolean;
  take(event: OutboxEvent, bytes: number): void;
}

/** Ids of the events that were not published. */
interface Unpublished {
  /** Too large for a message. */
  readonly tooLarge: readonly string[];
  /** Not confirmed by the broker. */
  readonly unconfirmed: readonly string[];
  /** No capacity: not tried. */
  readonly left: readonly OutboxEvent[];
}

/** Bytes of the messages that are made before they are published. */
const portionBytes = 1024 ** 2;

/**
 * Publishes events of one resource to the exchange `svc.events`, in portions, so that few messages
 * are in memory at once.
 */
export async function publishEvents(
  options: PublishOptions & { readonly room: Room },
  resource: string,
  presented: readonly PresentedEvent[],
): Promise<Unpublished> {
  const { room } = options;
  const tooLarge: string[] = [];
  const unconfirmed: string[] = [];
  const left: OutboxEvent[] = [];
  let portion: SentEvent[] = [];
  let size = 0;
  for (const [index, one] of presented.entries()) {
    const { event } = one;
    if (index > 0 && !room.has(event)) {
      left.push(event);
      continue;
    }
    const { message, bytes, span } = toReady(options, one);
    if (message === undefined) {
      span.end("too_large");
      refuseTooLarge(options, event, bytes);
      tooLarge.push(event.id);
      continue;
    }
    if (index === 0 && !room.hasForFirst(event, bytes)) {
      span.end("no_room");
      left.push(event);
      continue;
    }
    room.take(event, bytes);
    portion.push({ event, span, message });
    size += bytes;
    if (size < portionBytes) continue;
    unconfirmed.push(...(await publishPortion(options, resource, portion)));
    [portion, size] = [[], 0];
  }
  unconfirmed.push(...(await publishPortion(options, resource, portion)));
  return { tooLarge, unconfirmed, left };
}

/** Publishes messages together. Returns the ids of the unconfirmed events. */
async function publishPortion(
  options: PublishOptions,
  resource: string,
  ready: readonly SentEvent[],
): Promise<readonly string[]> {
  const { broker, metrics } = options;
  const outcomes = await broker.publish(ready.map(({ message }) => message));
  let reason: string | undefined;
  const unconfirmed = ready.flatMap(({ event, span }, index) => {
    const outcome = outcomes[index];
    const isConfirmed = outcome?.kind === "confirmed";
    span.end(isConfirmed ? undefined : "unconfirmed");
    if (isConfirmed) {
      metrics.published(event);
      return [];
    }
    reason = outcome?.reason ?? "no answer";
    return [event];
  });
  if (unconfirmed.length > 0) reportUnconfirmed(options, resource, unconfirmed, reason);
  return unconfirmed.map(({ id }) => id);
}

/** Begins the span of an event's publish, in the writer's trace or in a new one. */
function beginPublish(tracing: Tracing, { uuid, resource, trigger, traceparent }: OutboxEvent): Span {
  return tracing.begin({
    name: `publish ${exchanges.events}`,
    kind: "producer",
    ...(traceparent === unsampledTraceparent
      ? { isSampled: false }
      : { parent: traceparentOf({ traceparent }) }),
    attributes: {
      "messaging.system": "rabbitmq",
      "messaging.operation.name": "publish",
      "messaging.operation.type": "send",
      "messaging.destination.name": exchanges.events,
      "messaging.rabbitmq.destination.routing_key": `${resource}.${trigger}`,
      "messaging.message.id": uuid,
    },
  });
}

function toReady(
  { tracing = noTracing, seal }: PublishOptions,
  { event, data, previous }: PresentedEvent,
): Omit<SentEvent, "message"> & {
  /** Undefined when the event is too large for a message. */
  readonly message: OutgoingMessage | undefined;
  readonly bytes: number;
} {
  const span = beginPublish(tracing, event);
  const json = JSON.stringify(data ?? null);
  const old = previous === undefined ? undefined : JSON.stringify(previous);
  const bytes = Buffer.byteLength(json);
  // Checked before the message is made and signed, which would take tens of ms.
  if (bytes > maxMessageBytes) return { event, span, bytes, message: undefined };
  const parts = { event, data: json, traceparent: span.traceparent, seal };
  const both = eventMessage({ ...parts, previous: old });
  const message = old === undefined || both.body.length <= maxMessageBytes ? both : eventMessage(parts);
  const { length } = message.body;
  return { event, span, bytes: length, message: length > maxMessageBytes ? undefined : message };
}

/**
 * Logs and counts an event that is too large for a message. The message would make the broker close
 * the channel, and everything on the channel would be lost.
 */
export function refuseTooLarge(
  { metrics, log }: Pick<PublishOptions, "metrics" | "log">,
  { uuid, resource }: Pick<OutboxEvent, "uuid" | "resource">,
  bytes: number,
): void {
  metrics.postponed("refused", 1);
  log.error(
    { event: "relay.too_large", resource, eventUuid: uuid, bytes, most: maxMessageBytes },
    "an event is too large for the broker; it waits until its resource's transform makes less of it, for ever above 32 MiB",
  );
}

function reportUnconfirmed(
  { metrics, log }: PublishOptions,
  resource: string,
  events: readonly OutboxEvent[],
  reason: string | undefined,
): void {
  metrics.postponed("unconfirmed", events.length);
  log.warn(
    { event: "relay.unconfirmed", resource, reason, events: events.length, eventUuids: uuidsOf(events) },
    "the broker did not confirm events; they are published again",
  );
}

/** Returns the UUIDs of events for a log line. */
export function uuidsOf(events: readonly OutboxEvent[]): ReturnType<typeof idsForLog> {
  return idsForLog(events.map(({ uuid }) => uuid));
}
