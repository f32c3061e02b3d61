import { randomUUID } from "node:crypto";
import type { PrismaClient } from "../db/generated/client.ts";
import type { AttemptModel, DeliveryModel } from "../db/generated/models.ts";
import { noTracing, type Tracing } from "../tracing.ts";
import type { DeliveryStatus } from "./delivery.ts";

export interface DeliveryFilter {
  /** Undefined: everybody's. */
  readonly userId?: number | undefined;
  readonly subscriptionId?: number | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly eventId?: bigint | undefined;
}

export interface DeliveryRow extends DeliveryModel {
  /** Null when it is at its end, is being attempted, or waits for a slot or its subscription. */
  readonly nextAttemptAt: Date | null;
}

export type RetryAnswer =
  | { readonly kind: "created"; readonly delivery: DeliveryRow }
  | { readonly kind: "refused"; readonly reason: string };

/** What people and their programs read of deliveries, and the manual retry. */
export interface DeliveryHistory {
  /** Newest first. */
  list(options: {
    readonly filter: DeliveryFilter;
    readonly skip: number;
    readonly take: number;
  }): Promise<{ readonly rows: readonly DeliveryRow[]; readonly total: number }>;
  find(id: bigint): Promise<DeliveryRow | undefined>;
  /** In the order in which they were made. */
  attemptsOf(id: bigint): Promise<readonly AttemptModel[]>;
  /**
   * Makes a new delivery of the same payload, under a UUID of its own; the sweep publishes it. Refused unless the delivery
   * has failed, its subscription is there, and its chain has had fewer manual retries than `limit`.
   */
  retry(options: { readonly id: bigint; readonly limit: number }): Promise<RetryAnswer>;
}

export function createDeliveryHistory({
  prisma,
  listPrisma = prisma,
  tracing = noTracing,
}: {
  readonly prisma: PrismaClient;
  /** Reads lists, which have a time limit of their own. */
  readonly listPrisma?: PrismaClient;
  /** A manual retry is part of the trace that asks for it, or else of the failed delivery's. */
  readonly tracing?: Tracing;
}): DeliveryHistory {
  return {
    async list({ filter, skip, take }) {
      const where = {
        ...(filter.userId === undefined ? {} : { userId: filter.userId }),
        ...(filter.subscriptionId === undefined ? {} : { subscriptionId: filter.subscriptionId }),
        ...(filter.status === undefined ? {} : { status: filter.status }),
        ...(filter.eventId === undefined ? {} : { eventId: filter.eventId }),
      };
      const [rows, total] = await Promise.all([
        listPrisma.delivery.findMany({ where, orderBy: { id: "desc" }, skip, take }),
        listPrisma.delivery.count({ where }),
      ]);
      return { rows: await withNextAttempt(listPrisma, rows), total };
    },
    async find(id) {
      const found = await prisma.delivery.findUnique({ where: { id } });
      return found === null ? undefined : (await withNextAttempt(prisma, [found]))[0];
    },
    async attemptsOf(id) {
      return prisma.attempt.findMany({ where: { deliveryId: id }, orderBy: { number: "asc" } });
    },
    async retry({ id, limit }) {
      return prisma.$transaction(async (tx): Promise<RetryAnswer> => {
        const failed = await tx.delivery.findUniqueOrThrow({ where: { id } });
        // Two retries of one chain at once would both find room under the limit: the root's row lets one in at a time.
        await tx.$queryRaw`SELECT id FROM svc.deliveries WHERE id = ${failed.rootDeliveryId} FOR UPDATE`;
        if (failed.status !== "failed") {
          return {
            kind: "refused",
            reason: `Only a failed delivery can be retried; this one is ${failed.status}.`,
          };
        }
        const subscription = await tx.subscription.findUnique({ where: { id: failed.subscriptionId } });
        if (subscription === null)
          return { kind: "refused", reason: "The subscription of this delivery was deleted." };
        const retries = await tx.delivery.count({
          where: { rootDeliveryId: failed.rootDeliveryId, triggerKind: "manual" },
        });
        if (retries >= limit) {
          return {
            kind: "refused",
            reason: `The manual retry limit of ${limit} for this delivery has been reached.`,
          };
        }
        const uuid = randomUUID();
        const delivery = await tx.delivery.create({
          data: {
            uuid,
            eventId: failed.eventId,
            eventUuid: failed.eventUuid,
            subscriptionId: failed.subscriptionId,
            userId: failed.userId,
            resource: failed.resource,
            parentDeliveryId: failed.id,
            rootDeliveryId: failed.rootDeliveryId,
            triggerKind: "manual",
            maxAttempts: failed.maxAttempts,
            url: subscription.url,
            traceparent: tracing.current()?.traceparent ?? failed.traceparent,
          },
        });
        // By the database's clock, as everything in the queue.
        const [queued] = await tx.$queryRaw<[{ due_at: Date }]>`
          INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
          VALUES (${delivery.id}, ${delivery.subscriptionId}, ${delivery.userId}, date_trunc('milliseconds', now())) RETURNING due_at`;
        return { kind: "created", delivery: { ...delivery, nextAttemptAt: queued.due_at } };
      });
    },
  };
}

async function withNextAttempt(
  prisma: PrismaClient,
  rows: readonly DeliveryModel[],
): Promise<readonly DeliveryRow[]> {
  const waiting = await prisma.queuedDelivery.findMany({
    where: { deliveryId: { in: rows.map(({ id }) => id) } },
  });
  const dueAt = new Map(waiting.map((entry) => [entry.deliveryId, entry.dueAt]));
  return rows.map((row) => ({ ...row, nextAttemptAt: dueAt.get(row.id) ?? null }));
}
