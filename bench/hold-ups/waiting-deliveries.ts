import { setTimeout as sleep } from "node:timers/promises";
import type { Sql } from "../../src/db/sql.ts";
import { keepStatistics } from "../../test/support/long-history.ts";
import { type HoldUp, secondsOf } from "./hold-up.ts";
import type { User } from "./system.ts";

/** Makes waiting deliveries of events that are fanned out. `enqueue` puts them into the queue. */
async function makeWaiting(
  sql: Sql,
  {
    user,
    subscriptionId,
    count,
  }: { readonly user: User; readonly subscriptionId: number; readonly count: number },
): Promise<void> {
  await sql("ALTER TABLE svc.events DISABLE TRIGGER enqueue_event");
  await sql(
    `INSERT INTO svc.events (uuid, resource, trigger, record_id, owner_id, snapshot)
    SELECT gen_random_uuid(), 'notes', 'on_create', 'waiting', $1::text, jsonb_build_object('id', number, 'text', 'waiting', 'user_id', $1::int)
    FROM generate_series(1, $2::int) AS number`,
    [user.id, count],
  );
  await sql("ALTER TABLE svc.events ENABLE TRIGGER enqueue_event");
  await sql(`INSERT INTO svc.event_data (event_id, data)
    SELECT id, '{"id":1,"text":"waiting"}' FROM svc.events WHERE record_id = 'waiting'`);
  await sql(
    `INSERT INTO svc.deliveries (id, root_delivery_id, uuid, event_id, event_uuid, subscription_id, user_id, resource, trigger_kind, max_attempts, url)
    SELECT nextval('svc.deliveries_id_seq'), currval('svc.deliveries_id_seq'), gen_random_uuid(), event.id, event.uuid, subscription.id,
      subscription.user_id, 'notes', 'automatic', 10, subscription.url
    FROM svc.events AS event, svc.subscriptions AS subscription WHERE record_id = 'waiting' AND subscription.id = $1 ORDER BY event.id`,
    [subscriptionId],
  );
}

/**
 * Works in portions, like the service: every read skips uncommitted rows.
 *
 * @param dueAt An SQL expression over `id`.
 */
async function enqueue(
  sql: Sql,
  { subscriptionId, dueAt }: { readonly subscriptionId: number; readonly dueAt: string },
): Promise<void> {
  const portion = 1_000;
  const [row] = await sql<{ first: number; last: number }>(
    "SELECT min(id)::int AS first, max(id)::int AS last FROM svc.deliveries WHERE subscription_id = $1",
    [subscriptionId],
  );
  for (let id = row?.first ?? 0; id <= (row?.last ?? -1); id += portion)
    await sql(
      `INSERT INTO svc.delivery_queue (delivery_id, subscription_id, user_id, due_at)
      SELECT id, subscription_id, user_id, ${dueAt} FROM svc.deliveries
      WHERE subscription_id = $1 AND id BETWEEN $2 AND $3`,
      [subscriptionId, id, id + portion - 1],
    );
}

export const backlog: HoldUp = {
  name: "backlog: deliveries for a receiver that hangs, half of them due, old statistics",
  async prepare({ ada, sql, subscribe, openReceiver, ask }, { waiting }) {
    const { port } = await openReceiver("hanging");
    const subscriptionId = await subscribe(ada, { port });
    await keepStatistics(sql);
    await makeWaiting(sql, { user: ada, subscriptionId, count: waiting });
    return {
      async run(durationMs) {
        await enqueue(sql, { subscriptionId, dueAt: "CASE WHEN id % 2 = 0 THEN now() END" });
        await sleep(durationMs);
        const [row] = await sql<{ due: number }>(
          "SELECT count(due_at)::int AS due FROM svc.delivery_queue WHERE due_at < now()",
        );
        return `${waiting} deliveries, ${row?.due} of them due at the end`;
      },
      release: () => ask(ada, "DELETE", `/webhooks/${subscriptionId}`),
    };
  },
};

export const held: HoldUp = {
  name: "held: a paused subscription's deliveries, switched on, then deleted",
  async prepare({ ada, sql, subscribe, openReceiver, ask }, { waiting }) {
    const receiver = await openReceiver("fast");
    const subscriptionId = await subscribe(ada, { port: receiver.port });
    const path = `/webhooks/${subscriptionId}`;
    await ask(ada, "PUT", path, { is_active: false });
    await makeWaiting(sql, { user: ada, subscriptionId, count: waiting });
    await enqueue(sql, { subscriptionId, dueAt: "NULL" });
    return {
      async run(durationMs) {
        const on = await secondsOf(() => ask(ada, "PUT", path, { is_active: true }));
        await sleep(durationMs / 2);
        const came = await receiver.count();
        const off = await secondsOf(() => ask(ada, "DELETE", path));
        await sleep(durationMs / 2);
        const [row] = await sql<{ left: number }>("SELECT count(*)::int AS left FROM svc.delivery_queue");
        const answered = `answered in ${(on * 1000).toFixed(0)} and ${(off * 1000).toFixed(0)} ms`;
        return `${waiting} held, ${answered}; ${(came / (durationMs / 2000)).toFixed(0)} a second came; ${row?.left} left ${durationMs / 2000} s after the delete`;
      },
    };
  },
};
