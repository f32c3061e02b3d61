import { setMaxListeners } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Worker } from "../kit/worker.ts";

/** A listener of Node's HTTP server. */
export type RequestListener = (request: IncomingMessage, response: ServerResponse) => unknown;

/** What a program runs on one configuration. Nothing of it is started. */
export interface Assembly {
  readonly workers: readonly Worker[];
  /** Answers the requests of the REST API; undefined in a program without one. */
  readonly listener?: RequestListener;
  /** Releases what the workers used, after they have stopped. */
  close(): void;
}

/** Running workers. */
export interface Running {
  /** Rejects when a part of it cannot go on; the process must then stop. */
  readonly failed: Promise<never>;
  /** Returns the names of the workers that have not ended. */
  unfinished(): readonly string[];
  /** Stops taking work, finishes what is in flight, and closes. */
  stop(): Promise<void>;
}

/**
 * Runs workers until stopped. One that ends by itself fails all: a restart is better than half a
 * program.
 */
export function runWorkers({
  workers,
  log,
}: {
  readonly workers: readonly Worker[];
  readonly log: Log;
}): Running {
  const stopping = new AbortController();
  // Each worker waits on it in one or two places; Node warns from eleven on.
  setMaxListeners(2 * workers.length + 10, stopping.signal);
  const unfinished = new Set<Worker>(workers);
  const runs = workers.map(async (worker) => {
    try {
      await worker.run(stopping.signal);
    } finally {
      unfinished.delete(worker);
    }
    if (!stopping.signal.aborted) throw new Error(`The worker ${worker.name} ended by itself.`);
  });
  const failed = new Promise<never>((_, reject) => {
    for (const run of runs) run.catch(reject);
  });
  // The caller may listen or not: a rejection without a listener must not end the process.
  failed.catch(() => undefined);
  return {
    failed,
    unfinished: () => [...unfinished].map(({ name }) => name),
    async stop() {
      stopping.abort();
      const settled = await Promise.allSettled(runs);
      for (const run of settled) {
        if (run.status === "rejected")
          log.error({ reason: messageOf(run.reason) }, "a worker did not stop cleanly");
      }
    },
  };
}
