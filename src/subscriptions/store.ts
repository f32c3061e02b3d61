import type { Actor } from "../kit/actor.ts";
import { actingCte, actorText } from "../db/audit.ts";
import { getRow, type Sql, type Transact } from "../db/sql.ts";
import { counted } from "../kit/counted.ts";
import { AppError } from "../kit/errors.ts";
import type { Caller } from "../kit/caller.ts";
import { mergeHeaders, type GivenHeaders } from "./own-headers.ts";
import { findSubscription } from "./own-subscriptions.ts";
import { rotateSecret } from "./rotate-secret.ts";
import { mintSecret, secretHint, type SecretBox } from "./secret.ts";
import { openHeaders, sealHeaders } from "./signing.ts";
import type { NewSubscription, OwnSubscription, SubscriptionChanges } from "./subscription.ts";

/**
 * Changes the subscriptions of one user. Another user's subscription counts as missing:
 * `undefined`, or false. The audit trail records the actor.
 */
export interface SubscriptionStore {
  /**
   * Creates a subscription and its secret. Returns the secret in clear text, for the only time.
   *
   * @param transaction Transaction to join. Default: a new one.
   * @throws AppError when the user has as many subscriptions as allowed.
   */
  create(
    user: Pick<Caller, "id" | "isAdmin">,
    subscription: NewSubscription,
    actor: Actor,
    transaction?: Sql,
  ): Promise<{ readonly subscription: OwnSubscription; readonly secret: string }>;
  /** Changes a subscription. `updatedAt` stays when there is no change. */
  update(
    id: number,
    userId: number,
    changes: SubscriptionChanges,
    actor: Actor,
  ): Promise<OwnSubscription | undefined>;
  /**
   * Gives a subscription a new secret, and returns it in clear text for the only time. See
   * `rotateSecret`.
   *
   * @param transaction Transaction to join. Default: a new one.
   */
  rotate(
    id: number,
    userId: number,
    options: { readonly graceSeconds: number; readonly actor: Actor },
    transaction?: Sql,
  ): Promise<{ readonly subscription: OwnSubscription; readonly secret: string } | undefined>;
  /**
   * Deletes a subscription, and cancels unfinished deliveries in the same commit: the first 500,
   * and those in flight, whose outcome then finds them cancelled. The dispatcher's sweep cancels
   * the rest.
   */
  delete(id: number, userId: number, actor: Actor): Promise<boolean>;
}

const createText = `
  WITH ${actingCte("$8")}
  INSERT INTO svc.subscriptions (user_id, url, resource, events, is_active, description, encrypted_secret, secret_hint,
    filter, encrypted_headers, header_names, headers_changed_at, rate_limit)
  SELECT $1, $2, $3, $4, $5, $6, $7, $9, $10::jsonb, $11, $12::text[], CASE WHEN $11::bytea IS NOT NULL THEN now() END, $13::float8 FROM acting
  RETURNING id`;

/** Locks the row, because the headers of a change are merged into the stored ones. */
const lockText = `
  SELECT encrypted_headers AS sealed FROM svc.subscriptions WHERE id = $1 AND user_id = $2 FOR NO KEY UPDATE`;

// Uses a range of the queue's index. With an equality, the planner expects few deliveries, and then
// reads and sorts them all.
const deleteText = `
  WITH ${actingCte("$3")}, gone AS (
    DELETE FROM svc.subscriptions USING acting WHERE id = $1 AND user_id = $2 RETURNING id
  ), left_queue AS (
    DELETE FROM svc.delivery_queue WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM svc.delivery_queue
      WHERE EXISTS (SELECT FROM gone) AND (subscription_id, delivery_id) >= ($1, 0) AND (subscription_id, delivery_id) <= ($1, 9223372036854775807)
      ORDER BY subscription_id, delivery_id LIMIT 500 FOR UPDATE SKIP LOCKED))
    RETURNING delivery_id
  ), unfinished AS (
    SELECT delivery_id FROM left_queue
    UNION
    SELECT taken.id FROM svc.flights CROSS JOIN unnest(delivery_ids) AS taken (id) WHERE EXISTS (SELECT FROM gone)
  ), cancelled AS (
    UPDATE svc.deliveries
    SET status = 'cancelled', last_error = 'The subscription was deleted.', updated_at = now()
    WHERE id = ANY(ARRAY(SELECT delivery_id FROM unfinished)) AND subscription_id = $1 AND status IN ('pending', 'retrying')
  )
  SELECT id FROM gone`;

