import type { Sql } from "../db/sql.ts";
import type { AttemptResult, DeliveryStatus } from "./delivery.ts";

/** What the fan-out makes of one event and one matching subscription. */
export interface NewDelivery {
  readonly uuid: string;
  readonly eventUuid: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly resource: string;
  readonly url: string;
  readonly maxAttempts: number;
  readonly body: Buffer;
  /** W3C `traceparent` that its attempts are a part of. */
  readonly traceparent?: string | undefined;
}

/** A delivery that this process may attempt until the lease ends. */
export interface LeasedDelivery {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly eventUuid: string;
  readonly resource: string;
  /** Attempts made so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Whether somebody asked for it. */
  readonly isManual: boolean;
  /** When it was made, attempted, or released from a pause, whichever was last. */
  readonly updatedAt: Date;
  readonly body: Buffer;
  /** The subscription's as they are now, so that a corrected URL reaches the retries. */
  readonly url: string;
  readonly encryptedSecret: Buffer;
  readonly ownerId: string | null;
  readonly subscriptionId: number;
  /** Of the event, on the clock of `performance.now()`: its age is the database's, whose time of day need not be this machine's. */
  readonly happenedAtMs: number;
  /** W3C `traceparent` of what made the delivery; null when it was not traced. */
  readonly traceparent: string | null;
  readonly user: {
    readonly id: number;
    readonly name: string;
    readonly email: string;
    readonly isAdmin: boolean;
  };
  /** The fence: a result is written only while the row still carries it. */
  readonly leasedUntil: Date;
}

/** What an attempt, or the decision not to make one, does to a delivery. */
export interface Outcome {
  readonly lease: Pick<LeasedDelivery, "id" | "leasedUntil">;
  readonly status: DeliveryStatus;
  readonly attempt: number;
  /** Until the next attempt; undefined when there is none. */
  readonly delayMs?: number;
  readonly lastError?: string;
  /** Undefined when no POST was made. */
  readonly result?: AttemptResult;
}

/** A delivery that must wait although it is due. */
export interface Postponement {
  readonly lease: Pick<LeasedDelivery, "id" | "leasedUntil">;
  readonly delayMs: number;
  /** Shown while there is no attempt to show the error of; undefined for none. */
  readonly reason: string | undefined;
}

export interface DeadDelivery {
  readonly id: string;
  readonly uuid: string;
  readonly eventUuid: string;
  readonly lastError: string | null;
  readonly body: Buffer;
}

