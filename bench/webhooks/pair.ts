import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { callerOf, subscribe } from "../call-api.ts";
import { openReceivers, writeEvenly, type Receiver } from "../deliveries.ts";
import type { BenchContext } from "../requests.ts";

/**
 * Opens two receivers: the first for the fresh deliveries of another user, the second for those of
 * the benchmark's user.
 */
export async function openPair({
  context: { surroundings, atEnd },
  pool,
  port,
}: {
  readonly context: BenchContext;
  readonly pool: Pool;
  /** Port of the API. */
  readonly port: number;
}): Promise<{
  readonly crowd: Receiver;
  /** Id of the other user. */
  readonly freshId: number;
  /** Subscription of the benchmark's user. */
  readonly subscriptionId: number;
}> {
  const crowd = await openReceivers(atEnd, 2);
  const [freshPort, ownPort = 0] = crowd.ports;
  const id = await subscribe(callerOf({ port, token: surroundings.token }), ownPort);
  const { rows } = await pool.query<{ readonly id: number }>(
    `WITH fresh AS (
       INSERT INTO svc.users (name, email) VALUES ('Fresh', 'fresh@example.com') RETURNING id
     ), copied AS (
       INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, updated_at)
       SELECT fresh.id, $2, resource, events, encrypted_secret, secret_hint, now() FROM svc.subscriptions AS own CROSS JOIN fresh WHERE own.id = $1
     )
     SELECT id FROM fresh`,
    [id, `http://127.0.0.1:${freshPort}/`],
  );
  return { crowd, freshId: rows[0]?.id ?? 0, subscriptionId: id };
}

/** Returns the p99 of the other user's deliveries in ms, at 60 changes a second. */
export async function freshP99({
  pool,
  crowd,
  freshId,
  durationMs,
}: {
  readonly pool: Pool;
  readonly crowd: Receiver;
  readonly freshId: number;
  readonly durationMs: number;
}): Promise<number> {
  await crowd.ask({ kind: "begin" });
  await writeEvenly({ pool, userIds: [freshId], ratePerSecond: 60, durationMs });
  await sleep(1_000);
  return (await crowd.ask({ kind: "report", below: 1 })).latencyMs.p99;
}
