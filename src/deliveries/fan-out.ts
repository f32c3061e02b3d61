import type { Broker, IncomingMessage } from "../broker/broker.ts";
import type { Seal } from "../broker/seal.ts";
import { queues } from "../broker/topology.ts";
import { eventOf, holderOfMessage, resourceOf } from "../events/event-message.ts";
import { databaseFaultOf } from "../db/database-fault.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import type { EventMetrics } from "../telemetry/metrics/events.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { SubscriberFinder } from "../subscriptions/find-subscribers.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import { codeOf } from "../kit/errors.ts";
import { createAlarm, pause, type Worker } from "../kit/worker.ts";
import type { Attempts } from "./attempt/attempts.ts";
import { createCostlyQueue } from "./costly-queue.ts";
import type { Figures } from "./figures.ts";
import type { Announce } from "./messages.ts";
import { deadLetterForeign } from "./foreign-messages.ts";
import { createFanOutQueue, type FanOutQueue } from "./fan-out-queue.ts";
import { createUnsettled } from "./unsettled.ts";
import { groupBy } from "../kit/group-by.ts";
import { beginFanOut } from "./attempt/spans.ts";
import {
  portionSize,
  writeDeliveries,
  type Received,
  type WriteOptions,
  type Written,
} from "./write-deliveries.ts";

export interface FanOutOptions extends WriteOptions {
  readonly broker: Broker;
  readonly seal: Seal;
  readonly subscribers: SubscriberFinder;
  readonly eligibility: Pick<Eligibility, "judge" | "isCostly">;
  /** Returns whether the mapping files of this process have the resource. */
  readonly isKnown: (resource: string) => boolean;
  readonly attempts: Pick<Attempts, "start" | "drain">;
  readonly figures: Pick<Figures, "changed">;
  /** Called when deliveries were left to the queue. */
  readonly onParked: () => void;
  readonly announce: Announce;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: Pick<EventMetrics, "fannedOut"> & Pick<DeliveryMetrics, "deadLettered">;
}

const batchSize = 200;
/**
 * Most deliveries that a batch is expected to make. With 500, an event of another user waited twice
 * as long: 110 ms, for the previous batch and its own.
 */
const batchCost = 100;
/** Most bytes of the messages of one batch; a single message may be larger. */
const batchBytes = 4 * 1024 ** 2;
/**
 * Most messages of costly resources that wait for their turns. One resource may use two thirds,
 * which is as many as four relays have of it in flight.
 */
const mostCostly = 1_200;
/**
 * A batch that takes longer waits for the database, or makes thousands of deliveries. An answer
 * over a connection that fails silently is given up after 35 s.
 */
const lateMs = 5_000;
/** The longest time of a timer. The consumption then begins again. */
const longestMs = 2 ** 31 - 1;
const prefetch = 2 * batchSize + mostCostly;

/**
 * Turns each event into one delivery per matching subscription. The same commit removes the event
 * from the outbox. Starts the attempts for which this process has slots; the others wait in the
 * queue for any dispatcher. Idempotent, because a repeated event is no longer in the outbox.
 *
 * Costly resources have turns of their own, so that their events do not delay other resources.
 */
export function createFanOut(options: FanOutOptions): Worker {
  const { broker, attempts } = options;
  return {
    name: "fan-out",
    async run(signal) {
      let away = createAlarm();
      const handle = (messages: readonly IncomingMessage[]): Promise<void> =>
        handleMessages({ ...options, queue, leave }, messages, signal);
      const leave = (): void => away.wake();
      const queue: FanOutQueue = createFanOutQueue({
        async handle(messages) {
          const timer = setTimeout(leave, lateMs);
          await handle(messages).finally(() => clearTimeout(timer));
        },
        mostItems: batchSize,
        mostCost: batchCost,
      });
      const costly = createCostlyQueue({
        handle,
        maxItems: batchSize,
        maxBytes: batchBytes,
        mostWaiting: mostCostly,
        now: () => performance.now(),
      });
      const enter = createUnsettled();
      const onMessage = (received: IncomingMessage): void => {
        const message = enter(received);
        if (message === undefined) return;
        const resource = resourceOf(message.routingKey);
        if (!options.eligibility.isCostly(resource)) queue.add(message);
        // The event stays in the outbox, and the relay publishes it again later.
        else if (!costly.add(resource, message)) message.ack();
      };
      while (!signal.aborted) {
        const consumption = await broker.consume({ queue: queues.fanout, prefetch, onMessage });
        await away.wait(longestMs, signal);
        await consumption.stop();
        // Not awaited, because a costly batch may take long, and must not delay the others.
        void costly.stop();
        await queue.stop();
        await untilAnswered(options, signal);
        away = createAlarm();
        queue.resume();
      }
      await costly.stop();
      await attempts.drain();
    },
  };
}

interface FanOut extends FanOutOptions {
  readonly queue: Pick<FanOutQueue, "note">;
  /**
   * Ends the consumption until the database answers. Without this, a process without the database
   * keeps half of all events from another dispatcher.
   */
  readonly leave: () => void;
}

