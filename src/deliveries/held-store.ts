import { randomUUID } from "node:crypto";
import { getRow, valuesCte, type Sql } from "../db/sql.ts";
import { isLost } from "../db/statement-batch.ts";
import { offSince } from "../subscriptions/find-off.ts";
import type { WaitingSubscription } from "./store.ts";
import { heldOf, heldOrder, takeHeldText, waitingColumns, waitingSources } from "./store-texts.ts";
import { toTaken, type TakenDeliveries, type TakenRow } from "./taken.ts";

/** A subscription with held deliveries, or with deliveries to drop. */
export type HeldSubscription = WaitingSubscription & {
  /** Whether the subscription has been off for longer than deliveries are held. */
  readonly isOver: boolean;
  /** Id of the last held delivery that the owner drops, as a decimal string. */
  readonly discardTo: string | null;
};

/** The statements on held deliveries. Each function runs one bounded statement. */
export interface HeldStore {
  /** Returns subscriptions with held deliveries, by id. */
  find(options: {
    readonly after: number;
    readonly limit: number;
    readonly holdForMs: number;
  }): Promise<readonly HeldSubscription[]>;
  /**
   * Takes the oldest held delivery of a subscription, unless another dispatcher sends them. Takes
   * up to `limit` when the oldest ones all belong to replays, which have no order to keep. `limit`
   * is at most `replayedAtOnce`. First holds deliveries again that an earlier take may have taken
   * whose answer was lost.
   */
  takeOldest(options: {
    readonly subscriptionId: number;
    readonly holder: string;
    readonly flightMs: number;
    readonly limit: number;
  }): Promise<TakenDeliveries>;
  /**
   * Returns whether deliveries of a subscription wait in the queue for a slot, or for its rate
   * limit.
   */
  isPassed(subscriptionId: number): Promise<boolean>;
  /** Releases a subscription, so that other dispatchers can take its deliveries. */
  leave(options: { readonly subscriptionId: number; readonly holder: string }): Promise<void>;
  /** Cancels held deliveries of a subscription, the oldest first. Returns how many. */
  cancel(options: {
    readonly subscriptionId: number;
    /** Id of the last delivery to cancel; undefined for all. */
    readonly upTo: string | undefined;
    /** Least time for which the subscription must be off, or nothing is cancelled. */
    readonly offForMs?: number | undefined;
    readonly reason: string;
    readonly limit: number;
  }): Promise<number>;
  /** Deletes a request to drop deliveries that is done. */
  endDiscard(options: { readonly subscriptionId: number; readonly upTo: string }): Promise<void>;
  /** Deletes requests to drop without a held delivery: all were sent, or cancelled otherwise. */
  forgetDiscards(): Promise<void>;
}

const ofHeld = { table: "svc.deliveries", condition: "held_at IS NOT NULL", after: "$1", order: heldOrder };

const findText = `
  WITH RECURSIVE ${valuesCte("held", "subscription_id", ofHeld)}, found AS (
    SELECT subscription_id FROM held WHERE subscription_id IS NOT NULL LIMIT $2
  )
  SELECT ${waitingColumns}, coalesce(${offSince} < now() - $3 * interval '1 millisecond', false) AS "isOver", discard.up_to AS "discardTo"
  FROM ${waitingSources}
  LEFT JOIN svc.discards AS discard ON discard.subscription_id = found.subscription_id
  ORDER BY found.subscription_id`;

const holdAgainText = `
  WITH ended AS (DELETE FROM svc.flights WHERE id = $1 RETURNING delivery_ids)
  UPDATE svc.deliveries SET status = 'held', held_at = now(), updated_at = now()
  WHERE id = ANY(ARRAY(SELECT unnest(delivery_ids) FROM ended)) AND status IN ('pending', 'retrying')`;

const parkedText = `SELECT FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = $1 LIMIT 1`;

const cancelText = `
  WITH gone AS (
    UPDATE svc.deliveries SET status = 'cancelled', held_at = NULL, last_error = $3, updated_at = now()
    WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM svc.deliveries
      WHERE ${heldOf("$1")} AND id <= coalesce($2::bigint, 9223372036854775807)
        AND ($5::float8 IS NULL OR EXISTS (
          SELECT FROM svc.subscriptions AS subscription JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
          WHERE subscription.id = $1 AND ${offSince} < now() - $5 * interval '1 millisecond'))
      ORDER BY ${heldOrder} LIMIT $4 FOR UPDATE SKIP LOCKED))
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM gone`;

// Keeps the request while one of its deliveries is held: a portion skips rows that others have
// locked.
const endDiscardText = `
  DELETE FROM svc.discards WHERE subscription_id = $1 AND up_to <= $2 AND NOT EXISTS (
    SELECT FROM svc.deliveries WHERE ${heldOf("$1")} AND id <= $2)`;

// An old request would drop an older delivery that is held later. One that is being written is
// younger than the margin. LIMIT has PostgreSQL read the index up to the first such delivery.
const forgetDiscardsText = `
  DELETE FROM svc.discards AS discard WHERE asked_at < now() - interval '10 seconds' AND (
    SELECT id FROM svc.deliveries WHERE ${heldOf("discard.subscription_id")} AND id <= discard.up_to
    ORDER BY ${heldOrder} LIMIT 1) IS NULL`;

/**
 * @param indexSql Reads by index (`createIndexSql`) when it cancels; otherwise PostgreSQL may read
 *   all held deliveries.
 */
export function createHeldStore({ sql, indexSql }: { readonly sql: Sql; readonly indexSql: Sql }): HeldStore {
  /** Ids of flights that a commit without an answer may have begun, by subscription. */
  const unanswered = new Map<number, string>();
  return {
    find: ({ after, limit, holdForMs }) => sql<HeldSubscription>(findText, [after, limit, holdForMs]),
    async takeOldest({ subscriptionId, holder, flightMs, limit }) {
      const lost = unanswered.get(subscriptionId);
      if (lost !== undefined) await sql(holdAgainText, [lost]);
      const flightId = randomUUID();
      const beganAtMs = performance.now();
      try {
        const values = [subscriptionId, holder, flightMs, limit, flightId];
        const taken = toTaken(await sql<TakenRow>(takeHeldText, values), beganAtMs);
        // A take of nothing may have waited for the lost one, whose flight shows only from now on.
        if (taken.deliveries.length > 0) unanswered.delete(subscriptionId);
        return taken;
      } catch (error) {
        if (isLost(error)) unanswered.set(subscriptionId, flightId);
        throw error;
      }
    },
    isPassed: async (subscriptionId) => (await sql(parkedText, [subscriptionId])).length > 0,
    async leave({ subscriptionId, holder }) {
      await sql("DELETE FROM svc.lanes WHERE subscription_id = $1 AND holder = $2", [subscriptionId, holder]);
    },
    async cancel({ subscriptionId, upTo, offForMs, reason, limit }) {
      const values = [subscriptionId, upTo ?? null, reason, limit, offForMs ?? null];
      return (await getRow<{ count: number }>(indexSql, cancelText, values)).count;
    },
    async endDiscard({ subscriptionId, upTo }) {
      await sql(endDiscardText, [subscriptionId, upTo]);
    },
    async forgetDiscards() {
      await sql(forgetDiscardsText);
    },
  };
}
