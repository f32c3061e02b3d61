import type { Broker, OutgoingMessage } from "../broker/broker.ts";
import { maxMessageBytes } from "../broker/message-limit.ts";
import type { Seal } from "../broker/seal.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import type { EventMetrics } from "../telemetry/metrics/events.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing.ts";
import { eventMessage } from "./event-message.ts";
import type { OutboxEvent } from "./outbox.ts";
import { beginPublish } from "./publish-span.ts";

export interface PublishOptions {
  readonly broker: Pick<Broker, "publish">;
  readonly seal: Seal;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: EventMetrics;
}

/** An event with its record, as the resource's transform gave it. */
export interface PresentedEvent {
  readonly event: OutboxEvent;
  readonly data: unknown;
  /** Undefined where none is kept. */
  readonly previous?: unknown;
}

interface ReadyEvent {
  readonly event: OutboxEvent;
  readonly message: OutgoingMessage;
  readonly span: Span;
}

/**
 * Publishes events of one resource to the exchange `svc.events`.
 *
 * @returns Ids of the events that were not published: too large, or not confirmed by the broker.
 */
export async function publishEvents(
  options: PublishOptions,
  resource: string,
  presented: readonly PresentedEvent[],
): Promise<readonly string[]> {
  const { broker, metrics } = options;
  const all = presented.map((one) => toReady(options, one));
  const ready = all.filter(({ message }) => message.body.length <= maxMessageBytes);
  const tooLarge = all.filter(({ message }) => message.body.length > maxMessageBytes);
  for (const one of tooLarge) refuseTooLarge(options, resource, one);
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
  return [...tooLarge.map(({ event }) => event.id), ...unconfirmed.map(({ id }) => id)];
}

function toReady(
  { tracing = noTracing, seal }: PublishOptions,
  { event, data, previous }: PresentedEvent,
): ReadyEvent {
  const span = beginPublish(tracing, event);
  const json = JSON.stringify(data ?? null);
  const old = previous === undefined ? undefined : JSON.stringify(previous);
  const parts = { event, data: json, traceparent: span.traceparent, seal };
  const message = eventMessage({ ...parts, previous: old });
  const isTooLarge = old !== undefined && message.body.length > maxMessageBytes;
  return { event, span, message: isTooLarge ? eventMessage(parts) : message };
}

/** Such a message would make the broker close the channel, and lose everything that is on it. */
function refuseTooLarge({ metrics, log }: PublishOptions, resource: string, ready: ReadyEvent): void {
  const { event, message, span } = ready;
  span.end("too_large");
  metrics.postponed("refused", 1);
  log.error(
    {
      event: "relay.too_large",
      resource,
      eventUuid: event.uuid,
      bytes: message.body.length,
      most: maxMessageBytes,
    },
    "an event is too large for the broker; it waits until its resource's transform makes less of it",
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
