import { setImmediate as nextTurn } from "node:timers/promises";
import type { IncomingMessage } from "../broker/broker.ts";

/** Queue of the messages of costly resources. Each resource has its own turns. */
export interface FanOutTurns {
  /** Adds a message. Returns false when the queue is full. */
  add(resource: string, message: IncomingMessage): boolean;
  /** Requeues the waiting messages, and resolves when no turn is running. */
  stop(): Promise<void>;
}

interface Lane {
  readonly waiting: IncomingMessage[];
  /** Events of the next turn. */
  size: number;
}

/** Turns that run at once: each takes a connection of the dispatcher. */
const atOnce = 2;
/**
 * Target duration. A longer turn makes the next one smaller; a turn of less than half makes it
 * larger.
 */
const turnMs = 500;
const firstSize = 10;

function take(lane: Lane, maxBytes: number): readonly IncomingMessage[] {
  let count = 0;
  let bytes = 0;
  for (const { body } of lane.waiting) {
    bytes += body.length;
    if (count === lane.size || (count > 0 && bytes > maxBytes)) break;
    count += 1;
  }
  return lane.waiting.splice(0, count);
}

/**
 * Shares the fan-out among costly resources. Turns are short, because the events of one resource
 * may take seconds.
 *
 * @param handle Fans out events of one resource. Never rejects.
 * @param maxBytes Most bytes of the messages of one turn; a single message may be larger.
 * @param mostWaiting Most waiting messages of all resources together.
 * @param now Monotonic clock, in ms.
 */
export function createFanOutTurns({
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
}): FanOutTurns {
  /** Resources in the order of their turns, without those whose turn is running. */
  const queue: string[] = [];
  const lanes = new Map<string, Lane>();
  const running = new Set<Promise<void>>();
  let waiting = 0;
  let isStopped = false;

  async function turn(resource: string, lane: Lane): Promise<void> {
    // Everything that becomes ready in this turn of the event loop joins the first batch.
    await nextTurn();
    const messages = take(lane, maxBytes);
    waiting -= messages.length;
    const startedAt = now();
    await handle(messages);
    const tookMs = now() - startedAt;
    if (tookMs > turnMs) lane.size = Math.max(1, Math.floor(messages.length / 2));
    else if (tookMs < turnMs / 2 && messages.length === lane.size)
      lane.size = Math.min(maxItems, lane.size * 2);
    if (lane.waiting.length > 0) queue.push(resource);
    else lanes.delete(resource);
  }

  function start(): void {
    while (!isStopped && running.size < atOnce) {
      const resource = queue.shift();
      const lane = resource === undefined ? undefined : lanes.get(resource);
      if (resource === undefined || lane === undefined) return;
      const run: Promise<void> = turn(resource, lane).finally(() => {
        running.delete(run);
        start();
      });
      running.add(run);
    }
  }

  return {
    add(resource, message) {
      let lane = lanes.get(resource);
      if (waiting >= mostWaiting) return false;
      if (lane === undefined) {
        lane = { waiting: [], size: firstSize };
        lanes.set(resource, lane);
        queue.push(resource);
      }
      lane.waiting.push(message);
      waiting += 1;
      start();
      return true;
    },
    async stop() {
      isStopped = true;
      for (const lane of lanes.values()) for (const message of lane.waiting.splice(0)) message.requeue();
      await Promise.all(running);
    },
  };
}
