import type { OutgoingMessage } from "../../src/broker/broker.ts";
import { createSeal } from "../../src/broker/seal.ts";
import { exchanges } from "../../src/broker/topology.ts";
import type { EventModel, SubscriptionModel } from "./generated/models.ts";
import type { DeliveryInFlight } from "../../src/deliveries/attempt/delivery-in-flight.ts";
import { createFanOut, type FanOutOptions } from "../../src/deliveries/fan-out.ts";
import { createAnnounce } from "../../src/deliveries/messages.ts";
import { eventMessage } from "../../src/events/event-message.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import type { Mutable } from "./core-scene.ts";
import { notesEligibility } from "./notes-eligibility.ts";
import { until } from "./wait.ts";
import { createWatchedAdmission, unfiltered, unlimited, type WatchedAdmission } from "./work.ts";
import { useWorkerScene, type WorkerScene } from "./worker-scene.ts";

const seal = createSeal(Buffer.alloc(32, 1));

/** Returns a note's event as the relay publishes it. */
export const messageOf = ({
  id,
  uuid,
  ownerId,
  resource = "notes",
  previous = null,
}: Pick<EventModel, "id" | "uuid" | "ownerId"> &
  Partial<Pick<EventModel, "resource" | "previous">>): OutgoingMessage =>
  eventMessage({
    event: {
      id: String(id),
      uuid,
      resource,
      trigger: "on_create",
      recordId: "1",
      ownerId,
      timestamp: "2026-03-28T14:30:00.123456Z",
    },
    data: '{"text":"é"}',
    ...(previous === null ? {} : { previous: JSON.stringify(previous) }),
    seal,
  });

/** A fan-out with a subscription and an event for it, and with attempts that are only recorded. */
export interface FanOutScene extends WorkerScene {
  readonly admission: WatchedAdmission;
  readonly subscription: SubscriptionModel;
  readonly event: EventModel;
  readonly started: DeliveryInFlight[];
  /** Number of times that deliveries were left to the queue. */
  readonly parked: number;
  readonly start: (overrides?: Partial<FanOutOptions>) => void;
  /** Returns the published messages other than events. */
  readonly otherMessages: () => readonly OutgoingMessage[];
  readonly untilTurns: (count: number) => Promise<unknown>;
  /** Adds events for the subscription. */
  readonly addEvents: (count: number) => Promise<readonly EventModel[]>;
}

/** Registers the hooks of the surrounding `describe`. */
export function useFanOutScene(): FanOutScene {
  const scene: Mutable<FanOutScene> = Object.assign(useWorkerScene() as FanOutScene, {
    start(overrides: Partial<FanOutOptions> = {}) {
      const metrics = createMetrics();
      const eligibility = notesEligibility();
      const fanOut = createFanOut({
        broker: scene.broker,
        seal,
        store: scene.store,
        eligibility,
        subscribers: createSubscriberFinder({
          sql: scene.core.sql,
          eligibility,
          filters: unfiltered,
          holdForMs: 604_800_000,
          now: () => performance.now(),
        }),
        isKnown: (resource) => resource === "notes",
        scheduleOf: () => ({ maxAttempts: 4, backoffMs: [] }),
        admission: scene.admission,
        rates: unlimited,
        attempts: { start: (delivery) => void scene.started.push(delivery), drain: async () => undefined },
        figures: { changed: () => undefined },
        flightMs: 60_000,
        onParked: () => (scene.parked += 1),
        announce: createAnnounce({ broker: scene.broker, dispatchers: () => 1 }),
        log: scene.log,
        metrics: { ...metrics.events, ...metrics.deliveries },
        ...overrides,
      });
      scene.run(fanOut);
    },
    otherMessages: () => scene.broker.published.filter(({ exchange }) => exchange !== exchanges.events),
    untilTurns: (count: number) =>
      until(() => scene.lines.filter(({ event: name }) => name === "fan_out.turn").length >= count, {
        what: `${count} turns`,
      }),
    async addEvents(count: number) {
      const events = [];
      for (let one = 0; one < count; one++)
        events.push(await scene.work.addEvent({ ownerId: String(scene.subscription.userId) }));
      return events;
    },
  });
  beforeEach(async () => {
    scene.subscription = await scene.work.addSubscription();
    scene.event = await scene.work.addEvent({ ownerId: String(scene.subscription.userId) });
    scene.admission = createWatchedAdmission();
    Object.assign(scene, { started: [], parked: 0 });
  });
  return scene;
}
