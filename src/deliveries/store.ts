import type { Sql } from "../db/sql.ts";
import type { Trigger } from "../events/event.ts";
import type { AttemptResult, DeliveryStatus } from "./delivery.ts";

/** What the fan-out makes of one event and one matching subscription. */
export interface NewDelivery {
  readonly uuid: string;
  /** Row id of the event, as a decimal string. */
  readonly eventId: string;
  readonly eventUuid: string;
  readonly subscriptionId: number;
  readonly userId: number;
  readonly resource: string;
  readonly url: string;
  readonly maxAttempts: number;
  /** W3C `traceparent` that its attempts are a part of. */
  readonly traceparent?: string | undefined;
  /** Whether this process attempts it now; otherwise it waits in the queue for a slot. */
  readonly isTaken: boolean;
}

/** An event that is fanned out. */
export interface FannedOutEvent {
  readonly id: string;
  /** JSON of its record; undefined when no delivery needs it. */
  readonly data: string | undefined;
}

/** A delivery that this process has taken out of the queue. */
export interface TakenDelivery {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly event: Trigger;
  readonly resource: string;
  /** Of the event: UTC, ISO 8601 with microseconds and a trailing `Z`. */
  readonly timestamp: string;
  /** Attempts made so far. */
  readonly attempt: number;
  readonly maxAttempts: number;
  /** Whether somebody asked for it. */
  readonly isManual: boolean;
  /** Since it was made or attempted, whichever was last. */
  readonly waitedMs: number;
  readonly ownerId: string | null;
  /** Of the event, at this moment, by the database's clock. */
  readonly eventAgeMs: number;
  /** W3C `traceparent` of what made the delivery; null when it was not traced. */
  readonly traceparent: string | null;
  /** Of the record's JSON. */
  readonly bytes: number;
  readonly subscriptionId: number;
  /** As it is now, so that a corrected URL reaches the retries; null when it was deleted. */
  readonly subscription: {
    readonly url: string;
    readonly encryptedSecret: Buffer;
    /** False also when its user is disabled. */
    readonly isActive: boolean;
    readonly user: {
      readonly id: number;
      readonly name: string;
      readonly email: string;
      readonly isAdmin: boolean;
    };
  } | null;
}

/** What this process took at once; see svc.flights. */
export interface Taken {
  /** Undefined when nothing was taken. */
  readonly flightId: string | undefined;
  readonly deliveries: readonly TakenDelivery[];
}

/** What an attempt, or the decision not to make one, does to a delivery. */
export interface Outcome {
  readonly id: string;
  /** A part of the fence: a crash of the database that takes back an insert gives its id to another delivery. */
  readonly uuid: string;
  readonly status: DeliveryStatus;
  /** Attempts made before. The fence: nothing is written when another process has made one since. */
  readonly attemptsBefore: number;
  /** Until the next attempt; undefined when there is none. */
  readonly delayMs?: number;
  readonly lastError?: string;
  /** Undefined when no POST was made. */
  readonly result?: AttemptResult;
}

/** A delivery that goes back to the queue, without an attempt. */
export interface Return {
  readonly id: string;
  /** Undefined: it waits for a slot, or for its subscription to be active. */
  readonly delayMs: number | undefined;
}

/** A subscription of which deliveries wait for a slot. */
export interface ParkedSubscription {
  readonly subscriptionId: number;
  /** Null when it was deleted. */
  readonly url: string | null;
  readonly userId: number | null;
  readonly isActive: boolean;
}

/** How many deliveries of a subscription to take, from both ends of its line. */
export interface Wanted {
  readonly subscriptionId: number;
  readonly oldest: number;
  readonly newest: number;
}

export interface DeadDelivery {
  readonly id: string;
  readonly uuid: string;
  readonly eventId: string;
  readonly eventUuid: string;
  readonly event: Trigger;
  readonly resource: string;
  readonly timestamp: string;
  readonly lastError: string | null;
  /** JSON of the record. */
  readonly data: string;
}

