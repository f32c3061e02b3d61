import { randomUUID } from "node:crypto";
import type { PrismaClient } from "./generated/client.ts";
import type {
  AttemptModel,
  DeliveryModel,
  DeliveryUncheckedCreateInput,
  EventModel,
  EventUncheckedCreateInput,
  FlightModel,
  QueuedDeliveryModel,
  SubscriptionModel,
  SubscriptionUncheckedCreateInput,
  UserModel,
  UserUncheckedCreateInput,
} from "./generated/models.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import type { Admission, SlotRequest, Done } from "../../src/deliveries/admission/admission.ts";
import type { Rates } from "../../src/deliveries/admission/rates.ts";
import type { WebhookFilters } from "../../src/subscriptions/filters.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";

/** Encrypts the secrets of the subscriptions that `createWork` makes. */
export const secretBox = createSecretBox(Buffer.alloc(32, 7));

/** Rows of the service's own tables with all their dependencies, and their later states. */
export interface Work {
  addUser(overrides?: Partial<UserUncheckedCreateInput>): Promise<UserModel>;
  /** Adds a subscription, by default of a new user. */
  addSubscription(overrides?: Partial<SubscriptionUncheckedCreateInput>): Promise<SubscriptionModel>;
  /** Adds an event to the outbox, like the capture. */
  addEvent(overrides?: Partial<EventUncheckedCreateInput>): Promise<EventModel>;
  /**
   * Adds a delivery of a fanned-out event of the subscription's user. It is due now unless it is
   * finished.
   */
  addDelivery(subscription: SubscriptionModel, overrides?: DeliveryOverrides): Promise<DeliveryModel>;
  deliveryOf(id: bigint): Promise<DeliveryModel>;
  /** Returns the row of the queue; null without one. */
  queued(id: bigint): Promise<QueuedDeliveryModel | null>;
  flights(): Promise<readonly FlightModel[]>;
  /** Returns the ids of the events that are not fanned out. */
  outbox(): Promise<readonly bigint[]>;
  attemptsOf(id: bigint): Promise<readonly AttemptModel[]>;
  events(): Promise<readonly EventModel[]>;
  deliveries(): Promise<readonly DeliveryModel[]>;
  /** Empties the tables. */
  clear(): Promise<void>;
}

export interface DeliveryOverrides extends Partial<DeliveryUncheckedCreateInput> {
  /** JSON of the record. */
  readonly data?: string;
  /** The due time; "parked" waits for a slot, "nowhere" is in no queue. */
  readonly due?: Date | "parked" | "nowhere";
}

