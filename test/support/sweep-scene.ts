import type { DeliveryModel, SubscriptionModel } from "./generated/models.ts";
import type { Attempts } from "../../src/deliveries/attempt/attempts.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";
import { createAnnounce } from "../../src/deliveries/messages.ts";
import type { DeliveryStore } from "../../src/deliveries/store.ts";
import type { Outcome, RequeuedDelivery } from "../../src/deliveries/outcome.ts";
import { createSweep, type Sweep, type SweepOptions } from "../../src/deliveries/sweep.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Mutable } from "./core-scene.ts";
import { notesEligibility } from "./notes-eligibility.ts";
import { until } from "./wait.ts";
import { createWatchedAdmission, unlimited, type WatchedAdmission } from "./work.ts";
import { useWorkerScene, type WorkerScene } from "./worker-scene.ts";

/** Exceeds every test, so that only a wake ends such a wait. */
export const never = 600_000;

export const idsOf = (...deliveries: readonly DeliveryModel[]): readonly string[] =>
  deliveries.map(({ id }) => String(id));

/** A sweep with a subscription, and with attempts that are only recorded. */
interface SweepScene extends WorkerScene {
  readonly admission: WatchedAdmission;
  readonly subscription: SubscriptionModel;
  readonly started: DeliveryInFlight[];
  readonly outcomes: Outcome[];
  readonly returns: RequeuedDelivery[];
  /** Attempts that are never made. */
  readonly attempts: Pick<Attempts, "start" | "settle" | "putBack" | "drain">;
  readonly start: (overrides?: Partial<SweepOptions>) => Sweep;
  readonly startedIds: () => readonly string[];
  readonly untilStarted: (count: number) => Promise<unknown>;
  /** Returns a store that counts the first query of each turn. */
  readonly watchTurns: () => {
    readonly store: DeliveryStore;
    readonly next: (count: number) => Promise<unknown>;
  };
}

/** Registers the hooks of the surrounding `describe`. */
export function useSweepScene(): SweepScene {
  const scene: Mutable<SweepScene> = Object.assign(useWorkerScene() as SweepScene, {
    start(overrides: Partial<SweepOptions> = {}) {
      const sweep = createSweep({
        broker: scene.broker,
        announce: createAnnounce({ broker: scene.broker, dispatchers: () => 1 }),
        store: scene.store,
        admission: scene.admission,
        rates: unlimited,
        attempts: scene.attempts,
        eligibility: notesEligibility(),
        isKnown: (resource) => resource === "notes",
        scheduleOf: () => ({ maxAttempts: 3, backoffMs: [3_600_000] }),
        flightMs: 60_000,
        log: scene.log,
        metrics: createMetrics().deliveries,
        intervalMs: 5,
        requeueAfterMs: 60_000,
        longestWaitMs: 24 * 3_600_000,
        ...overrides,
      });
      scene.run(sweep);
      return sweep;
    },
    startedIds: () => scene.started.map(({ id }) => id),
    untilStarted: (count: number) =>
      until(() => scene.started.length >= count, { what: `${count} attempts` }),
    watchTurns() {
      let asked = 0;
      const next = (count: number): Promise<unknown> => {
        const goal = asked + count + 1;
        return until(() => asked >= goal, { what: `${count} turns` });
      };
      const nextDueInMs = (): ReturnType<DeliveryStore["nextDueInMs"]> => {
        asked += 1;
        return scene.store.nextDueInMs();
      };
      return { store: { ...scene.store, nextDueInMs }, next };
    },
  });
  beforeEach(async () => {
    scene.subscription = await scene.work.addSubscription();
    scene.admission = createWatchedAdmission();
    Object.assign(scene, { started: [], outcomes: [], returns: [] });
    scene.attempts = notingAttempts(scene);
  });
  return scene;
}

/**
 * Returns attempts that are never made. Outcomes that are decided without an attempt are written.
 */
function notingAttempts({
  store,
  started,
  outcomes,
  returns,
}: SweepScene): Pick<Attempts, "start" | "settle" | "putBack" | "drain"> {
  const writes: Promise<unknown>[] = [];
  return {
    start: (delivery) => void started.push(delivery),
    async settle(_, outcome) {
      outcomes.push(outcome);
      writes.push(store.record({ outcomes: [outcome], endedFlights: [] }));
    },
    putBack({ flight }, back) {
      returns.push(back);
      writes.push(store.putBack({ returns: [{ ...back, flightId: flight.id }], endedFlights: [] }));
    },
    async drain() {
      await Promise.all(writes);
    },
  };
}
