import { setImmediate as nextTurn } from "node:timers/promises";
import type { IncomingMessage } from "../broker/broker.ts";
import { holderOfMessage } from "../events/event-message.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { createSharedPlaces } from "../kit/turns.ts";
import { createFairQueue, type FairQueue } from "./fair-queue.ts";

/** Waiting messages of one resource. */
interface Line {
  readonly waiting: FairQueue<IncomingMessage>;
  /** Most events of the next batch. */
  size: number;
  /** Resolves when no message is left. */
  ended?: Promise<void>;
}

/** Batches that run at once: each takes a connection of the dispatcher. */
const atOnce = 2;
/**
 * Target duration. A longer batch makes the next one smaller; a batch of less than half makes it
 * larger.
 */
const batchMs = 500;
const firstSize = 10;

/** Most holders whose events took a known time. */
const mostKnown = 10_000;

/**
 * Shares the fan-out among costly resources, and each of them among the owners of its records.
 * Batches are short, because the events of one resource may take seconds. So may each event of one
 * owner, such as of a team with a million members. It has a batch of its own, and the events of
 * others go before it. An owner that is not known has one event in a batch.
 *
 * @param handle Fans out events of one resource. Never rejects.
 * @param maxBytes Most bytes of the messages of one batch; a single message may be larger.
 * @param mostWaiting Most waiting messages of all resources together.
 * @param now Monotonic clock, in ms.
 */
export function createCostlyQueue({
  handle,
  maxItems,
  maxBytes,
  mostWaiting,
  now,
}: {
  readonly handle: (messages: readonly IncomingMessage[]) => Promise<void>;
  readonly maxItems: number;
  readonly maxBytes: number;
  readonly mostWaiting: number;
  readonly now: () => number;
}) {
  const inTurn = createSharedPlaces({ ofAll: atOnce, ofEach: 1 });
  const lines = new Map<string, Line>();
  /** Time in ms of an event in the last batch with one, by resource and holder. */
  const known = new Map<string, number>();
  let waiting = 0;

  const createLine = (resource: string): Line => ({
    waiting: createFairQueue(
      (_message, { holder, isFirst }) => known.get(`${resource} ${holder}`) ?? (isFirst ? 1 : undefined),
      ({ body }, costMs) => (costMs > batchMs ? maxBytes : body.length),
    ),
    size: firstSize,
  });

  async function handleSome(resource: string, line: Line): Promise<void> {
    // Everything that becomes ready in this turn of the event loop joins the first batch.
    await nextTurn();
    const messages = line.waiting.take({ items: line.size, cost: maxBytes });
    waiting -= messages.length;
    const startedAt = now();
    await handle(messages);
    const tookMs = now() - startedAt;
    for (const holder of new Set(messages.map(holderOfMessage)))
      setBounded(known, [`${resource} ${holder}`, Math.max(1, tookMs / messages.length)], mostKnown);
    if (tookMs > batchMs) line.size = Math.max(1, Math.floor(messages.length / 2));
    else if (tookMs < batchMs / 2 && messages.length === line.size)
      line.size = Math.min(maxItems, line.size * 2);
  }

  async function handleAll(resource: string, line: Line): Promise<void> {
    while (line.waiting.size > 0) await inTurn(resource, () => handleSome(resource, line));
    lines.delete(resource);
  }

  return {
    /**
     * Adds a message. Returns false when its resource has used up its part of the queue: twice as
     * much as it leaves free. One message of each further holder has room beyond it.
     */
    add(resource: string, message: IncomingMessage): boolean {
      const line = lines.get(resource) ?? createLine(resource);
      const holder = holderOfMessage(message);
      // Without a part that stays free, the events of one slow resource would fill the queue.
      const free = mostWaiting - waiting;
      const isFurther = line.waiting.sizeOf(holder) === 0 && free > mostWaiting / 4;
      if (line.waiting.size >= 2 * free && !isFurther) return false;
      waiting += 1;
      lines.set(resource, line);
      line.waiting.add(holder, message);
      line.ended ??= handleAll(resource, line);
      return true;
    },
    /** Requeues the waiting messages, and resolves when no batch is running. */
    async stop(): Promise<void> {
      for (const line of lines.values()) for (const message of line.waiting.empty()) message.requeue();
      for (const { ended } of lines.values()) await ended;
    },
  };
}