/** What the fan-out, deliver and sweep workers do to svc.deliveries; each function is one statement. */
export interface DeliveryStore {
  /**
   * Inserts what is not there yet for (event, subscription) and answers those, believed queued for `queuedForMs`; marks the
   * events as fanned out, in the same statement. Answers also which of the events there are no rows of.
   */
  insertMissing(options: {
    readonly eventUuids: readonly string[];
    readonly deliveries: readonly NewDelivery[];
    readonly queuedForMs: number;
  }): Promise<{
    readonly inserted: readonly { readonly id: string; readonly uuid: string }[];
    readonly unknownEvents: ReadonlySet<string>;
  }>;
  /** Takes those of the deliveries that are due, active and nobody else's. */
  lease(options: {
    readonly ids: readonly string[];
    readonly leaseMs: number;
  }): Promise<readonly LeasedDelivery[]>;
  /** Cancels those whose subscription is gone, and puts those on hold whose subscription is paused. */
  settleUnleasable(ids: readonly string[]): Promise<void>;
  /** Writes outcomes and their attempts, each only while its lease holds; answers the ids that were written. */
  record(outcomes: readonly Outcome[]): Promise<ReadonlySet<string>>;
  /** Gives leases back, and makes the deliveries due later. Counts no attempt. */
  postpone(postponements: readonly Postponement[]): Promise<void>;
  /** Takes due deliveries that no message stands for, oldest first, and believes them queued for `queuedForMs`. */
  claimDue(options: {
    readonly limit: number;
    readonly queuedForMs: number;
  }): Promise<readonly { id: string; uuid: string; attempt: number }[]>;
  /** Until the next delivery falls due that is not due yet; undefined when none waits. */
  nextDueInMs(): Promise<number | undefined>;
  /** Takes the belief back, after a publish that was not confirmed. */
  unqueue(ids: readonly string[]): Promise<void>;
  /**
   * Takes the belief back for all, after the broker was emptied.
   *
   * @param areLeasesOver Whether nobody else can be at work on a delivery, so that leases are those of a process that died.
   */
  forgetQueued(options: { readonly areLeasesOver: boolean }): Promise<void>;
  /** Makes deliveries due again whose subscription and user are active again. */
  releaseHeld(): Promise<void>;
  /** Failed deliveries whose dead letter was not confirmed for `olderThanMs`. */
  findUndeadLettered(options: {
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<readonly DeadDelivery[]>;
  markDeadLettered(ids: readonly string[]): Promise<void>;
}

// Due is rounded down: the column keeps milliseconds, and rounded up it would lie ahead of a lease that comes at once.
const insertMissingText = `
  WITH marked AS (
    UPDATE svc.events SET fanned_out_at = now() WHERE uuid = ANY($10::uuid[]) AND fanned_out_at IS NULL
  ), inserted AS (
  INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind,
    url, max_attempts, body, traceparent, next_attempt_at, queued_until)
  SELECT fresh.id, fresh.id, fresh.uuid, event.id, event.uuid, fresh.subscription_id, fresh.user_id, fresh.resource, 'automatic',
    fresh.url, fresh.max_attempts, fresh.body, fresh.traceparent, date_trunc('milliseconds', now()), now() + $9 * interval '1 millisecond'
  FROM (
    SELECT nextval('svc.deliveries_id_seq') AS id, given.*
    FROM unnest($1::uuid[], $2::uuid[], $3::int[], $4::int[], $5::text[], $6::text[], $7::int[], $8::bytea[], $11::text[])
      AS given (uuid, event_uuid, subscription_id, user_id, resource, url, max_attempts, body, traceparent)
  ) AS fresh
  JOIN svc.events AS event ON event.uuid = fresh.event_uuid
  ON CONFLICT (event_id, subscription_id) WHERE trigger_kind = 'automatic' DO NOTHING
  RETURNING id, uuid
  )
  SELECT id, uuid FROM inserted
  UNION ALL
  SELECT NULL, given.uuid FROM unnest($10::uuid[]) AS given (uuid)
  WHERE NOT EXISTS (SELECT FROM svc.events AS event WHERE event.uuid = given.uuid)`;

// The lease is rounded to what a JavaScript Date can hold, since it is compared when the outcome is written.
const leaseText = `
  UPDATE svc.deliveries AS delivery
  SET leased_until = date_trunc('milliseconds', now()) + $2 * interval '1 millisecond', url = subscription.url
  FROM svc.subscriptions AS subscription, svc.users AS subscriber, svc.events AS event
  WHERE delivery.id = ANY($1::bigint[])
    AND subscription.id = delivery.subscription_id AND subscription.is_active
    AND subscriber.id = subscription.user_id AND subscriber.disabled_at IS NULL
    AND event.id = delivery.event_id
    AND delivery.status IN ('pending', 'retrying') AND delivery.next_attempt_at <= now()
    AND (delivery.leased_until IS NULL OR delivery.leased_until < now())
  RETURNING delivery.id, delivery.uuid, delivery.event_uuid AS "eventUuid", delivery.resource, delivery.attempt,
    delivery.max_attempts AS "maxAttempts", delivery.trigger_kind = 'manual' AS "isManual", delivery.updated_at AS "updatedAt", delivery.body, delivery.url, subscription.encrypted_secret AS "encryptedSecret",
    event.owner_id AS "ownerId", delivery.traceparent, delivery.leased_until AS "leasedUntil", subscription.id AS "subscriptionId",
    (extract(epoch FROM clock_timestamp() - event.occurred_at) * 1000)::float8 AS "eventAgeMs",
    json_build_object('id', subscriber.id, 'name', subscriber.name, 'email', subscriber.email, 'isAdmin', subscriber.is_admin) AS user`;

const settleUnleasableText = `
  UPDATE svc.deliveries AS delivery
  SET status = CASE WHEN subscription.id IS NULL THEN 'cancelled' ELSE delivery.status END,
    last_error = CASE WHEN subscription.id IS NULL THEN 'The subscription was deleted.' ELSE delivery.last_error END,
    next_attempt_at = NULL, queued_until = NULL, updated_at = now()
  FROM unnest($1::bigint[]) AS given (id)
  JOIN svc.deliveries AS own ON own.id = given.id
  LEFT JOIN svc.subscriptions AS subscription ON subscription.id = own.subscription_id
  LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE delivery.id = own.id AND delivery.status IN ('pending', 'retrying')
    AND (delivery.leased_until IS NULL OR delivery.leased_until < now())
    AND (subscription.id IS NULL OR NOT subscription.is_active OR subscriber.disabled_at IS NOT NULL)`;

// A delivery that was cancelled during the POST keeps its status, and still gets its attempt: it was made.
const recordText = `
  WITH outcome AS (
    SELECT * FROM unnest($1::bigint[], $2::timestamptz[], $3::text[], $4::int[], $5::float8[], $6::text[],
        $7::timestamptz[], $8::int[], $9::int[], $10::text[], $11::jsonb[], $12::bytea[], $13::boolean[])
      AS given (id, leased_until, status, attempt, delay_ms, last_error,
        started_at, duration_ms, status_code, error, response_headers, response_body, response_truncated)
  ), written AS (
    UPDATE svc.deliveries AS delivery
    SET attempt = outcome.attempt,
      status = CASE WHEN delivery.status = 'cancelled' THEN delivery.status ELSE outcome.status END,
      last_error = CASE WHEN delivery.status = 'cancelled' THEN delivery.last_error ELSE outcome.last_error END,
      next_attempt_at = CASE WHEN delivery.status = 'cancelled' THEN NULL ELSE now() + outcome.delay_ms * interval '1 millisecond' END,
      leased_until = NULL, queued_until = NULL, updated_at = now()
    FROM outcome
    WHERE delivery.id = outcome.id AND delivery.leased_until = outcome.leased_until
    RETURNING delivery.id
  ), attempts AS (
    INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, status_code, error, response_headers, response_body, response_truncated)
    SELECT id, attempt, started_at, duration_ms, status_code, error, response_headers, response_body, response_truncated
    FROM outcome JOIN written USING (id)
    WHERE outcome.started_at IS NOT NULL
  )
  SELECT id FROM written`;

// Rounded up to a quarter of a second: they come back in groups, and wake the sweep four times a second at most.
const postponeText = `
  UPDATE svc.deliveries AS delivery
  SET next_attempt_at = to_timestamp(ceil((extract(epoch FROM now()) + given.delay_ms / 1000) * 4) / 4),
    last_error = coalesce(delivery.last_error, given.reason), leased_until = NULL, queued_until = NULL
  FROM unnest($1::bigint[], $2::timestamptz[], $3::float8[], $4::text[]) AS given (id, leased_until, delay_ms, reason)
  WHERE delivery.id = given.id AND delivery.leased_until = given.leased_until AND delivery.status IN ('pending', 'retrying')`;

const claimDueText = `
  UPDATE svc.deliveries AS delivery
  SET queued_until = now() + $2 * interval '1 millisecond'
  FROM (
    SELECT id FROM svc.deliveries
    WHERE status IN ('pending', 'retrying') AND next_attempt_at <= now()
      AND (queued_until IS NULL OR queued_until < now()) AND (leased_until IS NULL OR leased_until < now())
    ORDER BY next_attempt_at
    LIMIT $1
    FOR UPDATE SKIP LOCKED
  ) AS due
  WHERE delivery.id = due.id
  RETURNING delivery.id, delivery.uuid, delivery.attempt`;

const nextDueText = `
  SELECT (extract(epoch FROM min(next_attempt_at) - now()) * 1000)::float8 AS ms
  FROM svc.deliveries
  WHERE status IN ('pending', 'retrying') AND next_attempt_at > now()`;

const unqueueText = `UPDATE svc.deliveries SET queued_until = NULL WHERE id = ANY($1::bigint[])`;

const forgetQueuedText = `
  UPDATE svc.deliveries
  SET queued_until = NULL, leased_until = CASE WHEN $1 THEN NULL ELSE leased_until END
  WHERE status IN ('pending', 'retrying') AND (queued_until IS NOT NULL OR leased_until IS NOT NULL)`;

const releaseHeldText = `
  UPDATE svc.deliveries AS delivery
  SET next_attempt_at = date_trunc('milliseconds', now()), updated_at = now()
  FROM svc.subscriptions AS subscription, svc.users AS subscriber
  WHERE delivery.status IN ('pending', 'retrying') AND delivery.next_attempt_at IS NULL
    AND subscription.id = delivery.subscription_id AND subscription.is_active
    AND subscriber.id = subscription.user_id AND subscriber.disabled_at IS NULL`;

const findUndeadLetteredText = `
  SELECT id, uuid, event_uuid AS "eventUuid", last_error AS "lastError", body
  FROM svc.deliveries
  WHERE status = 'failed' AND dead_lettered_at IS NULL AND updated_at < now() - $2 * interval '1 millisecond'
  ORDER BY id
  LIMIT $1`;

const markDeadLetteredText = `UPDATE svc.deliveries SET dead_lettered_at = now() WHERE id = ANY($1::bigint[])`;

export function createDeliveryStore({ sql }: { readonly sql: Sql }): DeliveryStore {
  return {
    async insertMissing({ eventUuids, deliveries, queuedForMs }) {
      if (eventUuids.length === 0) return { inserted: [], unknownEvents: new Set() };
      const rows = await sql<{ id: string | null; uuid: string }>(insertMissingText, [
        deliveries.map(({ uuid }) => uuid),
        deliveries.map(({ eventUuid }) => eventUuid),
        deliveries.map(({ subscriptionId }) => subscriptionId),
        deliveries.map(({ userId }) => userId),
        deliveries.map(({ resource }) => resource),
        deliveries.map(({ url }) => url),
        deliveries.map(({ maxAttempts }) => maxAttempts),
        deliveries.map(({ body }) => body),
        queuedForMs,
        eventUuids,
        deliveries.map(({ traceparent }) => traceparent ?? null),
      ]);
      return {
        inserted: rows.flatMap(({ id, uuid }) => (id === null ? [] : [{ id, uuid }])),
        unknownEvents: new Set(rows.flatMap(({ id, uuid }) => (id === null ? [uuid] : []))),
      };
    },
    async lease({ ids, leaseMs }) {
      const leased = await sql<LeasedDelivery & { readonly eventAgeMs: number }>(leaseText, [ids, leaseMs]);
      const now = performance.now();
      return leased.map((delivery) => ({ ...delivery, happenedAtMs: now - delivery.eventAgeMs }));
    },
    async settleUnleasable(ids) {
      await sql(settleUnleasableText, [ids]);
    },
    async record(outcomes) {
      const written = await sql<{ id: string }>(recordText, [
        outcomes.map(({ lease }) => lease.id),
        outcomes.map(({ lease }) => lease.leasedUntil),
        outcomes.map(({ status }) => status),
        outcomes.map(({ attempt }) => attempt),
        outcomes.map(({ delayMs }) => delayMs ?? null),
        outcomes.map(({ lastError }) => lastError ?? null),
        outcomes.map(({ result }) => result?.startedAt ?? null),
        outcomes.map(({ result }) => result?.durationMs ?? null),
        outcomes.map(({ result }) => result?.statusCode ?? null),
        outcomes.map(({ result }) => result?.error ?? null),
        outcomes.map(({ result }) =>
          result?.responseHeaders === undefined ? null : JSON.stringify(result.responseHeaders),
        ),
        outcomes.map(({ result }) => result?.responseBody ?? null),
        outcomes.map(({ result }) => result?.isResponseTruncated ?? false),
      ]);
      return new Set(written.map(({ id }) => id));
    },
    async postpone(postponements) {
      await sql(postponeText, [
        postponements.map(({ lease }) => lease.id),
        postponements.map(({ lease }) => lease.leasedUntil),
        postponements.map(({ delayMs }) => delayMs),
        postponements.map(({ reason }) => reason ?? null),
      ]);
    },
    async claimDue({ limit, queuedForMs }) {
      return sql(claimDueText, [limit, queuedForMs]);
    },
    async nextDueInMs() {
      const [next] = await sql<{ ms: number | null }>(nextDueText);
      return next?.ms ?? undefined;
    },
    async unqueue(ids) {
      await sql(unqueueText, [ids]);
    },
    async forgetQueued({ areLeasesOver }) {
      await sql(forgetQueuedText, [areLeasesOver]);
    },
    async releaseHeld() {
      await sql(releaseHeldText);
    },
    async findUndeadLettered({ limit, olderThanMs }) {
      return sql(findUndeadLetteredText, [limit, olderThanMs]);
    },
    async markDeadLettered(ids) {
      if (ids.length > 0) await sql(markDeadLetteredText, [ids]);
    },
  };
}
