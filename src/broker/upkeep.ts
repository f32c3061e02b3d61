import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { createAlarm, pause } from "../kit/worker.ts";
import type { Link } from "./link.ts";
import { declareBindings, declareTopology } from "./topology.ts";

/**
 * How long a queue must be missing before it is declared here. When a queue is declared at the
 * moment of its deletion, RabbitMQ 3.10 does not notify its consumers. They then wait forever (12
 * of 12 times). Notified consumers declare the queue themselves within 0.2 s.
 */
const consumersFirstMs = 1_000;

/** Restores missing parts of the topology. */
export interface Upkeep {
  /**
   * Declares the bindings, and returns why a part of the topology is missing or wrong. Undefined
   * without a fault.
   */
  fault(): Promise<string | undefined>;
  /** Notes a message that no queue takes, and checks at once. */
  noteUnroutable(exchange: string): void;
  /** Notes that a message was confirmed. */
  noteConfirmed(exchange: string): void;
  stop(): Promise<void>;
}

/**
 * Declares the bindings every `intervalMs`, and the whole topology after an exchange or a queue was
 * missing.
 *
 * AMQP cannot query a binding, and a test message would reach every other queue on the exchange. A
 * declaration is a no-op when the binding exists, and restores a removed one. The answer of `fault`
 * therefore covers the bindings too. Without a connection nothing is done, and no fault is known.
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
  let underWay: Promise<void> | undefined;
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
      // The connection was lost, so the topology may be complete.
      if (!link.isUp()) return;
      const reason = messageOf(error);
      if (reason !== refusal) log.error({ reason }, "an exchange, queue or binding is missing in RabbitMQ");
      refusal = reason;
    }
  }

  const check = (): Promise<void> =>
    (underWay ??= declare()
      .catch((error: unknown) =>
        log.debug({ reason: messageOf(error) }, "could not check the topology of RabbitMQ"),
      )
      .finally(() => (underWay = undefined)));

  async function run(): Promise<void> {
    for (;;) {
      if (refusal === undefined) await alarm.wait(intervalMs, stopping.signal);
      if (refusal !== undefined) await pause(consumersFirstMs, stopping.signal);
      if (stopping.signal.aborted) return;
      await check();
    }
  }

  const running = run();
  return {
    async fault() {
      if (refusal === undefined) {
        await check();
        // The missing part is declared later: see `consumersFirstMs`.
        if (refusal !== undefined) alarm.wake();
      }
      if (refusal !== undefined) return `an exchange, queue or binding is missing in RabbitMQ: ${refusal}`;
      const [exchange] = unroutable;
      return exchange === undefined
        ? undefined
        : `no queue takes the messages that are published to ${exchange}`;
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
