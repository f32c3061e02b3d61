import { setMaxListeners } from "node:events";
import type { Listener } from "../http/in-order.ts";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Worker } from "../kit/worker.ts";

/** The parts that a program runs on one configuration. None of them is started. */
export interface Assembly {
  readonly workers: readonly Worker[];
  /** Listener for the requests of the REST API; undefined in a program without one. */
  readonly listener?: Listener;
  /** Releases the resources of the workers, after they have stopped. */
  close(): void;
}

export interface Running {
  /** Rejects when a worker cannot continue; the process must then stop. */
  readonly failed: Promise<never>;
  /** Returns the names of the workers that have not ended. */
  unfinished(): readonly string[];
  /** Stops taking work, finishes the work in flight, and closes. */
  stop(): Promise<void>;
}

/**
 * Runs workers until stopped. When a worker ends by itself, all of them fail, because the process
 * should restart as a whole.
 */
export function runWorkers(workers: readonly Worker[], log: Log): Running {
  const stopping = new AbortController();
  // Each worker waits on the signal in one or two places; Node warns from eleven listeners on.
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
  // A rejection without a listener must not end the process, whether the caller listens or not.
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
