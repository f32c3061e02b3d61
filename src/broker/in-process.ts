import type { Log } from "../telemetry/log.ts";
import type {
  Broker,
  ConsumeOptions,
  Consumption,
  IncomingMessage,
  OutgoingMessage,
  PublishOutcome,
} from "./broker.ts";
import { handOut } from "./hand-out.ts";
import { queues as names, topology } from "./topology.ts";

/**
 * Most waiting messages of a queue, because they are in memory. The database still has the work.
 */
const defaultMaxReady = 10_000;

interface Queue {
  readonly name: string;
  /** Oldest first. A set removes its head without moving the rest. */
  readonly ready: Set<OutgoingMessage>;
  readonly consumers: Consumer[];
  isHandingOut: boolean;
}

interface Consumer {
  readonly options: ConsumeOptions;
  /** Messages that are handed out and not settled. */
  inFlight: number;
}

interface State {
  readonly log: Log;
  readonly maxReady: number;
  readonly queues: ReadonlyMap<string, Queue>;
  isOpen: boolean;
}

/**
 * Creates a broker inside one process, with the topology and the semantics of RabbitMQ. A restart
 * loses its messages; the relay and the sweep publish them again from the database.
 *
 * @param maxReady A queue with this many waiting messages answers `unconfirmed`. `svc.dead` drops
 *   its oldest instead, since no part of this process consumes it.
 */
export function createInProcessBroker({
  log,
  maxReady = defaultMaxReady,
}: {
  readonly log: Log;
  readonly maxReady?: number;
}): Broker {
  const state: State = {
    log,
    maxReady,
    queues: new Map(
      topology.queues.map(({ name }) => [
        name,
        { name, ready: new Set(), consumers: [], isHandingOut: false },
      ]),
    ),
    isOpen: true,
  };
  return {
    publish: (messages) => Promise.resolve(messages.map((message) => publish(state, message))),
    consume: async (options) => consume(state, options),
    depth: async (name) => queueNamed(state, name).ready.size,
    isConnected: () => state.isOpen,
    // The topology is a constant, so no part of it can be missing.
    fault: async () => (state.isOpen ? undefined : "closed"),
    async close() {
      state.isOpen = false;
      for (const { ready, consumers } of state.queues.values()) {
        ready.clear();
        consumers.length = 0;
      }
    },
  };
}

function queueNamed({ queues, isOpen }: State, name: string): Queue {
  const queue = queues.get(name);
  if (queue === undefined || !isOpen) throw new Error(isOpen ? `There is no queue ${name}` : "closed");
  return queue;
}

function publish(state: State, message: OutgoingMessage): PublishOutcome {
  const { isOpen, queues, maxReady, log } = state;
  if (!isOpen) return { kind: "unconfirmed", reason: "closed" };
  const targets = queuesFor(message).map((name) => queues.get(name) as Queue);
  if (targets.length === 0) return { kind: "unconfirmed", reason: "unroutable" };
  if (targets.some(({ name, ready }) => name !== names.dead && ready.size >= maxReady)) {
    return { kind: "unconfirmed", reason: "queue full" };
  }
  for (const queue of targets) {
    if (queue.ready.size >= maxReady) dropOldest(queue, log);
    // A copy: a message may be published again while it waits.
    queue.ready.add({ ...message });
    handOutSoon(state, queue);
  }
  return { kind: "confirmed" };
}

function dropOldest({ name, ready }: Queue, log: Log): void {
  const [oldest] = ready;
  if (oldest === undefined) return;
  ready.delete(oldest);
  log.warn({ queue: name, message_id: oldest.messageId }, "dropped the oldest message of a full queue");
}

function consume(state: State, options: ConsumeOptions): Consumption {
  const queue = queueNamed(state, options.queue);
  const consumer: Consumer = { options, inFlight: 0 };
  queue.consumers.push(consumer);
  handOutSoon(state, queue);
  return {
    async stop() {
      const index = queue.consumers.indexOf(consumer);
      if (index >= 0) queue.consumers.splice(index, 1);
    },
  };
}

/** Hands out later and not within `publish`: the publisher then finishes before a handler runs. */
function handOutSoon(state: State, queue: Queue): void {
  if (queue.isHandingOut) return;
  queue.isHandingOut = true;
  setImmediate(() => {
    queue.isHandingOut = false;
    handOutReady(state, queue);
  });
}

function handOutReady(state: State, queue: Queue): void {
  // Hands out only the messages that wait now: a handler that requeues every message must not block
  // the process forever.
  let left = queue.ready.size;
  for (const message of queue.ready) {
    if (left === 0) return;
    left -= 1;
    const consumer = queue.consumers.find(({ inFlight, options }) => inFlight < options.prefetch);
    if (consumer === undefined || !state.isOpen) return;
    // Round robin: the next message goes to the next consumer.
    queue.consumers.push(...queue.consumers.splice(queue.consumers.indexOf(consumer), 1));
    queue.ready.delete(message);
    consumer.inFlight += 1;
    handOut(toIncoming(state, message, { queue, consumer }), consumer.options, state.log);
  }
}

function toIncoming(
  state: State,
  message: OutgoingMessage,
  { queue, consumer }: { readonly queue: Queue; readonly consumer: Consumer },
): IncomingMessage {
  let isSettled = false;
  const settle = (): boolean => {
    if (isSettled || !state.isOpen) return false;
    isSettled = true;
    consumer.inFlight -= 1;
    handOutSoon(state, queue);
    return true;
  };
  return {
    messageId: message.messageId,
    routingKey: message.routingKey,
    body: message.body,
    headers: message.headers ?? {},
    ack: () => void settle(),
    requeue() {
      // Adds the message to the back, like RabbitMQ with a quorum queue.
      if (settle()) queue.ready.add(message);
    },
  };
}

/**
 * Returns the queues that RabbitMQ's exchanges would route the message to. The one binding of the
 * topic exchange takes every key.
 */
function queuesFor({ exchange, routingKey }: OutgoingMessage): readonly string[] {
  const isDirect = topology.exchanges.some(({ name, kind }) => name === exchange && kind === "direct");
  return topology.bindings
    .filter((binding) => binding.exchange === exchange && (!isDirect || binding.key === routingKey))
    .map(({ queue }) => queue);
}
