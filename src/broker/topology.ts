import type { Channel } from "amqplib";

/** Exchanges that the service declares. */
export const exchanges = { events: "svc.events", deliveries: "svc.deliveries", dead: "svc.dead" } as const;

/** Queues that the service declares. */
export const queues = {
  fanout: "svc.fanout",
  first: "svc.deliveries.first",
  retry: "svc.deliveries.retry",
  dead: "svc.dead",
} as const;

/** Routing keys of the exchange `svc.deliveries`: first attempts do not wait behind retries. */
export const lanes = { first: "first", retry: "retry" } as const;
export type Lane = keyof typeof lanes;

/** Headers of a message on `svc.dead` that give the reason. */
export const deadHeaders = {
  reason: "x-svc-reason",
  delivery: "x-svc-delivery",
  event: "x-svc-event",
} as const;

/**
 * Queues are quorum queues, even on a single node: their confirm means that the message is on disk,
 * unlike that of a classic queue. Two arguments are left out on purpose:
 * - `x-dead-letter-exchange`: the service publishes to `svc.dead` itself, with the reason in
 *   headers, and acknowledges after the confirm. RabbitMQ's own dead-lettering is at most once
 *   unless four settings agree.
 * - `x-delivery-limit`: without one, RabbitMQ 3 puts a requeued message at the back of the queue;
 *   with one, at its head, and drops it after as many deliveries. RabbitMQ 4 has a limit of 20 by
 *   default; the relay or the sweep publishes dropped messages again, since PostgreSQL has the
 *   work. A queue with other arguments than it was declared with is refused.
 */
const quorum = { "x-queue-type": "quorum" } as const;

/** Every name and argument that the service declares, for both brokers. */
export const topology = {
  exchanges: [
    { name: exchanges.events, kind: "topic" },
    { name: exchanges.deliveries, kind: "direct" },
    { name: exchanges.dead, kind: "fanout" },
  ],
  queues: Object.values(queues).map((name) => ({ name, arguments: quorum })),
  bindings: [
    { exchange: exchanges.events, queue: queues.fanout, key: "#" },
    { exchange: exchanges.deliveries, queue: queues.first, key: lanes.first },
    { exchange: exchanges.deliveries, queue: queues.retry, key: lanes.retry },
    { exchange: exchanges.dead, queue: queues.dead, key: "" },
  ],
} as const;

/**
 * Declares the topology, all of it durable. Existing parts stay unchanged. Rejects, and RabbitMQ
 * closes the channel, when an object of the same name has other arguments.
 */
export async function declareTopology(channel: Channel): Promise<void> {
  for (const { name, kind } of topology.exchanges) {
    await channel.assertExchange(name, kind, { durable: true });
  }
  for (const queue of topology.queues) {
    await channel.assertQueue(queue.name, { durable: true, arguments: queue.arguments });
  }
  await declareBindings(channel);
}

/**
 * Declares the bindings. Rejects, and RabbitMQ closes the channel, when an exchange or a queue is
 * missing.
 */
export async function declareBindings(channel: Channel): Promise<void> {
  for (const { exchange, queue, key } of topology.bindings) {
    await channel.bindQueue(queue, exchange, key);
  }
}