export function createSubscriptionStore({
  sql: ownSql,
  transact,
  secretBox,
  maxPerUser,
}: {
  readonly sql: Sql;
  readonly transact: Transact;
  /** Most subscriptions of a user without the admin flag. */
  readonly maxPerUser: number;
  readonly secretBox: Pick<SecretBox, "encrypt" | "decrypt">;
}): SubscriptionStore {
  return {
    async create({ id: userId, isAdmin }, created, actor, transaction) {
      const secret = created.secret ?? mintSecret();
      const subscription = await transact(async (sql) => {
        if (!isAdmin) await refuseBeyondLimit(sql, { userId, maxPerUser });
        const values = createdValues(userId, created, { secret, actor, secretBox });
        const [row] = await sql<{ id: number }>(createText, values);
        return made(sql, row?.id ?? 0, userId);
      }, transaction);
      return { subscription, secret };
    },
    async update(id, userId, changes, actor) {
      await transact(async (sql) => {
        const [stored] = await sql<{ sealed: Uint8Array | null }>(lockText, [id, userId]);
        if (stored === undefined) return;
        const columns = Object.entries(changedColumns(changes, stored.sealed, secretBox));
        if (columns.length === 0) return;
        const sets = columns.map(([column], index) => `${column} = $${index + 3}`).join(", ");
        await sql(
          `WITH ${actingCte("$2")} UPDATE svc.subscriptions SET ${sets}, updated_at = now() FROM acting WHERE id = $1`,
          [id, actorText(actor), ...columns.map(([, value]) => value)],
        );
      });
      return findSubscription(ownSql, id, userId);
    },
    rotate: (id, userId, { graceSeconds, actor }, transaction) =>
      transact(async (sql) => {
        const secret = await rotateSecret(sql, { id, owner: userId, graceSeconds, secretBox, actor });
        return secret === undefined ? undefined : { subscription: await made(sql, id, userId), secret };
      }, transaction),
    async delete(id, userId, actor) {
      const gone = await ownSql(deleteText, [id, userId, actorText(actor)]);
      return gone.length > 0;
    },
  };
}

async function made(sql: Sql, id: number, userId: number): Promise<OwnSubscription> {
  const subscription = await findSubscription(sql, id, userId);
  if (subscription === undefined) throw new Error("no subscription was made");
  return subscription;
}

function createdValues(
  userId: number,
  created: NewSubscription,
  {
    secret,
    actor,
    secretBox,
  }: { readonly secret: string; readonly actor: Actor; readonly secretBox: Pick<SecretBox, "encrypt"> },
): readonly unknown[] {
  const { url, resource, events, isActive, description, filter, rateLimit } = created;
  const headers = mergeHeaders(created.headers, {});
  return [
    userId,
    url,
    resource,
    events,
    isActive,
    description,
    secretBox.encrypt(secret),
    actorText(actor),
    secretHint(secret),
    filter === null ? null : JSON.stringify(filter),
    sealHeaders(secretBox, headers),
    Object.keys(headers),
    rateLimit,
  ];
}

/**
 * Returns the new values by column. The column names come from this code and never from a client.
 */
function changedColumns(
  { headers, url, events, description, filter, isActive, rateLimit }: SubscriptionChanges,
  sealed: Uint8Array | null,
  secretBox: Pick<SecretBox, "encrypt" | "decrypt">,
): Readonly<Record<string, unknown>> {
  const given = {
    url,
    events,
    description,
    filter: filter === undefined || filter === null ? filter : JSON.stringify(filter),
    is_active: isActive,
    rate_limit: rateLimit,
    ...(headers !== undefined && changedHeaders(headers, sealed, secretBox)),
  };
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
}

function changedHeaders(
  headers: GivenHeaders,
  sealed: Uint8Array | null,
  secretBox: Pick<SecretBox, "encrypt" | "decrypt">,
): Readonly<Record<string, unknown>> {
  const before = sealed === null ? {} : openHeaders(secretBox, sealed);
  const after = mergeHeaders(headers, before);
  if (JSON.stringify(after) === JSON.stringify(before)) return {};
  return {
    encrypted_headers: sealHeaders(secretBox, after),
    header_names: Object.keys(after),
    headers_changed_at: new Date(),
  };
}

/**
 * Throws when the user has as many subscriptions as allowed. Locks the user, so that creations of
 * one user run one after another: two that both count 49 would make 51.
 */
async function refuseBeyondLimit(
  sql: Sql,
  { userId, maxPerUser }: { readonly userId: number; readonly maxPerUser: number },
): Promise<void> {
  await sql("SELECT FROM svc.users WHERE id = $1 FOR NO KEY UPDATE", [userId]);
  const { count } = await getRow<{ count: number }>(
    sql,
    "SELECT count(*)::int AS count FROM svc.subscriptions WHERE user_id = $1",
    [userId],
  );
  if (count < maxPerUser) return;
  const message =
    `You have ${counted(count, "webhook")}, and one user may have ${maxPerUser} (setting webhooks.maxPerUser). ` +
    "Delete one that is not needed, or change it into the new one.";
  throw new AppError("webhook.refused", message, { errors: { webhook: [message] } });
}