/** What the dispatcher does to the deliveries, their queue and the flights; each function is one statement, and bounded. */
export interface DeliveryStore {
  /**
   * Writes the deliveries of events, and takes these out of the outbox in the same commit. What is not in the outbox, because it was fanned
   * out before, gets none. Answers the ids of those that were written, by UUID.
   *
   * @param isComplete False: more deliveries of the same events follow.
   */
  insert(options: {
    readonly events: readonly FannedOutEvent[];
    readonly deliveries: readonly NewDelivery[];
    readonly isComplete: boolean;
    readonly flightMs: number;
  }): Promise<{
    readonly flightId: string | undefined;
    readonly ids: ReadonlyMap<string, string>;
    /** Time of day of the database, in ms since 1970: this machine's need not be the same. */
    readonly databaseTimeMs: number;
  }>;
  /** Takes deliveries whose time has come, the longest due first, and those after `sinceMs` before now only, when given. */
  takeDue(options: {
    readonly limit: number;
    readonly flightMs: number;
    readonly sinceMs: number | undefined;
  }): Promise<Taken>;
  /** Takes deliveries that wait for a slot. */
  takeParked(options: { readonly wanted: readonly Wanted[]; readonly flightMs: number }): Promise<Taken>;
  /** Subscriptions of which deliveries wait for a slot, by id. */
  findParked(options: {
    readonly after: number;
    readonly limit: number;
  }): Promise<readonly ParkedSubscription[]>;
  /** JSON of the records of events, by event id. */
  dataOf(eventIds: readonly string[]): Promise<ReadonlyMap<string, string>>;
  /** Writes outcomes and their attempts, and ends flights; answers the ids of what was written. */
  record(options: {
    readonly outcomes: readonly Outcome[];
    readonly landed: readonly string[];
  }): Promise<ReadonlySet<string>>;
  /** Puts deliveries back into the queue, and ends flights. */
  putBack(options: {
    readonly returns: readonly Return[];
    readonly landed: readonly string[];
  }): Promise<void>;
  /** Makes the deliveries due of flights whose time is up: the process that took them has died. */
  endOverdueFlights(limit: number): Promise<number>;
  /** The same for all flights at once, of an embedded database that nobody else can be at work on. */
  endAllFlights(): Promise<void>;
  /** Until the next delivery falls due that is not due yet; undefined when none waits. */
  nextDueInMs(): Promise<number | undefined>;
  /** Cancels deliveries whose subscription is gone; answers how many. */
  cancelOrphans(options: { readonly subscriptionId: number; readonly limit: number }): Promise<number>;
  /** Subscriptions by id that are gone, and of which deliveries are in the queue. */
  findOrphaned(limit: number): Promise<readonly number[]>;
  /** Failed deliveries whose dead letter was not confirmed for `olderThanMs`. */
  findUndeadLettered(options: {
    readonly limit: number;
    readonly olderThanMs: number;
  }): Promise<readonly DeadDelivery[]>;
  markDeadLettered(ids: readonly string[]): Promise<void>;
}

/**
 * The commit does not wait for the disk. For what is found again when a crash of the database takes the last commits back (0.6 s of them): an
 * outcome that is lost is an attempt that is made once more, under the same UUID. New deliveries wait: nobody would know of their attempts.
 */
const withoutWaiting = "(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL";

const timestampOfEvent = `to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS timestamp`;

