import { runWorkers, type Running } from "../../src/app/workers.ts";
import type { Worker } from "../../src/kit/worker.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { useCoreScene, type CoreScene, type Mutable } from "./core-scene.ts";
import { createMemoryLog } from "./http.ts";
import { createWatchedBroker, type WatchedBroker } from "./watched-broker.ts";

/**
 * What a worker needs around it: the tables, a broker of its own for each test, and a log to look
 * into.
 */
export interface WorkerScene extends CoreScene {
  readonly broker: WatchedBroker;
  readonly log: Log;
  /** What was logged in this test. */
  readonly lines: Record<string, unknown>[];
  /** Runs a worker until `stop`, or until the test is over. */
  readonly run: (worker: Worker) => void;
  readonly stop: () => Promise<void>;
}

/** Registers the hooks of the `describe` around it. */
export function useWorkerScene(): WorkerScene {
  let running: Running | undefined;
  const scene: Mutable<WorkerScene> = Object.assign(useCoreScene() as WorkerScene, {
    run(worker: Worker) {
      running = runWorkers([worker], scene.log);
    },
    async stop() {
      await running?.stop();
    },
  });
  beforeEach(() => {
    running = undefined;
    scene.broker = createWatchedBroker();
    Object.assign(scene, createMemoryLog());
  });
  afterEach(async () => {
    await running?.stop();
    await scene.broker.close();
  });
  return scene;
}
