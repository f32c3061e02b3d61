import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { createAlarm, pause } from "../kit/worker.ts";
import type { Link } from "./link.ts";
import { declareBindings, declareTopology } from "./topology.ts";

/**
 * How long a queue stays away before it is declared here. One that is declared in the moment it was deleted keeps RabbitMQ 3.10 from telling
 * its consumers, which then wait for ever (12 of 12 times). Those that are told declare it themselves within 0.2 s.
 */
const consumersFirstMs = 1_000;

/** Keeps the topology there. */
export interface Upkeep {
  /** Why a part of the topology is missing or not as it must be; undefined when all of it was there the last time. */
  fault(): string | undefined;
  /** A message came back that no queue takes: looks at once, and until it has looked that is a fault. */
  noteUnroutable(exchange: string): void;
  /** A message got through. */
  noteConfirmed(exchange: string): void;
  stop(): Promise<void>;
}

/**
 * Declares the bindings again every `intervalMs`, and everything once an exchange or a queue is found missing. AMQP cannot ask
 * whether a binding is there, and a message to try it with would reach whatever else is bound to the exchange; to declare it changes nothing
 * where it is there, and mends it where somebody removed it. Nothing is done, and no fault known, while there is no connection.
 */
export function startUpkeep({
  link,
  intervalMs,
  log,
}: {
  readonly link: Link;
  readonly intervalMs: number;
  readonly log: Log;
}): Upkeep {
  const stopping = new AbortController();
  const alarm = createAlarm();
  const unroutable = new Set<string>();
  let refusal: string | undefined;

  async function declare(): Promise<void> {
    const noted = [...unroutable];
    const declareMissing = refusal === undefined ? declareBindings : declareTopology;
    let isAsked = false;
    try {
      await link.ask((channel) => {
        isAsked = true;
        return declareMissing(channel);
      });
      for (const exchange of noted) unroutable.delete(exchange);
      if (refusal !== undefined) log.info("RabbitMQ has all exchanges, queues and bindings again");
      refusal = undefined;
    } catch (error) {
      if (!isAsked) throw error;
      // The connection went, and not the topology.
      if (!link.isUp()) return;
      const reason = messageOf(error);
      if (reason !== refusal) log.error({ reason }, "an exchange, queue or binding is missing in RabbitMQ");
      refusal = reason;
    }
  }

  async function run(): Promise<void> {
    for (;;) {
      if (refusal === undefined) await alarm.wait(intervalMs, stopping.signal);
      else await pause(consumersFirstMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await declare().catch((error: unknown) =>
        log.debug({ reason: messageOf(error) }, "could not look at the topology of RabbitMQ"),
      );
    }
  }

  const running = run();
  return {
    fault() {
      if (refusal !== undefined) return `an exchange, queue or binding is missing in RabbitMQ: ${refusal}`;
      const [exchange] = unroutable;
      return exchange === undefined ? undefined : `no queue takes what is published to ${exchange}`;
    },
    noteUnroutable(exchange) {
      if (unroutable.has(exchange)) return;
      unroutable.add(exchange);
      alarm.wake();
    },
    noteConfirmed: (exchange) => void unroutable.delete(exchange),
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