/** The row of the outbox is what lets one fan-out in at a time, and never again after it: another that holds it makes the same deliveries. */
const insertText = (isComplete: boolean): string => `
  WITH due AS MATERIALIZED (
    SELECT event_id FROM svc.outbox WHERE event_id = ANY($1::bigint[]) ORDER BY event_id FOR UPDATE SKIP LOCKED
  ), ${
    isComplete
      ? `taken AS (DELETE FROM svc.outbox WHERE event_id = ANY(ARRAY(SELECT event_id FROM due)) RETURNING event_id)`
      : `taken AS (SELECT event_id FROM due)`
  }, data AS (
    INSERT INTO svc.event_data (event_id, data)
    SELECT given.event_id, given.data FROM unnest($1::bigint[], $2::text[]) AS given (event_id, data) JOIN taken USING (event_id)
    WHERE given.data IS NOT NULL
    ON CONFLICT (event_id) DO NOTHING
  ), fresh AS MATERIALIZED (
    SELECT nextval('svc.deliveries_id_seq') AS id, given.*
    FROM unnest($3::uuid[], $4::bigint[], $5::uuid[], $6::int[], $7::int[], $8::text[], $9::text[], $10::int[], $11::text[], $12::bool[])
      AS given (uuid, event_id, event_uuid, subscription_id, user_id, resource, url, max_attempts, traceparent, is_taken)
    JOIN taken USING (event_id)
  ), inserted AS (
    INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, url,
      max_attempts, traceparent)
    SELECT id, id, uuid, event_id, event_uuid, subscription_id, user_id, resource, 'automatic', url, max_attempts, traceparent FROM fresh
    ON CONFLICT (event_id, subscription_id, (CASE trigger_kind WHEN 'automatic' THEN 0 ELSE id END)) DO NOTHING
    RETURNING id
  ), flight AS (
    INSERT INTO svc.flights (delivery_ids, ends_at)
    SELECT array_agg(id), now() + $13 * interval '1 millisecond' FROM fresh JOIN inserted USING (id) WHERE is_taken HAVING count(*) > 0
    RETURNING id
  ), parked AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id)
    SELECT id, subscription_id, user_id FROM fresh JOIN inserted USING (id) WHERE NOT is_taken
  )
  SELECT fresh.id, fresh.uuid, (SELECT id FROM flight) AS "flightId",
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "databaseTimeMs"
  FROM fresh JOIN inserted USING (id)`;
interface InsertedRow {
  readonly id: string;
  readonly uuid: string;
  readonly flightId: string | null;
  readonly databaseTimeMs: number;
}

const insertAllText = insertText(true);
const insertSomeText = insertText(false);

/** What a claim has found leaves the queue and is noted as in flight, in one commit. One that is at its end was put back by mistake. */
const takeText = (found: string, flightMs: string): string => `
  WITH found AS MATERIALIZED (${found}), gone AS (
    DELETE FROM svc.delivery_queue WHERE delivery_id = ANY(ARRAY(SELECT delivery_id FROM found)) RETURNING delivery_id
  ), taken AS MATERIALIZED (
    SELECT delivery.* FROM gone JOIN svc.deliveries AS delivery ON delivery.id = gone.delivery_id
    WHERE delivery.status IN ('pending', 'retrying')
  ), flight AS (
    INSERT INTO svc.flights (delivery_ids, ends_at)
    SELECT array_agg(id), now() + ${flightMs} * interval '1 millisecond' FROM taken HAVING count(*) > 0
    RETURNING id
  )
  SELECT flight.id AS "flightId", taken.id, taken.uuid, taken.event_id AS "eventId", taken.event_uuid AS "eventUuid",
    event.trigger AS event, taken.resource, ${timestampOfEvent}, taken.attempt, taken.max_attempts AS "maxAttempts",
    taken.trigger_kind = 'manual' AS "isManual", (extract(epoch FROM now() - taken.updated_at) * 1000)::float8 AS "waitedMs",
    event.owner_id AS "ownerId", (extract(epoch FROM clock_timestamp() - event.occurred_at) * 1000)::float8 AS "eventAgeMs",
    taken.traceparent, coalesce(octet_length(data.data), 0) AS bytes, taken.subscription_id AS "subscriptionId",
    subscription.url, subscription.encrypted_secret AS "encryptedSecret",
    subscription.is_active AND subscriber.disabled_at IS NULL AS "isActive",
    subscriber.id AS "userId", subscriber.name, subscriber.email, subscriber.is_admin AS "isAdmin"
  FROM flight CROSS JOIN taken
  JOIN svc.events AS event ON event.id = taken.event_id
  LEFT JOIN svc.event_data AS data ON data.event_id = taken.event_id
  LEFT JOIN svc.subscriptions AS subscription ON subscription.id = taken.subscription_id
  LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE ${withoutWaiting}
  ORDER BY taken.id`;

interface TakenRow extends Omit<TakenDelivery, "subscription"> {
  readonly flightId: string;
  readonly url: string | null;
  readonly encryptedSecret: Buffer;
  readonly isActive: boolean;
  readonly userId: number;
  readonly name: string;
  readonly email: string;
  readonly isAdmin: boolean;
}

