import { createBatcher } from "../kit/batcher.ts";
import type { Broker, IncomingMessage } from "../broker/broker.ts";
import type { Seal } from "../broker/seal.ts";
import { queues } from "../broker/topology.ts";
import { eventOf, type PublishedEvent } from "../events/event-message.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import type { EventMetrics } from "../telemetry/metrics/events.ts";
import type { Subscriber } from "../subscriptions/find-subscribers.ts";
import { noTracing, type Span, type Tracing } from "../telemetry/tracing.ts";
import { aborted, pause, type Worker } from "../kit/worker.ts";
import type { Admission, Place } from "./admission/admission.ts";
import type { Attempts, DeliveryInHand } from "./attempt/attempts.ts";
import { deliveryUuidOf } from "./delivery-uuid.ts";
import type { Flight } from "./flights.ts";
import { deadMessage, deliveryMessage } from "./messages.ts";
import type { ScheduleOf } from "./attempt/schedule.ts";
import { beginFanOut } from "./attempt/spans.ts";
import type { DeliveryStore } from "./store.ts";

export interface FanOutOptions {
  readonly broker: Broker;
  readonly seal: Seal;
  readonly store: Pick<DeliveryStore, "insert">;
  /** The matching subscriptions of each event, in the events' order. */
  readonly findSubscribers: (
    events: readonly Pick<PublishedEvent, "event" | "resource" | "owner_id">[],
  ) => Promise<readonly (readonly Subscriber[])[]>;
  readonly scheduleOf: ScheduleOf;
  readonly admission: Pick<Admission, "reserve">;
  readonly attempts: Pick<Attempts, "start" | "drain">;
  readonly flightMs: number;
  /** Told when deliveries were left to the queue. */
  readonly onParked: () => void;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: Pick<EventMetrics, "fannedOut"> & Pick<DeliveryMetrics, "deadLettered">;
}

const batchSize = 200;
/** Of the messages of one batch; one alone may be larger. */
const batchBytes = 4 * 1024 ** 2;
/** Deliveries of one statement. */
const portion = 500;
/** Dispatchers that are told of deliveries for which this one has no slot. */
const mostTold = 4;

interface Received {
  readonly message: IncomingMessage;
  readonly event: PublishedEvent;
  readonly span: Span;
}

/** A delivery to be written. */
interface Planned {
  readonly received: Received;
  readonly subscriber: Subscriber;
  readonly uuid: string;
  /** Undefined: it waits in the queue. */
  readonly place: Place | undefined;
}

interface Written {
  readonly id: string;
  readonly uuid: string;
  readonly place: Place | undefined;
}

/**
 * Turns each event into one delivery per matching subscription, in one commit with the end of its place in the outbox, and begins to attempt
 * those for which this process has slots; the others wait in the queue, for any dispatcher. Idempotent: an event that comes again
 * is not in the outbox any more.
 */