/** Waits until the statement that writes deliveries is answered, here of none. */
async function untilAnswered({ store, flightMs, log }: FanOutOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    try {
      await store.insert({ events: [], deliveries: [], isComplete: true, flightMs });
      return;
    } catch (error) {
      log.error({ err: error }, "fan-out waits for the database; trying again");
      await pause(1_000, signal);
    }
  }
}

async function handleMessages(
  options: FanOut,
  messages: readonly IncomingMessage[],
  signal: AbortSignal,
): Promise<void> {
  const { seal, isKnown, tracing = noTracing } = options;
  const foreign: IncomingMessage[] = [];
  const unknown: Pick<Received, "message" | "event">[] = [];
  const batch = messages.flatMap((message): readonly Received[] => {
    const event = eventOf(message, seal);
    if (event === undefined) foreign.push(message);
    else if (!isKnown(event.resource)) unknown.push({ message, event });
    else return [{ message, event, span: beginFanOut(tracing, message) }];
    return [];
  });
  if (unknown.length > 0) leaveUnknown(options, unknown);
  // Not awaited, because a queue of dead letters that is full or without a quorum must not delay
  // events.
  if (foreign.length > 0)
    void deadLetterForeign(options, foreign, { reason: "not an event of this service", signal });
  if (batch.length > 0) await fanOutOrHalve(options, batch, signal);
}

/**
 * Acknowledges events whose resource this process does not know, and leaves them in the outbox. The
 * API may already have newer mapping files, and only these say who may read the events. The relay
 * publishes the events again.
 */
function leaveUnknown({ log }: FanOutOptions, unknown: readonly Pick<Received, "message" | "event">[]): void {
  for (const { message } of unknown) message.ack();
  log.warn(
    {
      event: "fan_out.unknown_resource",
      events: unknown.length,
      resources: idsForLog([...new Set(unknown.map(({ event }) => event.resource))]),
      eventUuids: idsForLog(unknown.map(({ event }) => event.event_id)),
    },
    "events wait in the outbox: their resource is not in the mapping files of this process",
  );
}

/**
 * Fans out a batch, and halves it when it fails, until the events that fail are alone. These stay
 * in the outbox, and the relay publishes them again later.
 */
async function fanOutOrHalve(
  options: FanOut,
  batch: readonly Received[],
  signal: AbortSignal,
): Promise<void> {
  const { log } = options;
  try {
    await fanOut(options, batch);
    for (const { message, span } of batch) {
      span.end();
      message.ack();
    }
  } catch (error) {
    const isAway = databaseFaultOf(error).kind === "unavailable" && !isTooMuch(error);
    if (isAway || signal.aborted) {
      log.error({ err: error }, "fan-out turn failed; giving the events back");
      options.leave();
      // Without the pause, the messages would come back before the consumption has stopped.
      await pause(1_000, signal);
      for (const { message, span } of batch) {
        span.end("failed");
        message.requeue();
      }
    } else if (batch.length > 1) {
      const half = Math.ceil(batch.length / 2);
      await fanOutOrHalve(options, batch.slice(0, half), signal);
      await fanOutOrHalve(options, batch.slice(half), signal);
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

async function fanOut(options: FanOut, messages: readonly Received[]): Promise<void> {
  const { figures, onParked, announce, metrics, queue, log } = options;
  const startedAt = performance.now();
  // An event that was published again while it was in the queue counts once.
  const batch = [...new Map(messages.map((one) => [one.event.id, one])).values()];
  const { written, eventCount } = await findAndWrite(options, batch);
  // When some events of the batch were fanned out before, this may count the wrong owners.
  figures.changed(batch.slice(0, eventCount).map(({ event }) => event.owner_id));
  // Events that were fanned out before make no deliveries and would lower the estimate.
  if (eventCount === batch.length) noteDeliveries(queue, batch, written);
  metrics.fannedOut({ events: eventCount, deliveries: written.length });
  const parked = written.filter(({ isParked }) => isParked);
  if (parked.length > 0) {
    onParked();
    announce(parked, "first");
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

function noteDeliveries(
  queue: FanOut["queue"],
  batch: readonly Received[],
  written: readonly Written[],
): void {
  const deliveries = groupBy(written, ({ received }) => holderOfMessage(received.message));
  for (const [holder, events] of groupBy(batch, ({ message }) => holderOfMessage(message)))
    queue.note(holder, { events: events.length, deliveries: deliveries.get(holder)?.length ?? 0 });
}

/**
 * Writes deliveries for the subscribers in memory, if they are known. When a subscriber may have
 * changed since, the statement writes nothing, and the subscribers are read from the database.
 */
async function findAndWrite(options: FanOut, batch: readonly Received[]): ReturnType<typeof writeDeliveries> {
  const { subscribers } = options;
  const events = batch.map(({ event }) => event);
  const known = await subscribers.findKnown(events, portionSize);
  if (known !== undefined) {
    const result = await writeDeliveries(options, batch, known);
    if (!result.isStale) return result;
    subscribers.forget();
  }
  return writeDeliveries(options, batch, { subscribers: await subscribers.find(events) });
}

/**
 * Returns whether the statement took too long or too much memory (PostgreSQL's 57014 and 53200). A
 * statement for half of the events may succeed.
 */
function isTooMuch(error: unknown): boolean {
  return ["57014", "53200"].includes(codeOf(error) ?? "");
}