// With a lower bound, a claim does not pass the dead versions of what was due before: a long transaction keeps them all.
const takeDueText = takeText(
  `SELECT delivery_id FROM svc.delivery_queue
    WHERE due_at > coalesce(now() - $3 * interval '1 millisecond', '-infinity') AND due_at <= now()
    ORDER BY due_at LIMIT $1 FOR UPDATE SKIP LOCKED`,
  "$2",
);

const takeParkedText = takeText(
  `SELECT picked.delivery_id
    FROM unnest($1::int[], $2::int[], $3::int[]) AS wanted (subscription_id, oldest, newest)
    CROSS JOIN LATERAL (
      SELECT delivery_id FROM (
        SELECT delivery_id FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = wanted.subscription_id
        ORDER BY delivery_id LIMIT wanted.oldest FOR UPDATE SKIP LOCKED) AS oldest
      UNION ALL
      SELECT delivery_id FROM (
        SELECT delivery_id FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = wanted.subscription_id
        ORDER BY delivery_id DESC LIMIT wanted.newest FOR UPDATE SKIP LOCKED) AS newest
    ) AS picked`,
  "$4",
);

// From one subscription to the next by the index, however many deliveries of each wait.
const findParkedText = `
  WITH RECURSIVE parked AS (
    (SELECT subscription_id FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id > $1 ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT next.subscription_id FROM svc.delivery_queue AS next
      WHERE next.due_at IS NULL AND next.subscription_id > parked.subscription_id ORDER BY next.subscription_id LIMIT 1)
    FROM parked WHERE parked.subscription_id IS NOT NULL
  ), found AS (
    SELECT subscription_id FROM parked WHERE subscription_id IS NOT NULL LIMIT $2
  )
  SELECT found.subscription_id AS "subscriptionId", subscription.url, subscription.user_id AS "userId",
    coalesce(subscription.is_active AND subscriber.disabled_at IS NULL, false) AS "isActive"
  FROM found
  LEFT JOIN svc.subscriptions AS subscription ON subscription.id = found.subscription_id
  LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  ORDER BY found.subscription_id`;

const findOrphanedText = `
  WITH RECURSIVE waiting AS (
    (SELECT subscription_id FROM svc.delivery_queue ORDER BY subscription_id LIMIT 1)
    UNION ALL
    SELECT (SELECT next.subscription_id FROM svc.delivery_queue AS next
      WHERE next.subscription_id > waiting.subscription_id ORDER BY next.subscription_id LIMIT 1)
    FROM waiting WHERE waiting.subscription_id IS NOT NULL
  )
  SELECT subscription_id AS id FROM waiting
  WHERE subscription_id IS NOT NULL AND NOT EXISTS (SELECT FROM svc.subscriptions WHERE id = waiting.subscription_id)
  LIMIT $1`;

const dataText = `SELECT event_id AS id, data FROM svc.event_data WHERE event_id = ANY($1::bigint[])`;

// A delivery that was cancelled during the POST keeps its status, and still gets its attempt: it was made.
const recordText = `
  WITH outcome AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::float8[], $5::text[], $6::timestamptz[], $7::int[], $8::int[], $9::text[],
        $10::jsonb[], $11::bytea[], $12::bool[], $13::uuid[])
      AS given (id, status, attempts_before, delay_ms, last_error, started_at, duration_ms, status_code, error, response_headers,
        response_body, response_truncated, uuid)
  ), written AS (
    UPDATE svc.deliveries AS delivery
    SET attempt = delivery.attempt + CASE WHEN outcome.started_at IS NULL THEN 0 ELSE 1 END,
      status = CASE WHEN delivery.status = 'cancelled' THEN delivery.status ELSE outcome.status END,
      last_error = CASE WHEN delivery.status = 'cancelled' THEN delivery.last_error ELSE outcome.last_error END,
      updated_at = now()
    FROM outcome
    WHERE delivery.id = outcome.id AND delivery.uuid = outcome.uuid AND delivery.attempt = outcome.attempts_before
      AND delivery.status IN ('pending', 'retrying', 'cancelled')
    RETURNING delivery.id, delivery.status, delivery.subscription_id, delivery.user_id, delivery.attempt, outcome.delay_ms
  ), again AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
    SELECT id, subscription_id, user_id, now() + delay_ms * interval '1 millisecond' FROM written WHERE status = 'retrying'
    ON CONFLICT (delivery_id) DO UPDATE SET due_at = EXCLUDED.due_at
  ), attempts AS (
    INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, status_code, error, response_headers, response_body, response_truncated)
    SELECT outcome.id, written.attempt, started_at, duration_ms, status_code, error, response_headers, response_body, response_truncated
    FROM outcome JOIN written USING (id)
    WHERE outcome.started_at IS NOT NULL
  ), landed AS (
    DELETE FROM svc.flights WHERE id = ANY($14::bigint[])
  )
  SELECT id FROM written WHERE ${withoutWaiting}`;

