import { arraysOf, byKey, type Sql } from "../db/sql.ts";
import type { KnownAt } from "../subscriptions/known-subscribers.ts";
import { isBeforeSession, sessionCte } from "../subscriptions/session-since.ts";

/** A delivery of one event to one matching subscription. */
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
  /** W3C `traceparent` of the trace that the attempts join. */
  readonly traceparent?: string | undefined;
  /**
   * Whether this process attempts the delivery now; otherwise it waits in the queue for a slot.
   * Null when the delivery is held, because its subscription is off.
   */
  readonly isTaken: boolean | null;
  /** Whether the delivery's body shows the old row of the update. */
  readonly hasPrevious?: boolean;
}

interface FannedOutEvent {
  readonly id: string;
  /**
   * Part of the fence: after a crash or fail-over, another event may have the row id of a lost one.
   */
  readonly uuid: string;
  /** JSON of the record; undefined when no delivery needs it. */
  readonly data: string | undefined;
  /** JSON of the record before an update; undefined when no old row is kept. */
  readonly previous?: string | undefined;
}

/** Events, and the deliveries to write for them. */
export interface Insertion {
  readonly events: readonly FannedOutEvent[];
  readonly deliveries: readonly NewDelivery[];
  /** False when more deliveries of the same events follow. */
  readonly isComplete: boolean;
  readonly flightMs: number;
  /**
   * When the subscribers were read, if not just now. Nothing is written when a subscription may
   * have changed since.
   */
  readonly knownAt?: KnownAt | undefined;
}

export interface Inserted {
  /** Whether nothing was written, because the subscribers may have changed. */
  readonly isStale: boolean;
  /** Number of the events that were in the outbox. */
  readonly eventCount: number;
  readonly flightId: string | undefined;
  /** Ids of the new deliveries by UUID. */
  readonly ids: ReadonlyMap<string, string>;
  /** Ids of the events whose record this statement has stored. */
  readonly stored: ReadonlySet<string>;
  /** The database's time of day in ms since 1970, which may differ from this machine's. */
  readonly databaseTimeMs: number;
}

/**
 * Decides whether subscribers that were read at the snapshot `$17` may have changed since. Looks up
 * changes by transactions that the snapshot does not see: running ones and later ones. Earlier
 * changes are not read, however many there are and however long a transaction runs. Rows from a
 * dump of another database can have transaction ids that are not assigned here yet. Subscribers
 * read more than 5 s ago (`$18`) count as changed, because a change since may already be pruned.
 */
const knownCtes = `${sessionCte}, known AS MATERIALIZED (
    SELECT $17::pg_snapshot IS NOT NULL AND (${isBeforeSession("$18")} OR session.now_ms - $18::float8 > 5000
      OR EXISTS (SELECT FROM svc.subscription_changes WHERE transaction_id >= pg_snapshot_xmax($17::pg_snapshot)::text::bigint
        AND transaction_id < pg_snapshot_xmax(pg_current_snapshot())::text::bigint)
      OR EXISTS (SELECT FROM svc.subscription_changes WHERE transaction_id = ANY(ARRAY(SELECT pg_snapshot_xip($17::pg_snapshot)::text::bigint)))
    ) AS is_stale
    FROM session
  )`;

/**
 * Writes the deliveries. The lock on the outbox row admits one fan-out at a time, and its deletion
 * keeps out later ones. Another fan-out that holds the row makes the same deliveries. The commit
 * waits for the disk, since the first attempts have no other record. A portion before the last
 * waits for the other fan-out, which may still fail. Without the wait, its deliveries would be
 * missing when the last portion removes the row. When subscribers may have changed, no row is
 * taken, and so nothing is written.
 */
