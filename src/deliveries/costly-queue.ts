import { setImmediate as nextTurn } from "node:timers/promises";
import type { IncomingMessage } from "../broker/broker.ts";
import { createSharedPlaces } from "../kit/turns.ts";

/** Waiting messages of one resource. */
interface Line {
  readonly waiting: IncomingMessage[];
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

function take({ waiting, size }: Line, maxBytes: number): readonly IncomingMessage[] {
  let count = 0;
  let bytes = 0;
  for (const { body } of waiting) {
    bytes += body.length;
    if (count === size || (count > 0 && bytes > maxBytes)) break;
    count += 1;
  }
  return waiting.splice(0, count);
}

/**
 * Shares the fan-out among costly resources. Batches are short, because the events of one resource
 * may take seconds.
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
  let waiting = 0;

  async function handleSome(line: Line): Promise<void> {
    // Everything that becomes ready in this turn of the event loop joins the first batch.
    await nextTurn();
    const messages = take(line, maxBytes);
    waiting -= messages.length;
    const startedAt = now();
    await handle(messages);
    const tookMs = now() - startedAt;
    if (tookMs > batchMs) line.size = Math.max(1, Math.floor(messages.length / 2));
    else if (tookMs < batchMs / 2 && messages.length === line.size)
      line.size = Math.min(maxItems, line.size * 2);
  }

  async function handleAll(resource: string, line: Line): Promise<void> {
    while (line.waiting.length > 0) await inTurn(resource, () => handleSome(line));
    lines.delete(resource);
  }

  return {
    /**
     * Adds a message. Returns false when its resource has used up its part of the queue: twice as
     * much as it leaves free.
     */
    add(resource: string, message: IncomingMessage): boolean {
      const line: Line = lines.get(resource) ?? { waiting: [], size: firstSize };
      // Without a part that stays free, the events of one slow resource would fill the queue.
      if (line.waiting.length >= 2 * (mostWaiting - waiting)) return false;
      waiting += 1;
      lines.set(resource, line);
      line.waiting.push(message);
      line.ended ??= handleAll(resource, line);
      return true;
    },
    /** Requeues the waiting messages, and resolves when no batch is running. */
    async stop(): Promise<void> {
      for (const line of lines.values()) for (const message of line.waiting.splice(0)) message.requeue();
      for (const { ended } of lines.values()) await ended;
    },
  };
}