const putBackText = `
  WITH back AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
    SELECT delivery.id, delivery.subscription_id, delivery.user_id, now() + given.delay_ms * interval '1 millisecond'
    FROM unnest($1::bigint[], $2::float8[]) AS given (id, delay_ms)
    JOIN svc.deliveries AS delivery ON delivery.id = given.id
    WHERE delivery.status IN ('pending', 'retrying')
    ON CONFLICT (delivery_id) DO NOTHING
  )
  DELETE FROM svc.flights WHERE id = ANY($3::bigint[]) AND ${withoutWaiting}`;

const endFlightsText = `
  WITH over AS (
    DELETE FROM svc.flights WHERE id = ANY(ARRAY(
      SELECT id FROM svc.flights WHERE ends_at < now() + $2 * interval '1 millisecond' ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED))
    RETURNING delivery_ids
  ), due AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
    SELECT delivery.id, delivery.subscription_id, delivery.user_id, date_trunc('milliseconds', now())
    FROM over CROSS JOIN unnest(over.delivery_ids) AS taken (id)
    JOIN svc.deliveries AS delivery ON delivery.id = taken.id
    WHERE delivery.status IN ('pending', 'retrying')
    ON CONFLICT (delivery_id) DO NOTHING
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM due`;

const nextDueText = `
  SELECT (extract(epoch FROM due_at - now()) * 1000)::float8 AS ms
  FROM svc.delivery_queue WHERE due_at > now() ORDER BY due_at LIMIT 1`;

// Those in hand too: the attempt's outcome then finds them cancelled. Flights are few.
const cancelText = `
  WITH gone AS (
    DELETE FROM svc.delivery_queue WHERE delivery_id = ANY(ARRAY(
      SELECT delivery_id FROM svc.delivery_queue WHERE subscription_id = $1 ORDER BY delivery_id LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING delivery_id
  ), unfinished AS (
    SELECT delivery_id FROM gone
    UNION
    SELECT taken.id FROM svc.flights CROSS JOIN unnest(delivery_ids) AS taken (id)
  ), cancelled AS (
    UPDATE svc.deliveries AS delivery
    SET status = 'cancelled', last_error = 'The subscription was deleted.', updated_at = now()
    WHERE id = ANY(ARRAY(SELECT delivery_id FROM unfinished)) AND subscription_id = $1 AND status IN ('pending', 'retrying')
  )
  SELECT count(*)::int AS count FROM gone`;

const findUndeadLetteredText = `
  SELECT delivery.id, delivery.uuid, delivery.event_id AS "eventId", delivery.event_uuid AS "eventUuid", event.trigger AS event, delivery.resource,
    ${timestampOfEvent}, delivery.last_error AS "lastError", data.data
  FROM (
    SELECT * FROM svc.deliveries
    WHERE problem = 'failed' AND dead_lettered_at IS NULL AND updated_at < now() - $2 * interval '1 millisecond'
    ORDER BY id LIMIT $1
  ) AS delivery
  JOIN svc.events AS event ON event.id = delivery.event_id
  JOIN svc.event_data AS data ON data.event_id = delivery.event_id`;

const markDeadLetteredText = `UPDATE svc.deliveries SET dead_lettered_at = now() WHERE id = ANY($1::bigint[])`;

