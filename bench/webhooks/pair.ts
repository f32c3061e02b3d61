import type { Pool } from "pg";
import { type Peer, startPeer } from "../peer.ts";
import type { BenchContext } from "../requests.ts";
import type { CrowdQuestion, CrowdReport } from "./receivers.ts";

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
  readonly crowd: Peer<CrowdQuestion, CrowdReport>;
  /** Id of the other user. */
  readonly freshId: number;
  /** Subscription of the benchmark's user. */
  readonly subscriptionId: number;
}> {
  const crowd = startPeer<CrowdQuestion, CrowdReport>("webhooks/receivers.ts");
  atEnd(() => crowd.end());
  const { ports } = await crowd.ask({ kind: "open", count: 2 });
  const response = await fetch(`http://127.0.0.1:${port}/svc-api/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${surroundings.token}`, "content-type": "application/json" },
    body: JSON.stringify({ url: `http://127.0.0.1:${ports[1]}/`, resource: "notes", events: ["on_create"] }),
  });
  if (response.status !== 201) throw new Error(`The subscription was refused: ${await response.text()}`);
  const { id } = (await response.json()) as { readonly id: number };
  const { rows } = await pool.query<{ readonly id: number }>(
    `WITH fresh AS (
       INSERT INTO svc.users (name, email) VALUES ('Fresh', 'fresh@example.com') RETURNING id
     ), copied AS (
       INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, updated_at)
       SELECT fresh.id, $2, resource, events, encrypted_secret, secret_hint, now() FROM svc.subscriptions AS own CROSS JOIN fresh WHERE own.id = $1
     )
     SELECT id FROM fresh`,
    [id, `http://127.0.0.1:${ports[0]}/`],
  );
  return { crowd, freshId: rows[0]?.id ?? 0, subscriptionId: id };
}
