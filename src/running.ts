import { messageOf } from "./errors.ts";
import type { Log } from "./log.ts";
import type { Worker } from "./worker.ts";

/** A program at work. */
export interface Running {
  /** Rejects when a part of it cannot go on; the process is then to be stopped. */
  readonly failed: Promise<never>;
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
  const runs = workers.map(async (worker) => {
    await worker.run(stopping.signal);
    if (!stopping.signal.aborted) throw new Error(`The worker ${worker.name} ended by itself.`);
  });
  const failed = new Promise<never>((_, reject) => {
    for (const run of runs) run.catch(reject);
  });
  // Whoever watches decides; nobody watching is not a crash of its own.
  failed.catch(() => undefined);
  return {
    failed,
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
