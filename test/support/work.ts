import { randomUUID } from "node:crypto";
import type { PrismaClient } from "../../src/db/generated/client.ts";
import type {
  AttemptModel,
  DeliveryModel,
  DeliveryUncheckedCreateInput,
  EventModel,
  EventUncheckedCreateInput,
  SubscriptionModel,
  SubscriptionUncheckedCreateInput,
  UserModel,
  UserUncheckedCreateInput,
} from "../../src/db/generated/models.ts";
import type { AttemptResult } from "../../src/deliveries/delivery.ts";
import type { Admission } from "../../src/deliveries/admission.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";

/** Seals the secrets of the subscriptions that `createWork` makes. */
export const secretBox = createSecretBox(Buffer.alloc(32, 7));

/** Rows of the service's own tables, each with everything that it needs, and what became of them. */
export interface Work {
  addUser(overrides?: Partial<UserUncheckedCreateInput>): Promise<UserModel>;
  /** Of a user of its own unless one is named. */
  addSubscription(overrides?: Partial<SubscriptionUncheckedCreateInput>): Promise<SubscriptionModel>;
  addEvent(overrides?: Partial<EventUncheckedCreateInput>): Promise<EventModel>;
  /** Due now, in no queue, of an event that the subscription's user owns. */
  addDelivery(
    subscription: SubscriptionModel,
    overrides?: Partial<DeliveryUncheckedCreateInput>,
  ): Promise<DeliveryModel>;
  deliveryOf(id: bigint): Promise<DeliveryModel>;
  attemptsOf(id: bigint): Promise<readonly AttemptModel[]>;
  events(): Promise<readonly EventModel[]>;
  deliveries(): Promise<readonly DeliveryModel[]>;
  /** Empties the tables. */
  clear(): Promise<void>;
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
    async addDelivery({ id: subscriptionId, userId, resource, url }, overrides) {
      const event = await work.addEvent({ ownerId: String(userId), fannedOutAt: new Date() });
      const [row] = await prisma.$queryRaw<[{ id: bigint }]>`SELECT nextval('svc.deliveries_id_seq') AS id`;
      const uuid = randomUUID();
      return prisma.delivery.create({
        data: {
          id: row.id,
          rootDeliveryId: row.id,
          uuid,
          eventId: event.id,
          eventUuid: event.uuid,
          subscriptionId,
          userId,
          resource,
          url,
          triggerKind: "automatic",
          maxAttempts: 3,
          body: Buffer.from(JSON.stringify({ delivery_id: uuid })),
          nextAttemptAt: new Date(),
          ...overrides,
        },
      });
    },
    deliveryOf: (id) => prisma.delivery.findUniqueOrThrow({ where: { id } }),
    attemptsOf: (id) => prisma.attempt.findMany({ where: { deliveryId: id }, orderBy: { number: "asc" } }),
    events: () => prisma.event.findMany({ orderBy: { id: "asc" } }),
    deliveries: () => prisma.delivery.findMany({ orderBy: { id: "asc" } }),
    async clear() {
      await prisma.$executeRaw`TRUNCATE svc.users, svc.tokens, svc.subscriptions, svc.events, svc.deliveries, svc.attempts`;
    },
  };
  return work;
}

/** So long from now; negative for the past. */
export function inSeconds(seconds: number): Date {
  return new Date(Date.now() + seconds * 1000);
}

/** What an attempt comes to when the receiver is content. */
export const success = (): AttemptResult => ({
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 200,
  isResponseTruncated: false,
});

/** And when it is not. */
export const failure = (): AttemptResult => ({
  startedAt: new Date(),
  durationMs: 1,
  statusCode: 500,
  error: "http",
  detail: "127.0.0.1:9 answered 500.",
  isResponseTruncated: false,
});

/** Every receiver may have every attempt. */
export const admitAll: Pick<Admission, "admit"> = {
  admit: () => Promise.resolve({ kind: "go", done: () => undefined }),
};