export function createWork(prisma: PrismaClient): Work {
  const work: Work = {
    addUser(overrides) {
      return prisma.user.create({
        data: { name: "Ada", email: `${randomUUID()}@example.com`, ...overrides },
      });
    },
    async addSubscription(overrides) {
      return prisma.subscription.create({
        data: {
          userId: overrides?.userId ?? (await work.addUser()).id,
          url: "http://127.0.0.1:9/hook",
          resource: "notes",
          events: ["on_create"],
          encryptedSecret: secretBox.encrypt("sec_test"),
          secretHint: "test",
          ...overrides,
        },
      });
    },
    addEvent(overrides) {
      return prisma.event.create({
        data: { resource: "notes", trigger: "on_create", recordId: "1", snapshot: {}, ...overrides },
      });
    },
    async addDelivery(
      { id: subscriptionId, userId, resource, url },
      { data = "{}", due, ...overrides } = {},
    ) {
      const event = await work.addEvent({ ownerId: String(userId) });
      await prisma.outboxEntry.delete({ where: { eventId: event.id } });
      await prisma.eventData.create({ data: { eventId: event.id, data } });
      const [row] = await prisma.$queryRaw<[{ id: bigint }]>`SELECT nextval('svc.deliveries_id_seq') AS id`;
      const { status = "pending" } = overrides;
      const delivery = await prisma.delivery.create({
        data: {
          attempt: ["retrying", "delivered"].includes(status) ? 1 : 0,
          lastError: ["retrying", "failed", "cancelled"].includes(status) ? "refused" : null,
          id: row.id,
          rootDeliveryId: row.id,
          uuid: randomUUID(),
          eventId: event.id,
          eventUuid: event.uuid,
          subscriptionId,
          userId,
          resource,
          url,
          triggerKind: "automatic",
          maxAttempts: 3,
          ...overrides,
        },
      });
      const isOpen = delivery.status === "pending" || delivery.status === "retrying";
      const place = due ?? (isOpen ? new Date() : "nowhere");
      if (place !== "nowhere") {
        const dueAt = place === "parked" ? null : place;
        await prisma.queuedDelivery.create({ data: { deliveryId: row.id, subscriptionId, userId, dueAt } });
      }
      return delivery;
    },
    deliveryOf: (id) => prisma.delivery.findUniqueOrThrow({ where: { id } }),
    queued: (id) => prisma.queuedDelivery.findUnique({ where: { deliveryId: id } }),
    flights: () => prisma.flight.findMany({ orderBy: { id: "asc" } }),
    async outbox() {
      return (await prisma.outboxEntry.findMany({ orderBy: { eventId: "asc" } })).map(
        ({ eventId }) => eventId,
      );
    },
    attemptsOf: (id) => prisma.attempt.findMany({ where: { deliveryId: id }, orderBy: { number: "asc" } }),
    events: () => prisma.event.findMany({ orderBy: { id: "asc" } }),
    deliveries: () => prisma.delivery.findMany({ orderBy: { id: "asc" } }),
    async clear() {
      await prisma.$executeRaw`TRUNCATE svc.users, svc.tests, svc.tokens, svc.subscriptions, svc.events, svc.outbox, svc.event_data, svc.relays, svc.deliveries,
        svc.delivery_queue, svc.flights, svc.attempts`;
    },
  };
  return work;
}

/** Returns a time this many seconds from now; negative for the past. */
export function inSeconds(seconds: number): Date {
  return new Date(Date.now() + seconds * 1000);
}

/** Result of a successful attempt. */
export const success = (): AttemptResult => ({
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 200,
  isResponseTruncated: false,
});

/** Result of a failed attempt. */
export const failure = (): AttemptResult => ({
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 500,
  error: "http",
  detail: "127.0.0.1:9 answered 500.",
  isResponseTruncated: false,
});

/** An admission for tests: by default, every receiver may have every attempt. */
export interface WatchedAdmission extends Pick<
  Admission,
  "reserve" | "refusalOf" | "hasShareOf" | "inTurn" | "roomOf"
> {
  /** Requested slots, granted or not. */
  readonly asked: SlotRequest[];
  /** Results of the attempts that began, in the order of their ends. */
  readonly results: Parameters<Done>[];
  /** Number of places that are reserved or in use. */
  held: number;
  /** Whether only other dispatchers have slots of the receivers. */
  isForOthers: boolean;
  /** Number of places of a receiver that is not refused. */
  room: number;
  /** Returns why there is no place. */
  refuses: (candidate: Pick<SlotRequest, "userId" | "url" | "lane">) => "busy" | "silent" | undefined;
}

export function createWatchedAdmission(): WatchedAdmission {
  const admission: WatchedAdmission = {
    asked: [],
    results: [],
    held: 0,
    isForOthers: false,
    room: 100,
    refuses: () => undefined,
    refusalOf: (candidate) => admission.refuses(candidate),
    hasShareOf: () => !admission.isForOthers,
    inTurn: (items) => items,
    roomOf: (candidate) => (admission.refuses(candidate) === undefined ? admission.room : 0),
    reserve(candidate) {
      admission.asked.push(candidate);
      if (admission.refuses(candidate) !== undefined) return undefined;
      admission.held += 1;
      return {
        leave: () => void (admission.held -= 1),
        enter: ({ begin }) =>
          begin((...result) => {
            admission.held -= 1;
            admission.results.push(result);
          }),
      };
    },
  };
  return admission;
}

/** Rates of subscriptions without a limit. */
export const unlimited: Rates = {
  take: async () => new Map(),
  waitMs: () => 0,
};

/** Filters that let every event pass. */
export const unfiltered: Pick<WebhookFilters, "passing"> = { passing: async (_, answers) => answers };
