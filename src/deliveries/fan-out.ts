import { randomUUID } from "node:crypto";
import { createBatcher } from "../batcher.ts";
import type { Broker, IncomingMessage } from "../broker/broker.ts";
import { queues } from "../broker/topology.ts";
import type { EventEnvelope } from "../events/event.ts";
import { idsForLog, type Log } from "../log.ts";
import type { DeliveryMetrics } from "../metrics/deliveries.ts";
import type { EventMetrics } from "../metrics/events.ts";
import type { Subscriber } from "../subscriptions/find-subscribers.ts";
import { noTracing, type Span, type Tracing } from "../tracing.ts";
import { aborted, pause, type Worker } from "../worker.ts";
import { deliveryBody } from "./body.ts";
import { deadMessage, deliveryMessage, eventOf } from "./messages.ts";
import type { ScheduleOf } from "./schedule.ts";
import { beginFanOut } from "./spans.ts";
import type { DeliveryStore, NewDelivery } from "./store.ts";

export interface FanOutOptions {
  readonly broker: Broker;
  readonly store: Pick<DeliveryStore, "insertMissing">;
  /** The matching subscriptions of each event, in the events' order. */
  readonly findSubscribers: (events: readonly EventEnvelope[]) => Promise<readonly (readonly Subscriber[])[]>;
  readonly scheduleOf: ScheduleOf;
  readonly requeueAfterMs: number;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: Pick<EventMetrics, "fannedOut"> & Pick<DeliveryMetrics, "deadLettered">;
}

const batchSize = 200;

/**
 * Turns each event into one delivery per matching subscription, and publishes those as work. Idempotent: an event that comes
 * again finds its deliveries, and the sweep publishes what a crash between insert and publish left behind.
 */
export function createFanOut({
  broker,
  store,
  findSubscribers,
  scheduleOf,
  requeueAfterMs,
  log,
  tracing = noTracing,
  metrics,
}: FanOutOptions): Worker {
  async function fanOut(messages: readonly IncomingMessage[], spans: readonly Span[]): Promise<void> {
    const startedAt = performance.now();
    const read = messages.map((message, index) => ({ message, event: eventOf(message), span: spans[index] }));
    const known = read.flatMap(({ event, span }) => (event === undefined ? [] : [{ event, span }]));
    const events = known.map(({ event }) => event);
    const subscribers = await findSubscribers(events);
    const deliveries = known.flatMap(({ event, span }, index) =>
      (subscribers[index] ?? []).map((to) => ({ ...newDelivery(event, to), traceparent: span?.traceparent })),
    );
    const { inserted, unknownEvents } = await store.insertMissing({
      eventUuids: events.map(({ event_id }) => event_id),
      deliveries,
      queuedForMs: requeueAfterMs,
    });
    const dead = read.flatMap(({ message, event }) => {
      if (event === undefined) return [deadMessage(message, "not an event")];
      // Published by a stranger, or its row was deleted since.
      return unknownEvents.has(event.event_id) ? [deadMessage(message, "unknown event", event.event_id)] : [];
    });
    metrics.fannedOut({ events: events.length - unknownEvents.size, deliveries: inserted.length });
    // An unconfirmed one is found by the sweep when it is no longer believed to be queued.
    const outcomes = await broker.publish([
      ...dead,
      ...inserted.map((delivery) => deliveryMessage(delivery, "first")),
    ]);
    const buried = outcomes.slice(0, dead.length).filter(({ kind }) => kind === "confirmed");
    metrics.deadLettered("foreign", buried.length);
    if (buried.length < dead.length) throw new Error("A dead letter was not confirmed.");
    log.info(
      {
        event: "fan_out.turn",
        events: events.length,
        deliveries: inserted.length,
        foreign: dead.length,
        resources: idsForLog([...new Set(events.map(({ resource }) => resource))]),
        eventUuids: idsForLog(events.map(({ event_id }) => event_id)),
        durationMs: Math.round(performance.now() - startedAt),
      },
      "fan-out turn",
    );
  }

  function newDelivery(event: EventEnvelope, { subscriptionId, user, url }: Subscriber): NewDelivery {
    const uuid = randomUUID();
    return {
      uuid,
      eventUuid: event.event_id,
      subscriptionId,
      userId: user.id,
      resource: event.resource,
      url,
      maxAttempts: scheduleOf(event.resource).maxAttempts,
      body: deliveryBody({
        event: event.event,
        resource: event.resource,
        eventUuid: event.event_id,
        deliveryUuid: uuid,
        data: event.data,
        timestamp: event.timestamp,
      }),
    };
  }

  return {
    name: "fan-out",
    async run(signal) {
      const batcher = createBatcher<IncomingMessage, void>({
        maxItems: batchSize,
        async handle(messages) {
          const spans = messages.map((message) => beginFanOut(tracing, message));
          try {
            await fanOut(messages, spans);
            for (const span of spans) span.end();
            for (const message of messages) message.ack();
          } catch (error) {
            for (const span of spans) span.end("failed");
            log.error({ err: error }, "fan-out turn failed; giving the events back");
            // Without the pause the messages would come straight back, for as long as the database is away.
            await pause(1_000, signal);
            for (const message of messages) message.requeue();
          }
          return messages.map(() => undefined);
        },
      });
      const consumption = await broker.consume({
        queue: queues.fanout,
        prefetch: 2 * batchSize,
        onMessage: (message) => void batcher.add(message),
      });
      await aborted(signal);
      await consumption.stop();
      await batcher.drain();
    },
  };
}
