import type { Actor } from "../kit/actor.ts";
import { actingAs, actingCte, actorText } from "../db/audit.ts";
import type { PrismaClient } from "../db/generated/client.ts";
import type { Sql, Transact } from "../db/sql.ts";
import { AppError } from "../kit/errors.ts";
import type { Caller } from "../kit/caller.ts";
import type { Condition } from "../querying/condition.ts";
import type { OrderItem } from "../querying/order.ts";
import { findSubscriptions } from "./list.ts";
import { mintSecret, secretHint, type SecretBox } from "./secret.ts";
import type { NewSubscription, OwnSubscription, SubscriptionChanges } from "./subscription.ts";

/**
 * The subscriptions of one user. Another user's subscription counts as missing: `undefined`, or
 * false. The audit trail records the actor.
 */
export interface SubscriptionStore {
  /** All that meet the filter; newest first where nothing else is asked for. */
  list(
    userId: number,
    query: { readonly filter: Condition; readonly sort: readonly OrderItem[] | undefined },
  ): Promise<readonly OwnSubscription[]>;
  find(id: number, userId: number): Promise<OwnSubscription | undefined>;
  /**
   * Creates the secret too, and returns it in clear text for the only time.
   *
   * @param transaction The transaction that it becomes a part of; by default one of its own.
   * @throws AppError when the user has the most that are allowed.
   */
  create(
    user: Pick<Caller, "id" | "isAdmin">,
    subscription: NewSubscription,
    actor: Actor,
    transaction?: Sql,
  ): Promise<{ readonly subscription: OwnSubscription; readonly secret: string }>;
  /** Leaves `updatedAt` as it is when there is no change. */
  update(
    id: number,
    userId: number,
    changes: SubscriptionChanges,
    actor: Actor,
  ): Promise<OwnSubscription | undefined>;
  /**
   * Cancels unfinished deliveries in the same commit: the first 500, and those in flight, whose
   * outcome then finds them cancelled. The dispatcher's sweep cancels the rest.
   */
  delete(id: number, userId: number, actor: Actor): Promise<boolean>;
}

const omit = { encryptedSecret: true } as const;

const createText = `
  WITH ${actingCte("$8")}
  INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, description, encrypted_secret, secret_hint)
  SELECT $1, $2, $3, $4, $5, $6, $7, $9 FROM acting
  RETURNING id, user_id AS "userId", url, resource, events, is_active AS "isActive", description, secret_hint AS "secretHint",
    created_at AS "createdAt", updated_at AS "updatedAt"`;

export function createSubscriptionStore({
  prisma,
  transact,
  listSql,
  secretBox,
  maxPerUser,
}: {
  readonly prisma: PrismaClient;
  readonly transact: Transact;
  /** Reads lists by index (`createIndexSql`). */
  readonly listSql: Sql;
  /** Limit for users without the admin flag. */
  readonly maxPerUser: number;
  readonly secretBox: Pick<SecretBox, "encrypt">;
}): SubscriptionStore {
  return {
    list: (userId, query) => findSubscriptions(listSql, userId, query),
    async find(id, userId) {
      return (await prisma.subscription.findFirst({ where: { id, userId }, omit })) ?? undefined;
    },
    async create({ id: userId, isAdmin }, created, actor, transaction) {
      const secret = mintSecret();
      const { url, resource, events, isActive, description } = created;
      const sealed = secretBox.encrypt(secret);
      const values = [userId, url, resource, events, isActive, description, sealed];
      const act = async (sql: Sql): Promise<OwnSubscription> => {
        if (!isAdmin) await refuseOneTooMany(sql, { userId, maxPerUser });
        const [row] = await sql<OwnSubscription & Record<string, unknown>>(createText, [
          ...values,
          actorText(actor),
          secretHint(secret),
        ]);
        if (row === undefined) throw new Error("no subscription was made");
        return row;
      };
      const subscription = await (transaction === undefined ? transact(act) : act(transaction));
      return { subscription, secret };
    },
    async update(id, userId, { events, ...rest }, actor) {
      const data = { ...rest, ...(events === undefined ? {} : { events: [...events] }) };
      const change = prisma.subscription.updateManyAndReturn({ where: { id, userId }, data, omit });
      const [subscription] = await actingAs(prisma, actor, change);
      return subscription;
    },
    async delete(id, userId, actor) {
      // A range of the index. For an equality the planner expects few deliveries, then reads and
      // sorts them all.
      const deletion = prisma.$queryRaw<readonly unknown[]>`
        WITH gone AS (
          DELETE FROM svc.subscriptions WHERE id = ${id} AND user_id = ${userId} RETURNING id
        ), left_queue AS (
          DELETE FROM svc.delivery_queue WHERE delivery_id = ANY(ARRAY(
            SELECT delivery_id FROM svc.delivery_queue
            WHERE EXISTS (SELECT FROM gone) AND (subscription_id, delivery_id) >= (${id}, 0) AND (subscription_id, delivery_id) <= (${id}, 9223372036854775807)
            ORDER BY subscription_id, delivery_id LIMIT 500 FOR UPDATE SKIP LOCKED))
          RETURNING delivery_id
        ), unfinished AS (
          SELECT delivery_id FROM left_queue
          UNION
          SELECT taken.id FROM svc.flights CROSS JOIN unnest(delivery_ids) AS taken (id) WHERE EXISTS (SELECT FROM gone)
        ), cancelled AS (
          UPDATE svc.deliveries
          SET status = 'cancelled', last_error = 'The subscription was deleted.', updated_at = now()
          WHERE id = ANY(ARRAY(SELECT delivery_id FROM unfinished)) AND subscription_id = ${id} AND status IN ('pending', 'retrying')
        )
        SELECT id FROM gone`;
      return (await actingAs(prisma, actor, deletion)).length > 0;
    },
  };
}

/**
 * Locks the user, so that creations of one user run one after another: two that both count 49 would
 * make 51.
 */
async function refuseOneTooMany(
  sql: Sql,
  { userId, maxPerUser }: { readonly userId: number; readonly maxPerUser: number },
): Promise<void> {
  await sql("SELECT FROM svc.users WHERE id = $1 FOR NO KEY UPDATE", [userId]);
  const [row] = await sql<{ count: number }>(
    "SELECT count(*)::int AS count FROM svc.subscriptions WHERE user_id = $1",
    [userId],
  );
  const count = row?.count ?? 0;
  if (count < maxPerUser) return;
  const message =
    `You have ${count} webhooks, and one user may have ${maxPerUser} (setting webhooks.maxPerUser). ` +
    "Delete one that is not needed, or change it into the new one.";
  throw new AppError("webhook.refused", message, { errors: { webhook: [message] } });
}
