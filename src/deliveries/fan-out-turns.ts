import type { IncomingMessage } from "../broker/broker.ts";

/** The messages of costly resources, each resource in turns of its own. */
export interface FanOutTurns {
  /** Takes a message; false when as many wait already as may. */
  add(resource: string, message: IncomingMessage): boolean;
  /** Gives back what waits, and resolves when no turn is running. */
  stop(): Promise<void>;
}

interface Lane {
  readonly waiting: IncomingMessage[];
  /** Events of the next turn. */
  size: number;
}

/** Turns that run at once: each takes a connection of the dispatcher. */
const atOnce = 2;
/** A turn gets fewer events when one takes longer, and more when it takes half of it. */
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
 * Shares the fan-out among costly resources. The events of one may take seconds, so its turn is
 * short, and then the next resource has its turn.
 *
 * @param handle Fans out events of one resource. Never rejects.
 * @param maxBytes Limit of the messages of one turn; a single one may be larger.
 * @param mostWaiting Of all resources together.
 * @param now In ms, never going back.
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
  /** In the order of their turns; a resource at work is not among them. */
  const queue: string[] = [];
  const lanes = new Map<string, Lane>();
  const running = new Set<Promise<void>>();
  let waiting = 0;
  let isStopped = false;

  async function turn(resource: string, lane: Lane): Promise<void> {
    // Lets everything that became ready in this turn of the event loop join the first batch.
    await new Promise((resolve) => setImmediate(resolve));
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