export function createDeliveryStore({ sql }: { readonly sql: Sql }): DeliveryStore {
  return {
    async insert({ events, deliveries, isComplete, flightMs }) {
      const rows = await sql<InsertedRow>(isComplete ? insertAllText : insertSomeText, [
        events.map(({ id }) => id),
        events.map(({ data }) => data ?? null),
        deliveries.map(({ uuid }) => uuid),
        deliveries.map(({ eventId }) => eventId),
        deliveries.map(({ eventUuid }) => eventUuid),
        deliveries.map(({ subscriptionId }) => subscriptionId),
        deliveries.map(({ userId }) => userId),
        deliveries.map(({ resource }) => resource),
        deliveries.map(({ url }) => url),
        deliveries.map(({ maxAttempts }) => maxAttempts),
        deliveries.map(({ traceparent }) => traceparent ?? null),
        deliveries.map(({ isTaken }) => isTaken),
        flightMs,
      ]);
      return {
        flightId: rows[0]?.flightId ?? undefined,
        databaseTimeMs: rows[0]?.databaseTimeMs ?? 0,
        ids: new Map(rows.map(({ uuid, id }) => [uuid, id])),
      };
    },
    async takeDue({ limit, flightMs, sinceMs }) {
      return takenIn(await sql<TakenRow>(takeDueText, [limit, flightMs, sinceMs ?? null]));
    },
    async takeParked({ wanted, flightMs }) {
      const rows = await sql<TakenRow>(takeParkedText, [
        wanted.map(({ subscriptionId }) => subscriptionId),
        wanted.map(({ oldest }) => oldest),
        wanted.map(({ newest }) => newest),
        flightMs,
      ]);
      return takenIn(rows);
    },
    async findParked({ after, limit }) {
      return sql<ParkedSubscription & Record<string, unknown>>(findParkedText, [after, limit]);
    },
    async dataOf(eventIds) {
      const rows = await sql<{ id: string; data: string }>(dataText, [eventIds]);
      return new Map(rows.map(({ id, data }) => [id, data]));
    },
    async record({ outcomes, landed }) {
      const written = await sql<{ id: string }>(recordText, [
        outcomes.map(({ id }) => id),
        outcomes.map(({ status }) => status),
        outcomes.map(({ attemptsBefore }) => attemptsBefore),
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
        outcomes.map(({ uuid }) => uuid),
        landed,
      ]);
      return new Set(written.map(({ id }) => id));
    },
    async putBack({ returns, landed }) {
      await sql(putBackText, [
        returns.map(({ id }) => id),
        returns.map(({ delayMs }) => delayMs ?? null),
        landed,
      ]);
    },
    async endOverdueFlights(limit) {
      const [row] = await sql<{ count: number }>(endFlightsText, [limit, 0]);
      return row?.count ?? 0;
    },
    async endAllFlights() {
      await sql(endFlightsText, [2 ** 31 - 1, 10 * 365 * 24 * 3600 * 1000]);
    },
    async nextDueInMs() {
      const [next] = await sql<{ ms: number }>(nextDueText);
      return next?.ms;
    },
    async cancelOrphans({ subscriptionId, limit }) {
      const [row] = await sql<{ count: number }>(cancelText, [subscriptionId, limit]);
      return row?.count ?? 0;
    },
    async findOrphaned(limit) {
      return (await sql<{ id: number }>(findOrphanedText, [limit])).map(({ id }) => id);
    },
    async findUndeadLettered({ limit, olderThanMs }) {
      return sql<DeadDelivery & Record<string, unknown>>(findUndeadLetteredText, [limit, olderThanMs]);
    },
    async markDeadLettered(ids) {
      if (ids.length > 0) await sql(markDeadLetteredText, [ids]);
    },
  };
}

function takenIn(rows: readonly TakenRow[]): Taken {
  const deliveries = rows.map(
    ({ flightId: _, url, encryptedSecret, isActive, userId, name, email, isAdmin, ...delivery }) => ({
      ...delivery,
      subscription:
        url === null ? null : { url, encryptedSecret, isActive, user: { id: userId, name, email, isAdmin } },
    }),
  );
  return { flightId: rows[0]?.flightId, deliveries };
}
