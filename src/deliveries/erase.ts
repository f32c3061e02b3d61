import { handOverIn } from "../db/audit.ts";
import { getRow, type Sql, type Transact } from "../db/sql.ts";
import type { Actor } from "../kit/actor.ts";
import { erasedReason } from "./delivery.ts";
import { blockPruning } from "./prune.ts";

/** The record whose payloads are erased. */
export interface ErasedRecord {
  readonly resource: string;
  /** Id of the record, as in `record_id`. */
  readonly recordId: string;
}

/** Result of one erasure. Leaves out rows that an earlier run erased. */
export interface Erased {
  /** Events that have lost their snapshot. */
  readonly events: number;
  /** Number of these events that were not fanned out yet, and never will be. */
  readonly unpublished: number;
  /** Events whose deliveries have lost their payload. */
  readonly payloads: number;
  /** Unfinished deliveries that were cancelled. */
  readonly cancelled: number;
  /** Deliveries with an attempt under way, which may have begun to send. */
  readonly under_way: number;
  /** Attempts that have lost their receiver's answer. */
  readonly answers: number;
  /** Answers kept for an `Idempotency-Key` that have lost their content. */
  readonly kept_answers: number;
}

const eventsPerPortion = 100;
const deliveriesPerPortion = 1_000;

const countText = "SELECT count(*)::int AS events FROM svc.events WHERE resource = $1 AND record_id = $2";

const pageText = `
  SELECT id FROM svc.events WHERE resource = $1 AND record_id = $2 AND id > $3 ORDER BY id LIMIT ${eventsPerPortion}`;

// Waits for a running fan-out of the event: the next statements see its writes. A later fan-out
// does not find the event in the outbox.
const emptyEventsText = `
  WITH unpublished AS (
    DELETE FROM svc.outbox WHERE event_id = ANY($1::bigint[]) RETURNING 1
  ), emptied AS (
    UPDATE svc.events SET snapshot = 'null', previous = NULL WHERE id = ANY($1::bigint[]) AND jsonb_typeof(snapshot) <> 'null' RETURNING 1
  )
  SELECT (SELECT count(*)::int FROM emptied) AS events, (SELECT count(*)::int FROM unpublished) AS unpublished`;

const emptyDataText = `
  WITH gone AS (DELETE FROM svc.event_data WHERE event_id = ANY($1::bigint[]) RETURNING 1)
  SELECT count(*)::int AS payloads FROM gone`;

// OFFSET 0 makes PostgreSQL read only the deliveries of these events, instead of all deliveries by
// id.
const deliveriesText = `
  SELECT id FROM (SELECT id FROM svc.deliveries WHERE event_id = ANY($1::bigint[]) OFFSET 0) AS of_events
  WHERE id > $2 ORDER BY id LIMIT ${deliveriesPerPortion}`;

/**
 * Cancels the unfinished deliveries. A delivery that was cancelled during its attempt gets the
 * reason too: the outcome then leaves out the receiver's answer. A failed delivery without a dead
 * letter is marked as dead-lettered. There is nothing to publish, and retention would otherwise
 * keep it forever.
 */
const cancelText = `
  WITH one AS MATERIALIZED (
    SELECT delivery.id, delivery.status, EXISTS (SELECT FROM svc.flights WHERE delivery.id = ANY(delivery_ids)) AS is_under_way
    FROM svc.deliveries AS delivery WHERE delivery.id = ANY($1::bigint[]) ORDER BY delivery.id FOR UPDATE OF delivery
  ), cancelled AS (
    UPDATE svc.deliveries AS delivery SET status = 'cancelled', last_error = $2, held_at = NULL, updated_at = now()
    FROM one WHERE delivery.id = one.id
      AND (one.status IN ('pending', 'retrying', 'held') OR one.status = 'cancelled' AND one.is_under_way)
    RETURNING delivery.id, one.status AS before, one.is_under_way
  ), settled AS (
    UPDATE svc.deliveries AS delivery SET dead_lettered_at = now()
    FROM one WHERE delivery.id = one.id AND one.status = 'failed' AND delivery.dead_lettered_at IS NULL
  ), unqueued AS (
    DELETE FROM svc.delivery_queue WHERE delivery_id = ANY(ARRAY(SELECT id FROM cancelled))
  )
  SELECT count(*) FILTER (WHERE before <> 'cancelled')::int AS cancelled, count(*) FILTER (WHERE is_under_way)::int AS under_way
  FROM cancelled`;

