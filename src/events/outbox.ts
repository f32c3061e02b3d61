import type { Sql } from "../db/sql.ts";
import type { Trigger } from "./event.ts";

/** A captured record change that no broker has confirmed yet. */
export interface OutboxEvent {
  /** Row id, as a decimal string. */
  readonly id: string;
  readonly uuid: string;
  readonly resource: string;
  readonly trigger: Trigger;
  readonly recordId: string;
  readonly ownerId: string | null;
  /** As the capture trigger encoded it; capture.ts decodes it. */
  readonly snapshot: Readonly<Record<string, unknown>>;
  /** When it happened: UTC, microseconds, trailing `Z`. */
  readonly timestamp: string;
  /** Turns of the relay that failed on it so far. */
  readonly failures: number;
}

export interface Postponement {
  readonly id: string;
  readonly delayMs: number;
  readonly reason: string;
}

export interface Outbox {
  /** Takes up to `limit` unpublished events for `leaseMs`, oldest first. A relay that dies gives them up when the lease ends. */
  claim(options: { readonly limit: number; readonly leaseMs: number }): Promise<readonly OutboxEvent[]>;
  markPublished(ids: readonly string[]): Promise<void>;
  /** Keeps the events, to be claimed again after their delays. */
  postpone(postponements: readonly Postponement[]): Promise<void>;
}

// By a flag and SKIP LOCKED, never by "id > last": ids are given out in another order than commits happen.
// The claim is a lease and not an open transaction: one held over a publish would pin the vacuum horizon
// for as long as the broker is slow, and block the embedded database, which runs one transaction at a time.
const claimText = `
  UPDATE svc.events AS event
  SET claimed_until = now() + $2 * interval '1 millisecond'
  FROM (
    SELECT id FROM svc.events
    WHERE published_at IS NULL AND (claimed_until IS NULL OR claimed_until < now())
    ORDER BY id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
  ) AS due
  WHERE event.id = due.id
  RETURNING event.id, event.uuid, event.resource, event.trigger, event.record_id AS "recordId", event.owner_id AS "ownerId",
    event.snapshot, event.relay_failures AS failures,
    to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS timestamp`;

const markPublishedText = `UPDATE svc.events SET published_at = now(), claimed_until = NULL, relay_error = NULL WHERE id = ANY($1::bigint[])`;

const postponeText = `
  UPDATE svc.events AS event
  SET claimed_until = now() + failed.delay_ms * interval '1 millisecond', relay_failures = relay_failures + 1, relay_error = failed.reason
  FROM unnest($1::bigint[], $2::float8[], $3::text[]) AS failed (id, delay_ms, reason)
  WHERE event.id = failed.id`;

export function createOutbox({ sql }: { readonly sql: Sql }): Outbox {
  return {
    async claim({ limit, leaseMs }) {
      const events = await sql<OutboxEvent>(claimText, [limit, leaseMs]);
      return events.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
    },
    async markPublished(ids) {
      if (ids.length > 0) await sql(markPublishedText, [ids]);
    },
    async postpone(postponements) {
      if (postponements.length === 0) return;
      await sql(postponeText, [
        postponements.map(({ id }) => id),
        postponements.map(({ delayMs }) => delayMs),
        postponements.map(({ reason }) => reason),
      ]);
    },
  };
}
