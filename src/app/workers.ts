import type { IncomingMessage, ServerResponse } from "node:http";
import { messageOf } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import type { Worker } from "../kit/worker.ts";

export type RequestListener = (request: IncomingMessage, response: ServerResponse) => unknown;

/** What a program runs on one configuration. Nothing of it is at work yet. */
export interface Assembly {
  readonly workers: readonly Worker[];
  /** Answers the requests of the REST API; undefined in a program that has none. */
  readonly listener?: RequestListener;
  /** Lets go of what the workers used, after they have stopped. */
  close(): void;
}

/** Workers at work. */
export interface Running {
  /** Rejects when a part of it cannot go on; the process is then to be stopped. */
  readonly failed: Promise<never>;
  /** Names of the workers that have not ended yet. */
  unfinished(): readonly string[];
  /** Stops taking work, finishes what is in hand, and closes. */
  stop(): Promise<void>;
}

/** Runs workers until stopped. One that ends by itself fails all: half a program that looks alive is worse than a restart. */
export function runWorkers({
  workers,
  log,
}: {
  readonly workers: readonly Worker[];
  readonly log: Log;
}): Running {
  const stopping = new AbortController();
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
  // Whoever watches decides; nobody watching is not a crash of its own.
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