const emptyAttemptsText = `
  WITH emptied AS (
    UPDATE svc.attempts SET response_headers = NULL, response_body = NULL, response_truncated = false
    WHERE delivery_id = ANY($1::bigint[]) AND (response_headers IS NOT NULL OR response_body IS NOT NULL)
    RETURNING 1
  )
  SELECT count(*)::int AS answers FROM emptied`;

/** Finds kept answers by `Location`, the only trace of a record in an answer outside its body. */
const emptyKeptText = `
  WITH emptied AS (
    UPDATE svc.idempotency_keys SET status = 404, headers = '{}', body = $1, bytes = $2
    WHERE right(headers ->> 'Location', length($3)) = $3 OR right(headers ->> 'Location', length($4)) = $4
    RETURNING 1
  )
  SELECT count(*)::int AS kept_answers FROM emptied`;

/** Answer to a repeated request. It keeps the request from creating the record again. */
const keptAnswer = Buffer.from(JSON.stringify({ message: erasedReason, code: "record.not_found" }));

/** Returns how many events the record has. */
export async function countEvents(sql: Sql, { resource, recordId }: ErasedRecord): Promise<number> {
  return (await getRow<{ events: number }>(sql, countText, [resource, recordId])).events;
}

/**
 * Erases every payload of a record's events (docs/operations.md, "Erase a record"), beside the
 * running service. The rows of events, deliveries and attempts stay. Works in portions with a
 * transaction each, and can be repeated. The first portion writes the row of `svc.audit`.
 *
 * @param onProgress Called after each portion of events, with the totals so far.
 */
export async function eraseRecord({
  transact,
  record,
  actor,
  onProgress,
}: {
  readonly transact: Transact;
  readonly record: ErasedRecord;
  readonly actor: Actor;
  readonly onProgress: (erased: Erased) => void;
}): Promise<Erased> {
  const erased: { -readonly [Name in keyof Erased]: number } = {
    events: 0,
    unpublished: 0,
    payloads: 0,
    cancelled: 0,
    under_way: 0,
    answers: 0,
    kept_answers: 0,
  };
  const run = async (sql: Sql, text: string, values: readonly unknown[]): Promise<void> => {
    const row = await getRow<Partial<Erased>>(sql, text, values);
    for (const name of Object.keys(row) as (keyof Erased)[]) erased[name] += row[name] ?? 0;
  };

  await transact(async (sql) => {
    const events = await countEvents(sql, record);
    await handOverIn(sql, actor);
    const subject = `${record.resource}/${record.recordId}`;
    await sql(
      "SELECT svc.record_audit('record.erased', 'record', $1, jsonb_build_object('events', $2::int))",
      [subject, events],
    );
    const [plain, encoded] = [record.recordId, encodeURIComponent(record.recordId)];
    const ends = [plain, encoded].map((id) => `/resources/${record.resource}/${id}`);
    await run(sql, emptyKeptText, [keptAnswer, keptAnswer.length, ...ends]);
  });

  for (let after = "0"; ;) {
    const ids = await transact(async (sql) => {
      await blockPruning(sql);
      const page = await sql<{ id: string }>(pageText, [record.resource, record.recordId, after]);
      const found = page.map(({ id }) => id);
      await run(sql, emptyEventsText, [found]);
      await run(sql, emptyDataText, [found]);
      return found;
    });
    await eraseDeliveries(transact, ids, run);
    onProgress(erased);
    const last = ids.at(-1);
    if (last === undefined || ids.length < eventsPerPortion) return erased;
    after = last;
  }
}

async function eraseDeliveries(
  transact: Transact,
  events: readonly string[],
  run: (sql: Sql, text: string, values: readonly unknown[]) => Promise<void>,
): Promise<void> {
  for (let after: string | undefined = "0"; after !== undefined;) {
    const from: string = after;
    after = await transact(async (sql) => {
      await blockPruning(sql);
      const page = await sql<{ id: string }>(deliveriesText, [events, from]);
      const ids = page.map(({ id }) => id);
      // Two statements: the second sees the attempts of an outcome that the first has waited for.
      await run(sql, cancelText, [ids, erasedReason]);
      await run(sql, emptyAttemptsText, [ids]);
      return ids.length < deliveriesPerPortion ? undefined : ids.at(-1);
    });
  }
}
