import { randomUUID } from "node:crypto";
import { expect } from "chai";
import type { DeliveryModel, EventModel, SubscriptionModel } from "./generated/models.ts";
import type { NewDelivery } from "../../src/deliveries/insert-deliveries.ts";
import type { DeliveryStore } from "../../src/deliveries/store.ts";
import { useCoreScene, type CoreScene, type Mutable } from "./core-scene.ts";

/** An event of the outbox, or a missing one. */
type GivenEvent = Pick<EventModel, "id" | "uuid">;

/** The store of deliveries, with one subscription. */
interface StoreScene extends CoreScene {
  readonly subscription: SubscriptionModel;
  /** Returns a delivery to the subscription that is not written yet. */
  readonly newDelivery: (event: GivenEvent, overrides?: Partial<NewDelivery>) => NewDelivery;
  /** Writes deliveries; the record of each event is `{"of":<id>}`. */
  readonly insert: (
    events: readonly GivenEvent[],
    deliveries: readonly NewDelivery[],
    isComplete?: boolean,
  ) => ReturnType<DeliveryStore["insert"]>;
  /** Adds a flight of a minute, and returns its id. */
  readonly addFlight: (...deliveries: readonly DeliveryModel[]) => Promise<string>;
}

export const flightMs = 60_000;

/** Expects a time that is this many seconds from now, or up to ten less. */
export function expectNear(date: Date | null | undefined, seconds: number): void {
  expect((date?.getTime() ?? 0) - Date.now()).to.be.within((seconds - 10) * 1_000, seconds * 1_000 + 1);
}

/** Registers the hooks of the surrounding `describe`. */
export function useStoreScene(): StoreScene {
  const scene: Mutable<StoreScene> = Object.assign(useCoreScene() as StoreScene, {
    newDelivery: (event: GivenEvent, overrides: Partial<NewDelivery> = {}): NewDelivery => ({
      uuid: randomUUID(),
      eventId: String(event.id),
      eventUuid: event.uuid,
      subscriptionId: scene.subscription.id,
      userId: scene.subscription.userId,
      resource: "notes",
      url: scene.subscription.url,
      maxAttempts: 3,
      isTaken: true,
      ...overrides,
    }),
    insert: (events: readonly GivenEvent[], deliveries: readonly NewDelivery[], isComplete = true) =>
      scene.store.insert({
        events: events.map(({ id, uuid }) => ({ id: String(id), uuid, data: `{"of":${id}}` })),
        deliveries,
        isComplete,
        flightMs,
      }),
    async addFlight(...deliveries: readonly DeliveryModel[]) {
      const [row] = await scene.core.sql<{ id: string }>(
        "INSERT INTO svc.flights (delivery_ids, ends_at) VALUES ($1, now() + interval '1 minute') RETURNING id",
        [deliveries.map(({ id }) => String(id))],
      );
      return row?.id ?? "";
    },
  });
  beforeEach(async () => {
    scene.subscription = await scene.work.addSubscription();
  });
  return scene;
}
