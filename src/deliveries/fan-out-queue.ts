import { setImmediate as nextTurn } from "node:timers/promises";
import type { IncomingMessage } from "../broker/broker.ts";
import { holderOfMessage } from "../events/event-message.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { createFairQueue } from "./fair-queue.ts";

/** Queue of the messages that wait for the fan-out, except those of costly resources. */
export type FanOutQueue = ReturnType<typeof createFanOutQueue>;

/** Number of bytes in a message that cost as much time as one delivery. */
const bytesOfDelivery = 4096;
const mostKnown = 10_000;

/**
 * Creates the queue, which runs batches one after the other. Holders take turns. The cost of an
 * event is estimated by the deliveries that the holder's last events made. A holder without an
 * estimate has one event in a batch.
 *
 * @param handle Fans out a batch. Never rejects.
 * @param mostCost Most deliveries of a batch.
 */
export function createFanOutQueue({
  handle,
  mostItems,
  mostCost,
}: {
  readonly handle: (messages: readonly IncomingMessage[]) => Promise<void>;
  readonly mostItems: number;
  readonly mostCost: number;
}) {
  /** Expected deliveries per event, by holder. */
  const known = new Map<string, number>();
  const waiting = createFairQueue<IncomingMessage>(({ body }, { holder, isFirst }) => {
    const deliveries = known.get(holder);
    if (deliveries === undefined && !isFirst) return undefined;
    return 1 + (deliveries ?? 0) + body.length / bytesOfDelivery;
  });
  let running: Promise<void> | undefined;
  let isStopped = false;

  async function run(): Promise<void> {
    // Everything that becomes ready in this turn of the event loop joins the batch.
    await nextTurn();
    const batch = waiting.take({ items: mostItems, cost: mostCost });
    if (batch.length > 0) await handle(batch);
    running = undefined;
    start();
  }

  function start(): void {
    if (!isStopped && waiting.size > 0) running ??= run();
  }

  return {
    add(message: IncomingMessage): void {
      if (isStopped) return message.requeue();
      waiting.add(holderOfMessage(message), message);
      start();
    },
    /** Notes how many deliveries the events of a holder made. */
    note(
      holder: string,
      { events, deliveries }: { readonly events: number; readonly deliveries: number },
    ): void {
      setBounded(known, [holder, deliveries / events], mostKnown);
    },
    /** Requeues the waiting messages, and resolves when no batch is running. */
    async stop(): Promise<void> {
      isStopped = true;
      for (const message of waiting.empty()) message.requeue();
      await running;
    },
    /** Takes messages again after `stop`. */
    resume(): void {
      isStopped = false;
    },
  };
}
