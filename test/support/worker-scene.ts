import { runWorkers, type Running } from "../../src/app/workers.ts";
import type { Worker } from "../../src/kit/worker.ts";
import type { Log } from "../../src/telemetry/log.ts";
import { useCoreScene, type CoreScene, type Mutable } from "./core-scene.ts";
import { createMemoryLog } from "./http.ts";
import { createWatchedBroker, type WatchedBroker } from "./watched-broker.ts";

/** Dependencies of a worker: the tables, a separate broker for each test, and a readable log. */
export interface WorkerScene extends CoreScene {
  readonly broker: WatchedBroker;
  readonly log: Log;
  /** Log lines of this test. */
  readonly lines: Record<string, unknown>[];
  /** Runs a worker until `stop`, or until the end of the test. */
  readonly run: (worker: Worker) => void;
  readonly stop: () => Promise<void>;
}

/** Registers the hooks of the surrounding `describe`. */
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
