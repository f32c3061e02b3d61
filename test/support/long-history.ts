import { stateSql } from "./delivery-states.ts";
import type { Sql } from "../../src/db/sql.ts";

/** Size of a database with a long history and many waiting rows. */
export interface LongHistory {
  /** Events, each with two deliveries. */
  readonly events: number;
  /**
   * At most half as many rows of each kind: events of one resource, retries due now and tomorrow,
   * deliveries parked for one subscription and for a thousand, and held for them.
   */
  readonly waiting: number;
}

/**
 * User 1 is an admin and has subscription 1, which gets every event. Another thousand subscriptions
 * of 200 users share the others.
 */
export const subscriptions = 1_001;
/** Has deliveries that wait for a slot, and as many held ones. */
export const parkedSubscription = 2;
/** Deliveries in all flights together, 20 in each. */
export const inHand = 400;

/** Rows of `svc.subscription_changes` of each kind that an insert must not read. */
const changes = 100_000;

/**
 * Creates the history by SQL, in a database with the service's empty tables. PostgreSQL's
 * statistics stay those of the empty tables until `learnStatistics`.
 *
 * The first half of the events is a month old, and all their deliveries are finished; 1 delivery of
 * 100 has failed, and 1 of 200 was cancelled.
 */
export async function makeLongHistory(sql: Sql, { events, waiting }: LongHistory): Promise<void> {
  await keepStatistics(sql);
  await sql(`INSERT INTO svc.users (id, name, email, is_admin)
    SELECT id, 'User', id || '@example.com', id = 1 FROM generate_series(1, 201) AS id`);
  await sql(
    `INSERT INTO svc.subscriptions (id, user_id, url, resource, events, encrypted_secret, secret_hint)
    SELECT id, CASE id WHEN 1 THEN 1 ELSE 2 + id % 200 END, 'http://127.0.0.1:9/' || id, 'notes', '{on_create}', '', 'hint'
    FROM generate_series(1, $1) AS id`,
    [subscriptions],
  );
  await sql("ALTER TABLE svc.events DISABLE TRIGGER enqueue_event");
  await sql(
    `INSERT INTO svc.events (uuid, resource, trigger, record_id, owner_id, snapshot, occurred_at)
    SELECT gen_random_uuid(), 'notes', 'on_create', number::text, '1', '{"id": 1, "title": "A record as records are", "user_id": 1}',
      now() - CASE WHEN number <= $1 / 2 THEN interval '31 days' ELSE interval '1 day' END
    FROM generate_series(1, $1::int) AS number`,
    [events],
  );
  await sql("ALTER TABLE svc.events ENABLE TRIGGER enqueue_event");
  await sql(
    `INSERT INTO svc.event_data (event_id, data) SELECT id, '{"id":1,"title":"A record as records are"}' FROM svc.events`,
  );
  await addDeliveries(sql, {
    from: `svc.events AS event CROSS JOIN (VALUES (1), (2)) AS place (number)`,
    subscription: `CASE place.number WHEN 1 THEN 1 ELSE 2 + (event.id % ${subscriptions - 1})::int END`,
    status: `CASE WHEN event.id % 100 = 50 THEN 'failed' WHEN event.id % 200 = 51 THEN 'cancelled' ELSE 'delivered' END`,
    order: "event.id, place.number",
  });
  await sql(`UPDATE svc.deliveries SET dead_lettered_at = NULL WHERE id IN (
    SELECT id FROM svc.deliveries WHERE problem = 'failed' ORDER BY id DESC LIMIT 30)`);
  await sql(`INSERT INTO svc.attempts (delivery_id, number, started_at, duration_ms, status_code)
    SELECT id, 1, updated_at, 12, 200 FROM svc.deliveries`);
  await addWaiting(sql, { events, waiting });
  // Two thirds of the subscriptions fail, and half of these are off.
  await sql(
    "UPDATE svc.subscription_state SET failing_since = now() - subscription_id * interval '1 minute' WHERE subscription_id % 3 > 0",
  );
  await sql("UPDATE svc.subscriptions SET is_active = false WHERE id % 3 = 1");
  // As many rows before every transaction of the test, and rows with much later transaction ids, as
  // from a dump.
  await sql(`INSERT INTO svc.subscription_changes
    SELECT sign * number FROM generate_series(1000000001, 1000000000 + ${changes}) AS number CROSS JOIN (VALUES (-1), (1)) AS kind (sign)`);
  await sql(`INSERT INTO svc.figures
    SELECT user_id, width, date_trunc(width, now() - number * ('1 ' || width)::interval), 5, 4, 1
    FROM generate_series(0, 200) AS user_id CROSS JOIN (VALUES ('minute', 120), ('hour', 192)) AS kept (width, count)
      CROSS JOIN LATERAL generate_series(1, count) AS number`);
}

const tables = [
  "events",
  "event_data",
  "outbox",
  "deliveries",
  "delivery_queue",
  "flights",
  "attempts",
  "figures",
  "subscription_changes",
];

/** Keeps PostgreSQL's current statistics of the tables. */
export async function keepStatistics(sql: Sql): Promise<void> {
  for (const table of tables) {
    await sql(`ALTER TABLE svc.${table} SET (autovacuum_enabled = off)`);
    await sql(`ANALYZE svc.${table}`);
  }
}

