import type { Pool } from "pg";

/** Makes old events with one delivered delivery and its attempt each, with a commit per portion. */
export async function makeHistory(
  pool: Pool,
  {
    subscriptionId,
    userId,
    count,
    age,
  }: {
    readonly subscriptionId: number;
    readonly userId: number;
    readonly count: number;
    /** An SQL interval. */
    readonly age: string;
  },
): Promise<void> {
  await pool.query("ALTER TABLE svc.events DISABLE TRIGGER enqueue_event");
  for (let left = count; left > 0; left -= portion)
    await pool.query(
      `WITH event AS (
         INSERT INTO svc.events (uuid, resource, trigger, record_id, owner_id, snapshot, occurred_at)
         SELECT gen_random_uuid(), 'notes', 'on_create', number::text, $2::int::text,
           jsonb_build_object('id', number, 'title', 'Note', 'body', repeat('Lorem ipsum dolor. ', 10), 'user_id', $2::int), now() - $4::interval
         FROM generate_series(1, $3::int) AS number RETURNING id, uuid
       ), data AS (
         INSERT INTO svc.event_data (event_id, data)
         SELECT id, jsonb_build_object('id', id, 'title', 'Note', 'body', repeat('Lorem ipsum dolor. ', 10))::text FROM event
       ), delivery AS (
         INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind,
           max_attempts, url, status, attempt, created_at, updated_at)
         SELECT nextval('svc.deliveries_id_seq'), currval('svc.deliveries_id_seq'), gen_random_uuid(), id, uuid, $1, $2, 'notes', 'automatic',
           10, 'http://127.0.0.1/', 'delivered', 1, now() - $4::interval, now() - $4::interval
         FROM event RETURNING id
       )
       INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, status_code)
       SELECT id, 1, now() - $4::interval, 3, 204 FROM delivery`,
      [subscriptionId, userId, Math.min(left, portion), age],
    );
  await pool.query("ALTER TABLE svc.events ENABLE TRIGGER enqueue_event");
  await pool.query("ANALYZE svc.events, svc.deliveries, svc.attempts, svc.event_data");
}

const portion = 20_000;