export function createFanOut(options: FanOutOptions): Worker {
  const { broker, seal, store, findSubscribers, scheduleOf, admission, attempts, flightMs, log } = options;
  const { tracing = noTracing, metrics } = options;

  async function fanOut(messages: readonly Received[]): Promise<void> {
    const startedAt = performance.now();
    // One that was published again while it was still in the queue counts once.
    const batch = [...new Map(messages.map((one) => [one.event.id, one])).values()];
    const subscribers = await findSubscribers(batch.map(({ event }) => event));
    const planned = batch.flatMap((received, index) =>
      (subscribers[index] ?? []).map((subscriber): Planned => plan(received, subscriber)),
    );
    const { written, eventCount } = await write(batch, planned);
    metrics.fannedOut({ events: eventCount, deliveries: written.length });
    const parked = written.filter(({ place }) => place === undefined);
    if (parked.length > 0) {
      options.onParked();
      // One that is lost makes no difference: each looks into the queue now and then.
      void broker.publish(parked.slice(0, mostTold).map((delivery) => deliveryMessage(delivery, "first")));
    }
    log.info(
      {
        event: "fan_out.turn",
        events: batch.length,
        deliveries: written.length,
        waiting: parked.length,
        resources: idsForLog([...new Set(batch.map(({ event }) => event.resource))]),
        eventUuids: idsForLog(batch.map(({ event }) => event.event_id)),
        durationMs: Math.round(performance.now() - startedAt),
      },
      "fan-out turn",
    );
  }

  function plan(received: Received, subscriber: Subscriber): Planned {
    const { event } = received;
    return {
      received,
      subscriber,
      uuid: deliveryUuidOf(event.event_id, subscriber.subscriptionId),
      place: admission.reserve({
        userId: subscriber.user.id,
        url: subscriber.url,
        lane: "first",
        bytes: event.data.length,
        isUrgent: false,
      }),
    };
  }

  /** Writes the deliveries in portions, and starts each portion's attempts when it is written. Answers what is new. */
  async function write(
    batch: readonly Received[],
    planned: readonly Planned[],
  ): Promise<{ readonly written: readonly Written[]; readonly eventCount: number }> {
    const written: Written[] = [];
    let eventCount = 0;
    for (let start = 0; start === 0 || start < planned.length; start += portion) {
      const some = planned.slice(start, start + portion);
      const withDeliveries = new Set(some.map(({ received }) => received));
      const isComplete = start + portion >= planned.length;
      try {
        const { flightId, ids, databaseTimeMs, ...counts } = await store.insert({
          events: (isComplete ? batch : [...withDeliveries]).map((received) => ({
            id: received.event.id,
            uuid: received.event.event_id,
            data: withDeliveries.has(received) ? received.event.data.toString() : undefined,
          })),
          deliveries: some.map(({ received, subscriber, uuid, place }) => ({
            uuid,
            eventId: received.event.id,
            eventUuid: received.event.event_id,
            subscriptionId: subscriber.subscriptionId,
            userId: subscriber.user.id,
            resource: received.event.resource,
            url: subscriber.url,
            maxAttempts: scheduleOf(received.event.resource).maxAttempts,
            traceparent: received.span.traceparent,
            isTaken: place !== undefined,
          })),
          isComplete,
          flightMs,
        });
        // The last portion has all of the events.
        eventCount = counts.eventCount;
        const flight: Flight = {
          id: flightId ?? "",
          inHand: some.filter(({ uuid, place }) => place !== undefined && ids.has(uuid)).length,
        };
        for (const delivery of some) {
          const id = ids.get(delivery.uuid);
          if (id !== undefined) written.push({ id, uuid: delivery.uuid, place: delivery.place });
          if (delivery.place === undefined) continue;
          if (id === undefined) delivery.place.leave();
          else {
            const happenedAtMs =
              performance.now() - databaseTimeMs + Date.parse(delivery.received.event.timestamp);
            attempts.start(inHand(delivery, { id, flight, happenedAtMs }), delivery.place);
          }
        }
      } catch (error) {
        for (const { place } of planned.slice(start)) place?.leave();
        throw error;
      }
    }
    return { written, eventCount };
  }

  function inHand(
    { received: { event, span }, subscriber, uuid }: Planned,
    rest: Pick<DeliveryInHand, "id" | "flight" | "happenedAtMs">,
  ): DeliveryInHand {
    const { url, encryptedSecret, user, subscriptionId } = subscriber;
    return {
      ...rest,
      uuid,
      eventId: event.id,
      eventUuid: event.event_id,
      event: event.event,
      resource: event.resource,
      timestamp: event.timestamp,
      attempt: 0,
      maxAttempts: scheduleOf(event.resource).maxAttempts,
      isManual: false,
      traceparent: span.traceparent ?? null,
      subscriptionId,
      subscription: { url, encryptedSecret, user },
      data: event.data,
    };
  }

  /** A batch that fails is halved until what fails is alone; that stays in the outbox, and the relay publishes it again later. */
  async function fanOutOrHalve(batch: readonly Received[], signal: AbortSignal): Promise<void> {
    try {
      await fanOut(batch);
      for (const { message, span } of batch) {
        span.end();
        message.ack();
      }
    } catch (error) {
      const isAway = databaseFaultOf(error).kind === "unavailable" && !isTooMuch(error);
      if (isAway || signal.aborted) {
        log.error({ err: error }, "fan-out turn failed; giving the events back");
        // Without the pause the messages would come straight back, for as long as the database is away.
        await pause(1_000, signal);
        for (const { message, span } of batch) {
          span.end("failed");
          message.requeue();
        }
      } else if (batch.length > 1) {
        const half = Math.ceil(batch.length / 2);
        await fanOutOrHalve(batch.slice(0, half), signal);
        await fanOutOrHalve(batch.slice(half), signal);
      } else {
        for (const { message, span, event } of batch) {
          log.error(
            { err: error, resource: event.resource, eventUuid: event.event_id },
            "an event cannot be fanned out; it is tried again later",
          );
          span.end("failed");
          message.ack();
        }
      }
    }
  }

  /** What is not this service's own is kept for whoever watches svc.dead. */
  async function bury(messages: readonly IncomingMessage[], signal: AbortSignal): Promise<void> {
    const outcomes = await broker.publish(
      messages.map((message) => deadMessage(message, "not an event of this service")),
    );
    const [buried, kept]: [IncomingMessage[], IncomingMessage[]] = [[], []];
    messages.forEach((message, index) =>
      (outcomes[index]?.kind === "confirmed" ? buried : kept).push(message),
    );
    metrics.deadLettered("foreign", buried.length);
    for (const message of buried) message.ack();
    if (kept.length === 0) return;
    // Once for all of them: the events of this service wait behind it.
    await pause(1_000, signal);
    for (const message of kept) message.requeue();
  }

  return {
    name: "fan-out",
    async run(signal) {
      const batcher = createBatcher<IncomingMessage, void>({
        maxItems: batchSize,
        maxWeight: batchBytes,
        weightOf: ({ body }) => body.length,
        async handle(messages) {
          const foreign: IncomingMessage[] = [];
          const batch = messages.flatMap((message) => {
            const event = eventOf(message, seal);
            if (event === undefined) foreign.push(message);
            return event === undefined ? [] : [{ message, event, span: beginFanOut(tracing, message) }];
          });
          if (foreign.length > 0) await bury(foreign, signal);
          if (batch.length > 0) await fanOutOrHalve(batch, signal);
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
      await attempts.drain();
    },
  };
}

/** The statement took too long, or too much memory (PostgreSQL's 57014 and 53200): half of it may not. */
function isTooMuch(error: unknown): boolean {
  return error instanceof Error && "code" in error && (error.code === "57014" || error.code === "53200");
}