/** Gives the planner the statistics of ANALYZE and VACUUM. */
export async function learnStatistics(sql: Sql): Promise<void> {
  for (const table of tables) await sql(`VACUUM (ANALYZE) svc.${table}`);
}

async function addWaiting(sql: Sql, { events, waiting }: LongHistory): Promise<void> {
  for (const [resource, count] of [
    ["orders", waiting],
    ["notes", 20],
  ])
    await sql(
      `INSERT INTO svc.events (resource, trigger, record_id, owner_id, snapshot)
      SELECT $1, 'on_create', '1', '1', '{"id": 1}' FROM generate_series(1, $2::int)`,
      [resource, count],
    );
  const parts = [
    {
      status: "retrying",
      subscription: `2 + number % ${subscriptions - 1}`,
      dueAt: "now() - number * interval '1 millisecond'",
    },
    {
      status: "retrying",
      subscription: `2 + number % ${subscriptions - 1}`,
      dueAt: "now() + interval '1 day' + number * interval '1 millisecond'",
    },
    { status: "pending", subscription: String(parkedSubscription), dueAt: "NULL" },
    { status: "pending", subscription: `2 + number % ${subscriptions - 1}`, dueAt: "NULL" },
  ];
  for (const { status, subscription, dueAt } of parts) {
    const before = await lastDelivery(sql);
    // Deliveries of young events, which prune skips.
    await addDeliveries(sql, {
      from: `generate_series(1, ${waiting}) AS number JOIN svc.events AS event ON event.id = ${events / 2} + number`,
      subscription,
      status: `'${status}'`,
      order: "number",
      isManual: true,
    });
    await sql(
      `INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at, is_retry)
      SELECT id, subscription_id, user_id, ${dueAt.replaceAll("number", "row_number() OVER (ORDER BY id)")},
        status = 'retrying'
      FROM svc.deliveries WHERE id > $1`,
      [before],
    );
  }
  for (const subscription of [String(parkedSubscription), `2 + number % ${subscriptions - 1}`])
    await addDeliveries(sql, {
      from: `generate_series(1, ${waiting}) AS number JOIN svc.events AS event ON event.id = ${events / 2} + number`,
      subscription,
      status: "'held'",
      order: "number",
      isManual: true,
    });
  const before = await lastDelivery(sql);
  await addDeliveries(sql, {
    from: `generate_series(1, ${inHand}) AS number JOIN svc.events AS event ON event.id = ${events / 2} + number`,
    subscription: `2 + number % ${subscriptions - 1}`,
    status: "'pending'",
    order: "number",
    isManual: true,
  });
  await sql(
    `INSERT INTO svc.flights (delivery_ids, ends_at)
    SELECT array_agg(id), CASE WHEN id / 20 % 4 = 0 THEN now() - interval '1 minute' ELSE now() + interval '1 hour' END
    FROM svc.deliveries WHERE id > $1 GROUP BY id / 20`,
    [before],
  );
}

async function lastDelivery(sql: Sql): Promise<string> {
  return (await sql<{ id: string }>("SELECT max(id) AS id FROM svc.deliveries"))[0]?.id ?? "0";
}

async function addDeliveries(
  sql: Sql,
  {
    from,
    subscription,
    status,
    order,
    isManual = false,
  }: {
    readonly from: string;
    readonly subscription: string;
    readonly status: string;
    readonly order: string;
    readonly isManual?: boolean;
  },
): Promise<void> {
  await sql(`
    INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, status,
      attempt, last_error, max_attempts, url, updated_at, dead_lettered_at, held_at)
    SELECT nextval('svc.deliveries_id_seq'), currval('svc.deliveries_id_seq'), uuid, event_id, event_uuid, subscription_id,
      CASE subscription_id WHEN 1 THEN 1 ELSE 2 + subscription_id % 200 END, 'notes', '${isManual ? "manual" : "automatic"}', status,
      CASE WHEN status IN ('pending', 'held') THEN 0 ELSE 1 END, ${stateSql("status").lastError}, 3, 'http://127.0.0.1:9/', occurred_at, CASE status WHEN 'failed' THEN occurred_at END, CASE status WHEN 'held' THEN occurred_at END
    FROM (
      SELECT gen_random_uuid() AS uuid, event.id AS event_id, event.uuid AS event_uuid, event.occurred_at,
        ${subscription} AS subscription_id, ${status} AS status
      FROM ${from} ORDER BY ${order}
    ) AS made`);
}

/**
 * Gives the planner the statistics of emptied queues whose pages still exist: no row. A prepared
 * statement then keeps its plan when rows are added later.
 */
export async function believeEmptied(sql: Sql): Promise<void> {
  const queues = ["outbox", "delivery_queue", "flights", "subscription_changes"];
  await sql(
    `UPDATE pg_class SET reltuples = 0, relpages = 1 WHERE oid IN (
      SELECT format('svc.%I', name)::regclass FROM unnest($1::text[]) AS queue (name)
      UNION ALL SELECT indexrelid FROM pg_index JOIN unnest($1::text[]) AS queue (name) ON indrelid = format('svc.%I', name)::regclass
      UNION ALL SELECT indexrelid FROM pg_index WHERE indrelid = 'svc.deliveries'::regclass AND pg_get_expr(indpred, indrelid) ~ 'held_at')`,
    [queues],
  );
}