const insertText = (isComplete: boolean): string => `
  WITH ${knownCtes}, due AS MATERIALIZED (
    SELECT entry.* FROM (
      SELECT id FROM unnest($1::bigint[], $14::uuid[]) AS given (id, uuid)
      WHERE NOT (SELECT is_stale FROM known)
        AND (SELECT event.uuid FROM svc.events AS event WHERE event.id = given.id) = given.uuid
      ORDER BY id
    ) AS asked CROSS JOIN LATERAL (
      SELECT event_id, ctid AS place FROM svc.outbox WHERE ${byKey("event_id", "asked.id")} FOR UPDATE ${isComplete ? "SKIP LOCKED" : ""}
    ) AS entry
  ), ${
    isComplete
      ? `taken AS (DELETE FROM svc.outbox WHERE ctid = ANY(ARRAY(SELECT place FROM due)) RETURNING event_id)`
      : `taken AS (SELECT event_id FROM due)`
  }, data AS (
    INSERT INTO svc.event_data (event_id, data, previous)
    SELECT given.event_id, given.data, given.previous FROM unnest($1::bigint[], $2::text[], $15::text[]) AS given (event_id, data, previous) JOIN taken USING (event_id)
    WHERE given.data IS NOT NULL
    ON CONFLICT (event_id) DO NOTHING
    RETURNING event_id
  ), fresh AS MATERIALIZED (
    SELECT nextval('svc.deliveries_id_seq') AS id, given.*
    FROM unnest($3::uuid[], $4::bigint[], $5::uuid[], $6::int[], $7::int[], $8::text[], $9::text[], $10::int[], $11::text[], $12::bool[], $16::bool[])
      AS given (uuid, event_id, event_uuid, subscription_id, user_id, resource, url, max_attempts, traceparent, is_taken, has_previous)
    JOIN taken USING (event_id)
  ), inserted AS (
    INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, url,
      max_attempts, traceparent, has_previous, status, held_at)
    SELECT id, id, uuid, event_id, event_uuid, subscription_id, user_id, resource, 'automatic', url, max_attempts, traceparent, has_previous,
      CASE WHEN is_taken IS NULL THEN 'held' ELSE 'pending' END, CASE WHEN is_taken IS NULL THEN now() END
    FROM fresh
    ON CONFLICT (event_id, subscription_id, (CASE trigger_kind WHEN 'automatic' THEN 0 ELSE id END)) DO NOTHING
    RETURNING id
  ), flight AS (
    INSERT INTO svc.flights (id, delivery_ids, ends_at)
    SELECT $19::uuid, array_agg(id), now() + $13 * interval '1 millisecond' FROM fresh JOIN inserted USING (id) WHERE is_taken HAVING count(*) > 0
    RETURNING id
  ), parked AS (
    INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, is_retry)
    SELECT id, subscription_id, user_id, false FROM fresh JOIN inserted USING (id) WHERE NOT is_taken
  )
  SELECT (SELECT is_stale FROM known) AS "isStale", events.count AS events, fresh.id, fresh.uuid, (SELECT id FROM flight) AS "flightId",
    CASE WHEN fresh.event_id IN (SELECT event_id FROM data) THEN fresh.event_id END AS stored,
    (extract(epoch FROM clock_timestamp()) * 1000)::float8 AS "databaseTimeMs"
  FROM (SELECT count(*)::int AS count FROM taken) AS events LEFT JOIN (fresh JOIN inserted USING (id)) ON true`;

interface InsertedRow {
  readonly isStale: boolean;
  readonly events: number;
  /** Null, like the UUID, when nothing was written: the row then only carries the counts. */
  readonly id: string | null;
  readonly uuid: string | null;
  readonly flightId: string | null;
  /** Id of the event, if its record was stored. */
  readonly stored: string | null;
  readonly databaseTimeMs: number;
}

const insertAllText = insertText(true);
const insertSomeText = insertText(false);

/**
 * Writes the deliveries of events, and takes the events out of the outbox in the same commit.
 * Events that are no longer in the outbox get no deliveries.
 *
 * @param flightId Id of the flight of the deliveries that are taken.
 */
export async function insertDeliveries(
  sql: Sql,
  { events, deliveries, isComplete, flightMs, knownAt }: Insertion,
  flightId: string,
): Promise<Inserted> {
  const rows = await sql<InsertedRow>(isComplete ? insertAllText : insertSomeText, [
    ...arraysOf(events, "id", "data"),
    ...arraysOf(deliveries, "uuid", "eventId", "eventUuid", "subscriptionId", "userId", "resource", "url"),
    ...arraysOf(deliveries, "maxAttempts", "traceparent", "isTaken"),
    flightMs,
    ...arraysOf(events, "uuid", "previous"),
    deliveries.map(({ hasPrevious }) => (hasPrevious === true ? true : null)),
    knownAt?.snapshot ?? null,
    knownAt?.readAtMs ?? null,
    flightId,
  ]);
  return {
    isStale: rows[0]?.isStale === true,
    eventCount: rows[0]?.events ?? 0,
    flightId: rows[0]?.flightId ?? undefined,
    databaseTimeMs: rows[0]?.databaseTimeMs ?? 0,
    ids: new Map(rows.flatMap(({ uuid, id }) => (uuid === null || id === null ? [] : [[uuid, id]]))),
    stored: new Set(rows.flatMap(({ stored }) => stored ?? [])),
  };
}
