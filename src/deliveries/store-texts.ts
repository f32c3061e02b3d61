import { byKey, valuesCte, withLockWait, withoutDiskWait } from "../db/sql.ts";
import { erasedReason } from "./delivery.ts";

/** Time of `event`: UTC, ISO 8601 with microseconds and a trailing `Z`. */
export const timestampOfEvent = `to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

// Deletes rows by their `ctid`, which needs no index and is safe because the rows are locked. A row
// that another transaction has changed meanwhile stays in the queue.
const fromQueue = {
  gone: `
    DELETE FROM svc.delivery_queue WHERE ctid = ANY(ARRAY(SELECT place FROM found)) RETURNING delivery_id, is_hurried`,
  statuses: "'pending', 'retrying'",
};

/**
 * Moves the found deliveries from the queue into a flight, in one commit. Drops finished ones,
 * which were put back by mistake.
 *
 * @param ctes The last one is `found`, with the column `place`: the `ctid` of a row that is locked.
 * @param flightId SQL expression of the flight's id.
 * @param from How the deliveries are removed from where they wait, and their possible statuses
 *   there.
 */
const takeText = (
  ctes: string,
  { flightId, flightMs }: { readonly flightId: string; readonly flightMs: string },
  { gone, statuses } = fromQueue,
): string => `
  WITH ${ctes}, gone AS (${gone}
  ), taken AS MATERIALIZED (
    SELECT delivery.*, gone.is_hurried FROM gone JOIN svc.deliveries AS delivery ON delivery.id = gone.delivery_id
    WHERE delivery.status IN (${statuses})
  ), flight AS (
    INSERT INTO svc.flights (id, delivery_ids, ends_at)
    SELECT ${flightId}, array_agg(id), now() + ${flightMs} * interval '1 millisecond' FROM taken HAVING count(*) > 0
    RETURNING id
  )
  SELECT removed.count AS removed, flight.id AS "flightId", taken.id, taken.uuid, taken.event_id AS "eventId", taken.event_uuid AS "eventUuid",
    event.trigger AS event, taken.resource, ${timestampOfEvent} AS timestamp, taken.attempt, taken.max_attempts AS "maxAttempts",
    (taken.trigger_kind <> 'automatic' OR taken.status = 'held' OR subscription.rate_limit IS NOT NULL) AS "isPaced",
    CASE WHEN taken.is_hurried THEN 'manual' WHEN taken.attempt = 0 AND taken.replay_id IS NOT NULL THEN 'replay'
      WHEN taken.attempt = 0 AND taken.trigger_kind <> 'automatic' THEN taken.trigger_kind
      ELSE 'scheduled' END AS trigger, (extract(epoch FROM now() - taken.updated_at) * 1000)::float8 AS "waitedMs",
    event.owner_id AS "ownerId", (extract(epoch FROM clock_timestamp() - event.occurred_at) * 1000)::float8 AS "eventAgeMs",
    taken.traceparent, (taken.has_previous AND data.previous IS NOT NULL) IS TRUE AS "hasPrevious",
    coalesce(octet_length(data.data), 0) + CASE WHEN taken.has_previous THEN coalesce(octet_length(data.previous), 0) ELSE 0 END AS bytes, taken.subscription_id AS "subscriptionId",
    subscription.url, subscription.encrypted_secret AS "encryptedSecret", subscription.encrypted_headers AS "encryptedHeaders",
    CASE WHEN subscription.previous_until > now() THEN subscription.encrypted_previous END AS "encryptedPrevious",
    subscription.rate_limit AS "rateLimit",
    subscription.is_active AND subscriber.disabled_at IS NULL AS "isActive",
    subscriber.id AS "userId", subscriber.name, subscriber.email, subscriber.is_admin AS "isAdmin"
  FROM (SELECT count(*)::int AS count FROM gone) AS removed
  LEFT JOIN (flight CROSS JOIN taken JOIN svc.events AS event ON event.id = taken.event_id) ON true
  LEFT JOIN svc.event_data AS data ON data.event_id = taken.event_id
  LEFT JOIN svc.subscriptions AS subscription ON subscription.id = taken.subscription_id
  LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id
  WHERE ${withoutDiskWait}
  ORDER BY taken.id`;

// The lower bound keeps a claim from reading dead row versions of earlier due deliveries, which a
// long transaction keeps.
const dueText = (direction: "ASC" | "DESC", limit: string): string => `SELECT place FROM (
      SELECT ctid AS place FROM svc.delivery_queue
      WHERE due_at > coalesce(now() - $3 * interval '1 millisecond', '-infinity') AND due_at <= now() AND delivery_id <> ALL($4::bigint[])
      ORDER BY due_at ${direction} LIMIT ${limit} FOR UPDATE SKIP LOCKED) AS ${direction}_due`;

/**
 * Takes from both ends. Behind a million deliveries of others, a manual retry would otherwise wait
 * for minutes.
 */
export const takeDueText = takeText(
  `found AS MATERIALIZED (
    ${dueText("ASC", "$1::int - $1::int / 2")} UNION ALL ${dueText("DESC", "$1::int / 2")})`,
  { flightId: "$5::uuid", flightMs: "$2" },
);

export const takeParkedText = takeText(
  `found AS MATERIALIZED (SELECT picked.place
    FROM unnest($1::int[], $2::int[], $3::int[]) AS wanted (subscription_id, oldest, newest)
    CROSS JOIN LATERAL (
      SELECT place FROM (
        SELECT ctid AS place FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = wanted.subscription_id
        ORDER BY delivery_id LIMIT wanted.oldest FOR UPDATE SKIP LOCKED) AS oldest
      UNION ALL
      SELECT place FROM (
        SELECT ctid AS place FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = wanted.subscription_id
        ORDER BY delivery_id DESC LIMIT wanted.newest FOR UPDATE SKIP LOCKED) AS newest
    ) AS picked)`,
  { flightId: "$5::uuid", flightMs: "$4" },
);

/** Most deliveries of replays that a subscription sends at the same time. */
export const replayedAtOnce = 10;

/**
 * Returns the SQL condition of the held deliveries of a subscription: a range of their index, in
 * the order of `heldOrder`. With an equality or another order, PostgreSQL may read the whole
 * history each time, by the index of all deliveries. The range ends within the subscription. With
 * the bound `< (subscription + 1, 0, 0)`, PostgreSQL also reads the next subscription's held
 * deliveries: 70 ms for 500,000.
 */
export const heldOf = (subscriptionId: string): string =>
  `held_at IS NOT NULL AND (subscription_id, event_id, id) >= (${subscriptionId}::int, 0, 0) AND (subscription_id, event_id, id) <= (${subscriptionId}::int, 9223372036854775807, 9223372036854775807)`;
export const heldOrder = "subscription_id, event_id, id";

/**
 * Takes the oldest held delivery of a subscription, if no other dispatcher has its lease. Takes
 * several when the oldest ones all belong to replays. The range is that of the index, and the limit
 * a constant. With an equality, or a limit in a parameter, PostgreSQL uses another
 * index and sorts: each take read the 50,000 held deliveries of its subscription, in 140 to 530 ms.
 * A lease that ends an hour later than a new one dates from before the database's clock was set
 * back. It counts as over.
 */
export const takeHeldText = takeText(
  `leased AS (
    INSERT INTO svc.lanes AS lane (subscription_id, holder, held_until) VALUES ($1, $2::uuid, now() + $3 * interval '1 millisecond')
    ON CONFLICT (subscription_id) DO UPDATE SET holder = EXCLUDED.holder, held_until = EXCLUDED.held_until
      WHERE lane.holder = EXCLUDED.holder OR lane.held_until < now() OR lane.held_until > EXCLUDED.held_until + interval '1 hour'
    RETURNING 1
  ), oldest AS MATERIALIZED (
    SELECT ctid AS place, id, event_id, replay_id FROM svc.deliveries
    WHERE ${heldOf("$1")} AND EXISTS (SELECT FROM leased)
    ORDER BY ${heldOrder} LIMIT ${replayedAtOnce}
  ), found AS MATERIALIZED (
    SELECT ctid AS place FROM svc.deliveries
    WHERE ctid = ANY(ARRAY(
      SELECT place FROM (
        SELECT place, row_number() OVER in_order AS number, bool_and(replay_id IS NOT NULL) OVER in_order AS is_of_replays
        FROM oldest WINDOW in_order AS (ORDER BY event_id, id)) AS ordered
      WHERE number <= $4 AND (number = 1 OR is_of_replays)))
    FOR UPDATE SKIP LOCKED
  )`,
  { flightId: "$5::uuid", flightMs: "$3" },
  {
    statuses: "'held'",
    gone: `
    UPDATE svc.deliveries SET status = CASE attempt WHEN 0 THEN 'pending' ELSE 'retrying' END, held_at = NULL, updated_at = now()
    WHERE ctid = ANY(ARRAY(SELECT place FROM found)) RETURNING id AS delivery_id, false AS is_hurried`,
  },
);

/** Columns of a `WaitingSubscription`, of the row `found` of `waitingSources`. */
export const waitingColumns = `found.subscription_id AS "subscriptionId", subscription.url, subscription.user_id AS "userId",
    subscription.rate_limit AS "rateLimit", coalesce(subscription.is_active AND subscriber.disabled_at IS NULL, false) AS "isActive"`;
export const waitingSources = `found
  LEFT JOIN svc.subscriptions AS subscription ON subscription.id = found.subscription_id
  LEFT JOIN svc.users AS subscriber ON subscriber.id = subscription.user_id`;

const queued = { table: "svc.delivery_queue", after: "$1" };

export const findParkedText = `
  WITH RECURSIVE ${valuesCte("parked", "subscription_id", { ...queued, condition: "due_at IS NULL" })}, found AS (
    SELECT subscription_id FROM parked WHERE subscription_id IS NOT NULL LIMIT $2
  )
  SELECT ${waitingColumns} FROM ${waitingSources} ORDER BY found.subscription_id`;

// A page at a time: all of 20,000 subscriptions took 640 ms on a busy machine, where 1,000 take 50.
export const findOrphanedText = `
  WITH RECURSIVE ${valuesCte("waiting", "subscription_id", queued)}
  SELECT subscription_id AS id, (SELECT id FROM svc.subscriptions WHERE id = waiting.subscription_id) IS NULL AS "isOrphaned"
  FROM waiting WHERE subscription_id IS NOT NULL LIMIT $2`;

/** By id and UUID: after a fail-over, another event may have the row id of a lost one. */
export const dataText = `
  SELECT event.uuid, kept.data, kept.previous FROM unnest($1::bigint[], $2::uuid[]) AS given (id, uuid)
  JOIN svc.events AS event ON event.id = given.id AND event.uuid = given.uuid
  JOIN svc.event_data AS kept ON kept.event_id = event.id`;

const endedText = (ids: string): string => `ended AS (
    DELETE FROM svc.flights WHERE id = ANY(${ids}::uuid[]) RETURNING id, delivery_ids
  )`;

const endedWholeText = `ended AS (
    DELETE FROM svc.flights WHERE id = ANY($14::uuid[]) AND (SELECT count(*) FROM written) = (SELECT count(*) FROM outcome)
  )`;

/**
 * Selects the deliveries of ended flights that are unfinished, and neither in the queue nor in
 * another flight. They are due, because their process has died or a crash of the database has lost
 * its writes. With CASE, the other flights are read once, and only for such deliveries.
 *
 * @param written Selects the ids that the statement itself handles.
 */
const leftOverText = (written: string): string => `
    SELECT id, subscription_id, user_id, date_trunc('milliseconds', now()), NULL::boolean
    FROM svc.deliveries AS delivery
    WHERE id = ANY(ARRAY(SELECT unnest(delivery_ids) FROM ended EXCEPT ${written}))
      AND CASE WHEN status IN ('pending', 'retrying') AND (SELECT delivery_id FROM svc.delivery_queue WHERE ${byKey("delivery_id", "delivery.id")}) IS NULL
        THEN id NOT IN (SELECT unnest(delivery_ids) FROM svc.flights WHERE flights.id <> ALL(ARRAY(SELECT ended.id FROM ended))) END`;

/**
 * Limits the wait for each lock. It is longer than a transaction of svc locks a delivery, and than
 * the disk takes to extend a table. Meanwhile no other outcome is written.
 */
const outcomeLockMs = 1000;

/** Selects the given deliveries that no other transaction has locked. */
export const unlockedText = `
  SELECT id FROM svc.deliveries WHERE id = ANY($1::bigint[]) AND ${withoutDiskWait} ORDER BY id FOR NO KEY UPDATE SKIP LOCKED`;

/**
 * Returns the statement that writes outcomes. Its commit does not wait for the disk: after a lost
 * outcome the attempt is made once more, under the same UUID. A delivery that was cancelled during
 * its POST keeps its status, and its attempt is still stored. When its record was erased, the
 * answer is left out, since it may repeat the record.
 *
 * @param isWhole Whether the outcomes cover all deliveries of the ended flights. The search for
 *   deliveries left over is then omitted, which saves 0.1 ms of 0.6. A flight with a delivery
 *   that another process has written stays until its time is up.
 */
const recordingText = (isWhole: boolean): string => `
  WITH outcome AS (
    SELECT * FROM unnest($1::bigint[], $2::text[], $3::int[], $4::float8[], $5::text[], $6::timestamptz[], $7::int[], $8::int[], $9::text[],
        $10::jsonb[], $11::bytea[], $12::bool[], $13::uuid[], $15::text[], $16::int[], $17::int[], $18::int[], $19::int[], $20::text[], $21::text[])
      AS given (id, status, attempts_before, delay_ms, last_error, started_at, duration_ms, status_code, error, response_headers,
        response_body, response_truncated, uuid, address, dns_ms, connect_ms, tls_ms, first_byte_ms, trigger, url)
    WHERE ${withLockWait(outcomeLockMs)}
  ), written AS (
    UPDATE svc.deliveries AS delivery
    SET attempt = delivery.attempt + CASE WHEN outcome.started_at IS NULL THEN 0 ELSE 1 END, url = coalesce(outcome.url, delivery.url),
      status = CASE WHEN delivery.status = 'cancelled' THEN delivery.status ELSE outcome.status END,
      last_error = CASE WHEN delivery.status = 'cancelled' OR outcome.status = 'held' THEN delivery.last_error ELSE outcome.last_error END,
      held_at = CASE WHEN outcome.status = 'held' AND delivery.status <> 'cancelled' THEN now() END,
      updated_at = now()
    FROM outcome
    WHERE delivery.id = outcome.id AND delivery.uuid = outcome.uuid AND delivery.attempt = outcome.attempts_before
      AND delivery.status IN ('pending', 'retrying', 'cancelled')
    RETURNING delivery.id, delivery.status, delivery.subscription_id, delivery.user_id, delivery.attempt, outcome.delay_ms,
      delivery.status = 'cancelled' AND delivery.last_error = '${erasedReason}' AS is_erased
  ), ${isWhole ? endedWholeText : endedText("$14")}, queued AS (
    INSERT INTO svc.delivery_queue AS queued (delivery_id, subscription_id, user_id, due_at, is_retry)
    SELECT id, subscription_id, user_id, now() + delay_ms * interval '1 millisecond', true FROM written WHERE status = 'retrying'
    ${isWhole ? "" : `UNION ALL ${leftOverText("SELECT id FROM written")}`}
    ON CONFLICT (delivery_id) DO UPDATE SET due_at = greatest(queued.due_at, EXCLUDED.due_at), is_retry = EXCLUDED.is_retry
  ), attempts AS (
    INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, status_code, error, response_headers, response_body,
      response_truncated, address, dns_ms, connect_ms, tls_ms, first_byte_ms, trigger)
    SELECT outcome.id, written.attempt, started_at, duration_ms, status_code, error, CASE WHEN is_erased THEN NULL ELSE response_headers END,
      CASE WHEN is_erased THEN NULL ELSE response_body END, response_truncated AND is_erased IS NOT TRUE, address, dns_ms, connect_ms, tls_ms, first_byte_ms, trigger
    FROM outcome JOIN written USING (id)
    WHERE outcome.started_at IS NOT NULL
  )
  SELECT id, status FROM written WHERE ${withoutDiskWait}`;
export const recordText = recordingText(false);
export const recordWholeText = recordingText(true);

/**
 * Puts back only the deliveries that the flight still has. The flight may have ended, and another
 * process may have the delivery in flight. A statement that is repeated, because its answer was
 * lost, may find the delivery taken again.
 */
export const putBackText = `
  WITH held AS MATERIALIZED (
    SELECT id, delivery_ids FROM svc.flights WHERE id = ANY($3::uuid[] || $4::uuid[]) ORDER BY id FOR UPDATE
  ), back AS MATERIALIZED (
    SELECT given.id, given.delay_ms, given.is_hurried, held.id AS flight_id
    FROM unnest($1::bigint[], $2::float8[], $3::uuid[], $5::bool[]) AS given (id, delay_ms, flight_id, is_hurried)
    JOIN held ON held.id = given.flight_id
    WHERE given.id = ANY(held.delivery_ids)
  ), kept AS (
    UPDATE svc.flights AS flight
    SET delivery_ids = ARRAY(SELECT unnest(held.delivery_ids) EXCEPT SELECT back.id FROM back WHERE back.flight_id = held.id)
    FROM held
    WHERE flight.id = held.id AND flight.id = ANY(ARRAY(SELECT flight_id FROM back)) AND flight.id <> ALL($4::uuid[])
  ), ${endedText("$4")}, queued AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry, is_hurried)
    SELECT delivery.id, delivery.subscription_id, delivery.user_id, now() + back.delay_ms * interval '1 millisecond',
      delivery.status = 'retrying', back.is_hurried
    FROM back JOIN svc.deliveries AS delivery ON delivery.id = back.id
    WHERE delivery.status IN ('pending', 'retrying')
    UNION ALL SELECT left_over.*, NULL::boolean FROM (${leftOverText("SELECT id FROM back")}) AS left_over
    ON CONFLICT (delivery_id) DO NOTHING
  )
  SELECT ${withoutDiskWait}`;

export const renewFlightText = `
  UPDATE svc.flights SET ends_at = now() + $2 * interval '1 millisecond' WHERE id = $1 AND ${withoutDiskWait} RETURNING 1`;

// A flight that ends an hour later than a new one dates from before the database's clock was set
// back. It counts as overdue, and so do those of statements without an answer.
export const endFlightsText = `
  WITH over AS MATERIALIZED (
    SELECT id FROM svc.flights
    WHERE ends_at < now() + $2 * interval '1 millisecond' OR ends_at > now() + $3 * interval '1 millisecond' + interval '1 hour'
      OR id = ANY($4::uuid[])
    ORDER BY id <> ALL($4::uuid[]), id LIMIT $1 FOR UPDATE SKIP LOCKED
  ), ${endedText("ARRAY(SELECT id FROM over)")}, due AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry) ${leftOverText("SELECT NULL::bigint")}
    ON CONFLICT (delivery_id) DO NOTHING
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM due`;

/**
 * Every snapshot shows an unfinished delivery in the queue or in a flight; a delivery in neither is
 * due. Looks at the last million deliveries, a page at a time.
 */
export const returnStraysText = `
  WITH page AS MATERIALIZED (
    SELECT id, subscription_id, user_id, status, updated_at FROM svc.deliveries
    WHERE id > coalesce($1, (SELECT max(id) - 1000000 FROM svc.deliveries)) ORDER BY id LIMIT $2
  ), back AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
    SELECT id, subscription_id, user_id, date_trunc('milliseconds', now()) FROM page
    WHERE status IN ('pending', 'retrying') AND updated_at < now() - $3 * interval '1 millisecond'
      AND (SELECT delivery_id FROM svc.delivery_queue WHERE ${byKey("delivery_id", "page.id")}) IS NULL
      AND NOT EXISTS (SELECT FROM svc.flights WHERE page.id = ANY(delivery_ids))
    ON CONFLICT (delivery_id) DO NOTHING
    RETURNING 1
  )
  SELECT (SELECT max(id) FROM page) AS last, (SELECT count(*) FROM back)::int AS count`;

/**
 * A delivery that waits an hour longer than any schedule here dates from before the database's
 * clock was set back. It is due. A retry that was written at a time in the past follows the longer
 * schedule of another dispatcher. If it were due, that dispatcher would postpone it again, so that
 * all attempts would be made at once. Its wait becomes the longest of the schedules here.
 */
export const returnFarText = `
  WITH far AS (
    UPDATE svc.delivery_queue AS queued SET due_at = date_trunc('milliseconds', now() + CASE WHEN (
      SELECT status = 'retrying' AND updated_at < now() + interval '1 hour' FROM svc.deliveries WHERE ${byKey("id", "queued.delivery_id")}
    ) THEN $1 * interval '1 millisecond' ELSE interval '0' END)
    WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM svc.delivery_queue WHERE due_at > now() + $1 * interval '1 millisecond' + interval '1 hour'
      ORDER BY due_at LIMIT $2 FOR UPDATE SKIP LOCKED))
    RETURNING due_at <= now() AS is_due
  )
  SELECT count(*) FILTER (WHERE is_due)::int AS count FROM far`;

export const nextDueText = `
  SELECT (extract(epoch FROM due_at - now()) * 1000)::float8 AS ms
  FROM svc.delivery_queue WHERE due_at > now() ORDER BY due_at LIMIT 1`;

// Cancels deliveries in flight too: the attempt's outcome then finds them cancelled. There are few
// flights. The sweep takes no due delivery while this waits for a lock.
export const cancelText = `
  WITH gone AS (
    DELETE FROM svc.delivery_queue WHERE ctid = ANY(ARRAY(
      SELECT ctid FROM svc.delivery_queue WHERE subscription_id = $1 AND ${withLockWait(1000)}
      ORDER BY delivery_id LIMIT $2 FOR UPDATE SKIP LOCKED))
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

export const findUndeadLetteredText = `
  SELECT delivery.id, delivery.uuid, delivery.event_uuid AS "eventUuid", event.trigger AS event, delivery.resource,
    ${timestampOfEvent} AS timestamp, delivery.last_error AS "lastError", data.data,
    CASE WHEN delivery.has_previous THEN data.previous END AS previous
  FROM (
    SELECT * FROM svc.deliveries
    WHERE problem = 'failed' AND dead_lettered_at IS NULL AND updated_at < now() - $2 * interval '1 millisecond' AND id > $3
    ORDER BY id LIMIT $1
  ) AS delivery
  JOIN svc.events AS event ON event.id = delivery.event_id
  LEFT JOIN svc.event_data AS data ON data.event_id = delivery.event_id
  ORDER BY delivery.id`;

export const markDeadLetteredText = `UPDATE svc.deliveries SET dead_lettered_at = now() WHERE id = ANY($1::bigint[])`;
