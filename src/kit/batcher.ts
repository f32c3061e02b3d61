import { setImmediate as nextTurn } from "node:timers/promises";
import { pause } from "./worker.ts";

/**
 * Gathers items into batches, while the allowed number of batches runs. Batches grow with the load.
 * A single item does not wait, unless a batch has just begun.
 */
export interface Batcher<Item, Result> {
  /**
   * Settles with the item's own result once its batch is done. Rejects when the whole batch failed.
   */
  add(item: Item): Promise<Result>;
}

interface Waiting<Item, Result> {
  readonly item: Item;
  readonly resolve: (result: Result | Promise<Result>) => void;
  readonly reject: (error: unknown) => void;
}

interface BatcherOptions<Item, Result, Turn> {
  /**
   * Returns one result per item, in the items' order. A promise that rejects fails its item alone.
   */
  readonly handle: (items: readonly Item[], turn: Turn) => Promise<readonly (Result | Promise<Result>)[]>;
  /** Limit of the items of one batch. */
  readonly maxItems: number | (() => number);
  /** Number of batches that run at the same time. */
  readonly atWork?: number;
  /** Least time between the starts of two batches, unless the next one is full. */
  readonly everyMs?: number;
  /**
   * Runs a batch when it has its turn; items that arrive meanwhile join it. Passes what `handle`
   * has to know of the turn.
   */
  readonly inTurn?: (act: (turn: Turn) => Promise<void>) => Promise<void>;
}

export function createBatcher<Item, Result, Turn = undefined>({
  handle,
  maxItems,
  atWork = 1,
  everyMs = 0,
  inTurn = (act) => act(undefined as Turn),
}: BatcherOptions<Item, Result, Turn>): Batcher<Item, Result> {
  const waiting: Waiting<Item, Result>[] = [];
  let running = 0;
  /** Whether the next batch is still being gathered. */
  let isGathering = false;
  const mostItems = (): number => (typeof maxItems === "number" ? maxItems : maxItems());
  const pace = createPace(everyMs, () => waiting.length >= mostItems());

  async function run(): Promise<void> {
    await pace.gather();
    await inTurn(runBatches);
    running -= 1;
    // An item may have arrived after the last check of `waiting`.
    if (waiting.length > 0) startOneMore();
  }

  async function runBatches(turn: Turn): Promise<void> {
    isGathering = false;
    // Leaves the rest to the next batch as soon as that one gathers.
    while (waiting.length > 0 && !isGathering) {
      const batch = waiting.splice(0, mostItems());
      if (waiting.length > 0) startOneMore();
      try {
        const results = await handle(
          batch.map(({ item }) => item),
          turn,
        );
        batch.forEach(({ resolve }, index) => resolve(results[index] as Result | Promise<Result>));
      } catch (error) {
        for (const { reject } of batch) reject(error);
      }
      if (everyMs > 0) return;
    }
  }

  function startOneMore(): void {
    if (isGathering || running >= atWork) return;
    isGathering = true;
    running += 1;
    void run();
  }

  return {
    add(item) {
      return new Promise((resolve, reject) => {
        waiting.push({ item, resolve, reject });
        startOneMore();
        pace.look();
      });
    },
  };
}

interface Pace {
  /** Resolves when the next batch may begin. */
  gather(): Promise<void>;
  /** Checks whether the batch has become full, which ends the wait. */
  look(): void;
}

function createPace(everyMs: number, isFull: () => boolean): Pace {
  let lastStartMs = -Infinity;
  let end: AbortController | undefined;
  return {
    async gather() {
      const waitMs = lastStartMs + everyMs - performance.now();
      if (waitMs > 0 && !isFull()) {
        end = new AbortController();
        await pause(waitMs, end.signal);
        end = undefined;
      } else {
        // All items that become ready in this turn of the event loop join the first batch.
        await nextTurn();
      }
      lastStartMs = performance.now();
    },
    look() {
      if (end !== undefined && isFull()) end.abort();
    },
  };
}
