import { openSigning } from "../../src/subscriptions/signing.ts";
import type { DeliveryModel, SubscriptionModel } from "./generated/models.ts";
import type { Done, Reservation } from "../../src/deliveries/admission/admission.ts";
import {
  createAttempts,
  type Attempts,
  type AttemptsOptions,
} from "../../src/deliveries/attempt/attempts.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import type { Flight } from "../../src/deliveries/flights.ts";
import { createAnnounce } from "../../src/deliveries/messages.ts";
import type { TakenDeliveries } from "../../src/deliveries/taken.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Mutable } from "./core-scene.ts";
import { secretBox } from "./work.ts";
import { useWorkerScene, type WorkerScene } from "./worker-scene.ts";

type Post = Parameters<AttemptsOptions["send"]>[0];
export type Visit = Parameters<Reservation["enter"]>[0];

/** The worker that makes attempts, with one due delivery. */
interface AttemptsScene extends WorkerScene {
  readonly subscription: SubscriptionModel;
  readonly delivery: DeliveryModel;
  readonly attempts: Attempts;
  readonly posts: Post[];
  /** Waits of the deliveries that went into the queue. */
  readonly queued: (number | undefined)[];
  /** Arguments of the released slots. */
  readonly done: Parameters<Done>[];
  readonly freed: number;
  /** Number of reservations that were left without an attempt. */
  readonly left: number;
  readonly open: (
    answer: (post: Post) => AttemptResult | Promise<AttemptResult>,
    overrides?: Partial<AttemptsOptions>,
  ) => void;
  /** Takes the due deliveries, all in one flight. */
  readonly take: () => Promise<readonly DeliveryInFlight[]>;
  readonly reserved: (enter: (visit: Visit) => void) => Reservation;
  /** A reservation of a free slot. */
  readonly free: Reservation;
  /** Starts the due deliveries. */
  readonly startAll: (at?: Reservation) => Promise<void>;
  /** Returns the current delivery. */
  readonly current: () => Promise<DeliveryModel>;
}

/** Converts taken deliveries to the form that the sweep passes on. */
export function inFlight({ flightId, beganAtMs, deliveries }: TakenDeliveries): readonly DeliveryInFlight[] {
  const flight: Flight = { id: flightId ?? "", unwritten: deliveries.length, beganAtMs };
  return deliveries.map((taken) => ({
    ...taken,
    subscription: taken.subscription as DeliveryInFlight["subscription"],
    happenedAtMs: performance.now(),
    payload: undefined,
    flight,
  }));
}

/** Registers the hooks of the `describe` around it. */
export function useAttemptsScene(): AttemptsScene {
  const reserved = (enter: (visit: Visit) => void): Reservation => ({
    enter,
    leave: () => (scene.left += 1),
  });
  const free = reserved(({ begin }) => begin((...result) => scene.done.push(result)));
  const scene: Mutable<AttemptsScene> = Object.assign(useWorkerScene() as AttemptsScene, {
    open(
      answer: (post: Post) => AttemptResult | Promise<AttemptResult>,
      overrides: Partial<AttemptsOptions> = {},
    ) {
      scene.attempts = createAttempts({
        broker: scene.broker,
        store: scene.store,
        async send(post) {
          scene.posts.push(post);
          return { kind: "made", result: await answer(post) };
        },
        health: { note: () => undefined },
        figures: { attempted: () => undefined },
        openSigning: (sealed) => openSigning(secretBox, sealed, Date.now()),
        scheduleOf: () => ({ maxAttempts: 3, backoffMs: [60_000] }),
        jitter: 0,
        flightMs: 60_000,
        metrics: createMetrics().deliveries,
        log: scene.log,
        onQueued: (delayMs) => scene.queued.push(delayMs),
        announce: createAnnounce({ broker: scene.broker, dispatchers: () => 1 }),
        onFree: () => (scene.freed += 1),
        random: () => 0.5,
        ...overrides,
      });
      scene.run(scene.attempts);
    },
    take: async () =>
      inFlight(await scene.store.takeDue({ limit: 100, flightMs: 60_000, sinceMs: undefined })),
    reserved,
    free,
    async startAll(at = free) {
      for (const one of await scene.take()) scene.attempts.start(one, at);
    },
    current: () => scene.work.deliveryOf(scene.delivery.id),
  });
  beforeEach(async () => {
    scene.subscription = await scene.work.addSubscription();
    scene.delivery = await scene.work.addDelivery(scene.subscription, { data: '{"text":"é","price":1.50}' });
    Object.assign(scene, { posts: [], queued: [], done: [], freed: 0, left: 0 });
  });
  return scene;
}
