import { stateSql } from "./delivery-states.ts";
import type { Sql } from "../../src/db/sql.ts";

export interface GivenDelivery {
  /** Subscription; its user has the same id. */
  readonly of: number;
  /** Default: delivered. */
  readonly status?: string;
  readonly count?: number;
  readonly isInHand?: boolean;
  readonly dueAt?: Date | null;
}

/** Removes all users, subscriptions, events and deliveries. */
export async function emptyHistory(sql: Sql): Promise<void> {
  await sql(
    `TRUNCATE svc.users, svc.tokens, svc.subscriptions, svc.events, svc.outbox, svc.event_data, svc.deliveries, svc.delivery_queue,
      svc.flights, svc.attempts RESTART IDENTITY`,
  );
}

/** Adds a subscription of a new user with the same id. */
export async function addSubscriber(sql: Sql): Promise<number> {
  const [row] = await sql<{ id: number }>(`
    WITH subscriber AS (INSERT INTO svc.users (name, email) VALUES ('Ada', gen_random_uuid()) RETURNING id)
    INSERT INTO svc.subscriptions (id, user_id, url, resource, events, encrypted_secret, secret_hint)
    SELECT id, id, 'http://127.0.0.1:9/hook', 'notes', '{on_create}', '', 'test' FROM subscriber RETURNING id`);
  return row?.id ?? 0;
}

/** Adds `count` deliveries of an event each. Unfinished ones are in the queue, or in a flight. */
export async function addDeliveries(
  sql: Sql,
  { of, status = "delivered", count = 1, isInHand = false, dueAt = null }: GivenDelivery,
): Promise<{ readonly id: string; readonly eventId: string }> {
  const { attempt, lastError } = stateSql("$2");
  const rows = await sql<{ id: string; eventId: string }>(
    `WITH event AS (
       INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'notes', 'on_create', '1', '{}' FROM generate_series(1, $3) RETURNING id, uuid
     ), fresh AS MATERIALIZED (
       SELECT nextval('svc.deliveries_id_seq') AS delivery_id, * FROM event
     ), made AS (
       INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind,
         max_attempts, url, status, traceparent, held_at, attempt, last_error)
       SELECT delivery_id, delivery_id, gen_random_uuid(), id, uuid, $1, $1, 'notes', 'automatic', 3, 'http://127.0.0.1:9/hook', $2,
         'of the failed', CASE $2 WHEN 'held' THEN now() END, ${attempt}, ${lastError}
       FROM fresh RETURNING id, event_id
     ), data AS (
       INSERT INTO svc.event_data (event_id, data) SELECT event_id, '{}' FROM made
     ), queued AS (
       INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
       SELECT id, $1, $1, $4::timestamptz FROM made WHERE $2 IN ('pending', 'retrying') AND NOT $5
     ), flying AS (
       INSERT INTO svc.flights (delivery_ids, ends_at) SELECT array_agg(id), now() FROM made HAVING $5
     )
     SELECT id, event_id AS "eventId" FROM made ORDER BY id DESC LIMIT 1`.replaceAll("$1", "$1::int"),
    [of, status, count, dueAt, isInHand],
  );
  const [last] = rows;
  if (last === undefined) throw new Error("nothing was added");
  return last;
}
