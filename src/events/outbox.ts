import type { Sql } from "../db/sql.ts";
import type { Trigger } from "./event.ts";

/** A captured record change on its way to the broker. */
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
  /** W3C `traceparent` of what wrote the record; null when the writer is not traced. */
  readonly traceparent: string | null;
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
  /**
   * The same for events that a broker confirmed and whose deliveries were not written by the time it was given: the broker
   * has lost them, or is slow. Publishing them again is harmless.
   */
  claimStranded(options: {
    readonly limit: number;
    readonly leaseMs: number;
  }): Promise<readonly OutboxEvent[]>;
  /** Believes the events in the broker for `believedForMs`. */
  markPublished(options: { readonly ids: readonly string[]; readonly believedForMs: number }): Promise<void>;
  /** Takes belief and claims back for all, after the broker was emptied. What another relay has claimed goes out twice, and counts once. */
  forgetPublished(): Promise<void>;
  /** Keeps the events, to be claimed again after their delays. */
  postpone(postponements: readonly Postponement[]): Promise<void>;
}

// By a flag and SKIP LOCKED, never by "id > last": ids are given out in another order than commits happen.
// The claim is a lease and not an open transaction: one held over a publish would pin the vacuum horizon
// for as long as the broker is slow, and block the embedded database, which runs one transaction at a time.
const claimText = (isDue: string, order: string): string => `
  UPDATE svc.events AS event
  SET claimed_until = now() + $2 * interval '1 millisecond'
  FROM (SELECT id FROM svc.events WHERE ${isDue} ORDER BY ${order} LIMIT $1 FOR UPDATE SKIP LOCKED) AS due
  WHERE event.id = due.id
  RETURNING event.id, event.uuid, event.resource, event.trigger, event.record_id AS "recordId", event.owner_id AS "ownerId",
    event.snapshot, event.traceparent, event.relay_failures AS failures,
    to_char(event.occurred_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS timestamp`;

const claimFreshText = claimText(
  "published_at IS NULL AND (claimed_until IS NULL OR claimed_until < now())",
  "id",
);
const claimStrandedText = claimText(
  "published_at IS NOT NULL AND fanned_out_at IS NULL AND claimed_until < now()",
  "claimed_until",
);

const markPublishedText = `
  UPDATE svc.events
  SET published_at = now(), claimed_until = now() + $2 * interval '1 millisecond', relay_error = NULL
  WHERE id = ANY($1::bigint[])`;

const forgetPublishedText = `UPDATE svc.events SET claimed_until = 'epoch' WHERE fanned_out_at IS NULL AND claimed_until > now()`;

const postponeText = `
  UPDATE svc.events AS event
  SET claimed_until = now() + failed.delay_ms * interval '1 millisecond', relay_failures = relay_failures + 1, relay_error = failed.reason
  FROM unnest($1::bigint[], $2::float8[], $3::text[]) AS failed (id, delay_ms, reason)
  WHERE event.id = failed.id`;

export function createOutbox({ sql }: { readonly sql: Sql }): Outbox {
  return {
    async claim({ limit, leaseMs }) {
      return inOrder(await sql<OutboxEvent>(claimFreshText, [limit, leaseMs]));
    },
    async claimStranded({ limit, leaseMs }) {
      return inOrder(await sql<OutboxEvent>(claimStrandedText, [limit, leaseMs]));
    },
    async markPublished({ ids, believedForMs }) {
      if (ids.length > 0) await sql(markPublishedText, [ids, believedForMs]);
    },
    async forgetPublished() {
      await sql(forgetPublishedText);
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

function inOrder(events: readonly OutboxEvent[]): readonly OutboxEvent[] {
  return events.toSorted((a, b) => (BigInt(a.id) < BigInt(b.id) ? -1 : 1));
}
