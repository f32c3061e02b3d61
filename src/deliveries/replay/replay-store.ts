import { actingCte, actorText } from "../../db/audit.ts";
import { arraysOf, getRow, type Sql, type Transact } from "../../db/sql.ts";
import type { Actor } from "../../kit/actor.ts";
import { blockPruning } from "../prune.ts";
import type { ReplayedSubscription } from "./find-replayed.ts";
import type { ReplayPlan } from "./plan-replay.ts";
import type { AskedReplay, Replay, ReplayState } from "./replay.ts";

/** An event for which a delivery is to be made. */
export interface NewReplayed {
  readonly eventId: string;
  readonly parentId: string | null;
  /** JSON of the record; null to use that of the event's other deliveries. */
  readonly data: string | null;
  /** JSON of the record before an update; null to use that of the other deliveries, or none. */
  readonly previous: string | null;
  /** Whether the subscriber may read the old row. */
  readonly mayReadOld: boolean;
  readonly maxAttempts: number;
}

export interface ReplayStore {
  /**
   * Takes a running replay whose receiver has no backlog. The user who has waited longest comes
   * first. No other process takes the replay for `leaseMs`. Undefined when there is none.
   */
  claim(options: { readonly holder: string; readonly leaseMs: number }): Promise<Replay | undefined>;
  /** Pauses a replay for a time, in all processes. It shows the reason until it continues. */
  rest(replay: Replay, options: { readonly ms: number; readonly reason: string | null }): Promise<void>;
  /** Releases the replays of this process, so that other processes can take them. */
  leave(holder: string): Promise<void>;
  /**
   * Makes deliveries and advances the cursor in one commit. Makes nothing when the replay is no
   * longer running, or another process has moved its cursor.
   *
   * @param unmade Number of events for which no delivery can be made.
   */
  advance(
    replay: Replay,
    options: {
      readonly events: readonly NewReplayed[];
      readonly unmade: number;
      readonly cursor: string;
      readonly isEnd: boolean;
    },
  ): Promise<void>;
  /** Cancels a running replay, for a reason of the service itself. */
  stop(replay: Replay, reason: string): Promise<void>;
}

/**
 * Most deliveries of a webhook that are held or wait for a slot; its replay then makes no more.
 * Those with a due time do not count: retries are scheduled for up to a day.
 */
const mostWaiting = 200;

const columns = `replay.id, replay.subscription_id AS "subscriptionId", replay.user_id AS "userId", replay.asked, replay.state, replay.reason,
  replay.cursor, replay.until_id AS "untilId", replay.total::float8 AS total, replay.is_estimate AS "isEstimate", replay.done::float8 AS done,
  replay.failed::float8 AS failed, replay.created_at AS "createdAt", replay.updated_at AS "updatedAt"`;

const findText = `SELECT ${columns} FROM svc.replays AS replay WHERE replay.id = $1`;

// Runs before the claim, which waits for locks on the deliveries. There is nearly always no running
// replay.
const runningText = "SELECT FROM svc.replays WHERE state = 'running' LIMIT 1";

// Users take turns, however many replays each has. A lease that ends an hour later than a new one
// dates from before the database's clock was set back. It counts as over.
const claimText = `
  WITH running AS MATERIALIZED (
    SELECT id AS running_id, max(updated_at) OVER (PARTITION BY user_id) AS user_at FROM svc.replays WHERE state = 'running'
  ), next AS (
    SELECT id FROM svc.replays AS replay JOIN running ON running_id = id
    WHERE state = 'running' AND (held_until IS NULL OR held_until < now() OR holder = $1::uuid
        OR held_until > now() + $2 * interval '1 millisecond' + interval '1 hour')
      AND (SELECT count(*) FROM (
          SELECT FROM svc.deliveries WHERE held_at IS NOT NULL AND subscription_id = replay.subscription_id LIMIT ${mostWaiting}) AS held)
        + (SELECT count(*) FROM (
          SELECT FROM svc.delivery_queue WHERE due_at IS NULL AND subscription_id = replay.subscription_id LIMIT ${mostWaiting}) AS parked) < ${mostWaiting}
    ORDER BY user_at, updated_at, id LIMIT 1 FOR UPDATE OF replay SKIP LOCKED
  )
  UPDATE svc.replays AS replay SET holder = $1::uuid, held_until = now() + $2 * interval '1 millisecond', updated_at = now()
  FROM next WHERE replay.id = next.id
  RETURNING ${columns}`;

// No process has the new holder's name.
const restText = `
  UPDATE svc.replays SET holder = gen_random_uuid(), held_until = now() + $2 * interval '1 millisecond', reason = $3
  WHERE id = $1 AND state = 'running'`;

const lockText = `
  SELECT subscription_id FROM svc.replays WHERE id = $1 AND state = 'running' AND cursor = $2 FOR UPDATE`;

// The deliveries wait like held ones, so that they go out in the order of events, beside new
// deliveries.
const makeText = `
  WITH given AS MATERIALIZED (
    SELECT given.*, event.uuid AS event_uuid, event.resource
    FROM unnest($2::bigint[], $3::bigint[], $4::text[], $5::int[], $6::text[], $7::bool[])
      AS given (event_id, parent_id, data, max_attempts, previous, may_read_old)
    JOIN svc.events AS event ON event.id = given.event_id
    WHERE jsonb_typeof(event.snapshot) <> 'null'
      AND (given.data IS NOT NULL OR EXISTS (SELECT FROM svc.event_data AS data WHERE data.event_id = given.event_id))
  ), data AS (
    INSERT INTO svc.event_data (event_id, data, previous) SELECT event_id, data, previous FROM given WHERE data IS NOT NULL
    ON CONFLICT (event_id) DO NOTHING
  ), fresh AS MATERIALIZED (
    SELECT nextval('svc.deliveries_id_seq') AS id, given.* FROM given ORDER BY event_id
  ), made AS (
    INSERT INTO svc.deliveries (id, uuid, event_id, event_uuid, subscription_id, user_id, resource, parent_delivery_id, root_delivery_id,
      trigger_kind, max_attempts, url, traceparent, status, held_at, replay_id, has_previous)
    SELECT fresh.id, gen_random_uuid(), fresh.event_id, fresh.event_uuid, subscription.id, subscription.user_id, fresh.resource,
      parent.id, coalesce(parent.root_delivery_id, fresh.id), 'manual', fresh.max_attempts, subscription.url, parent.traceparent,
      'held', now(), replay.id, nullif(fresh.may_read_old, false)
    FROM fresh
    JOIN svc.replays AS replay ON replay.id = $1
    JOIN svc.subscriptions AS subscription ON subscription.id = replay.subscription_id
    LEFT JOIN svc.deliveries AS parent ON parent.id = fresh.parent_id
    RETURNING 1
  )
  SELECT count(*)::int AS count FROM made`;

const advanceText = `
  UPDATE svc.replays SET cursor = $2, done = done + $3, failed = failed + $4,
    total = CASE WHEN $5 THEN done + $3 ELSE greatest(total, done + $3) END, is_estimate = is_estimate AND NOT $5,
    state = CASE WHEN $5 THEN 'done' ELSE state END, reason = NULL, updated_at = now()
  WHERE id = $1`;

export function createReplayStore({
  sql,
  transact,
}: {
  readonly sql: Sql;
  readonly transact: Transact;
}): ReplayStore {
  return {
    async claim({ holder, leaseMs }) {
      if ((await sql(runningText)).length === 0) return undefined;
      return (await sql<Replay>(claimText, [holder, leaseMs]))[0];
    },
    async rest({ id }, { ms, reason }) {
      await sql(restText, [id, ms, reason]);
    },
    async leave(holder) {
      await sql("UPDATE svc.replays SET held_until = NULL WHERE holder = $1::uuid AND state = 'running'", [
        holder,
      ]);
    },
    async advance({ id, cursor: before }, { events, unmade, cursor, isEnd }) {
      await transact(async (own) => {
        await blockPruning(own);
        if ((await own(lockText, [id, before])).length === 0) return;
        const made = events.length === 0 ? 0 : await make(own, id, events);
        const handled = events.length + unmade;
        await own(advanceText, [id, cursor, handled, handled - made, isEnd]);
      });
    },
    async stop({ id }, reason) {
      await sql(
        "UPDATE svc.replays SET state = 'cancelled', reason = $2, updated_at = now() WHERE id = $1 AND state = 'running'",
        [id, reason],
      );
    },
  };
}

/** Makes deliveries. Returns their number, without events that are gone or were erased. */
async function make(sql: Sql, id: string, events: readonly NewReplayed[]): Promise<number> {
  const eventIds = events.map(({ eventId }) => eventId);
  // Waits for a running erasure of the events, which the next statement then sees. A later erasure
  // sees these deliveries.
  await sql("SELECT FROM svc.events WHERE id = ANY($1::bigint[]) ORDER BY id FOR SHARE", [eventIds]);
  const { count } = await getRow<{ count: number }>(sql, makeText, [
    id,
    ...arraysOf(events, "eventId", "parentId", "data", "maxAttempts", "previous", "mayReadOld"),
  ]);
  return count;
}

/** Returns the newest replays, of one subscription or of all. */
export async function findReplays(
  sql: Sql,
  { subscriptionId, limit }: { readonly subscriptionId: number | undefined; readonly limit: number },
): Promise<readonly Replay[]> {
  const where = subscriptionId === undefined ? "" : "WHERE replay.subscription_id = $2";
  return sql<Replay>(
    `SELECT ${columns} FROM svc.replays AS replay ${where} ORDER BY replay.id DESC LIMIT $1`,
    subscriptionId === undefined ? [limit] : [limit, subscriptionId],
  );
}

/** Returns the replay with an id; undefined when there is none. */
export async function findReplay(sql: Sql, id: string): Promise<Replay | undefined> {
  return (await sql<Replay>(findText, [id]))[0];
}

/** Limit of a user's finished replays, who could create and cancel thousands in a minute. */
const mostFinished = 1_000;

/**
 * Deletes the finished replays of a user beyond the newest, and those that ended 30 days ago. Runs
 * when the user gets the next replay.
 */
const dropText = `
  DELETE FROM svc.replays WHERE user_id = $1 AND state IN ('done', 'cancelled') AND (
    updated_at < now() - interval '30 days'
    OR id <= (SELECT id FROM svc.replays WHERE user_id = $1 ORDER BY id DESC OFFSET ${mostFinished} LIMIT 1))`;

const subscriptionIsGone =
  "NOT EXISTS (SELECT FROM svc.subscriptions AS subscription WHERE subscription.id = replay.subscription_id)";

const pruneText = `
  WITH ended AS (
    UPDATE svc.replays AS replay SET state = 'cancelled', reason = 'The subscription was deleted.', updated_at = now()
    WHERE state IN ('running', 'paused') AND ${subscriptionIsGone}
  )
  DELETE FROM svc.replays AS replay WHERE state IN ('done', 'cancelled') AND ${subscriptionIsGone}
    AND updated_at < now() - nullif($1::float8, 0) * interval '1 millisecond'`;

/**
 * Ends the replays whose subscription is gone, and removes replays that ended at least
 * `olderThanMs` ago; 0 removes none.
 */
export async function pruneReplays(sql: Sql, olderThanMs: number): Promise<void> {
  await sql(pruneText, [olderThanMs]);
}

const createText = `
  WITH ${actingCte("$8")}, made AS (
    INSERT INTO svc.replays AS replay (subscription_id, user_id, asked, cursor, until_id, total, is_estimate)
    SELECT $1::int, $2::int, $3::jsonb, $4::bigint, $5::bigint, $6::bigint, $7::bool FROM acting
    ON CONFLICT (subscription_id) WHERE state IN ('running', 'paused') DO NOTHING
    RETURNING ${columns}
  )
  SELECT made.*, svc.record_audit('webhook.replay_started', 'webhook', "subscriptionId"::text,
    jsonb_build_object('replay', id, 'asked', asked)) AS entry
  FROM made`;

/** Starts a replay. Returns undefined when the subscription has an unfinished replay. */
export async function createReplay(
  sql: Sql,
  { id, user }: ReplayedSubscription,
  { asked, plan, actor }: { readonly asked: AskedReplay; readonly plan: ReplayPlan; readonly actor: Actor },
): Promise<Replay | undefined> {
  await sql(dropText, [user.id]);
  const { after, untilId, total, isEstimate } = plan;
  const values = [id, user.id, JSON.stringify(asked), after, untilId, total, isEstimate, actorText(actor)];
  return (await sql<Replay>(createText, values))[0];
}

const unfinishedText = `
  SELECT id::text AS id FROM svc.replays WHERE subscription_id = $1 AND state IN ('running', 'paused')`;

/** Returns the name of a subscription's unfinished replay, for messages. */
export async function describeUnfinished(sql: Sql, subscriptionId: number): Promise<string> {
  const [found] = await sql<{ readonly id: string }>(unfinishedText, [subscriptionId]);
  // The replay may have ended meanwhile.
  return found === undefined ? "A replay" : `The replay ${found.id}`;
}

const moveText = `
  WITH ${actingCte("$3")}, was AS MATERIALIZED (
    SELECT id, state FROM svc.replays WHERE id = $1 FOR UPDATE
  ), moved AS (
    UPDATE svc.replays AS replay SET state = $2, held_until = NULL, reason = NULL, updated_at = now()
    FROM acting, was WHERE replay.id = was.id AND was.state IN ('running', 'paused') AND was.state <> $2
    RETURNING ${columns}
  )
  SELECT moved.*, svc.record_audit('webhook.replay_' || CASE state WHEN 'running' THEN 'resumed' ELSE state END, 'webhook',
    "subscriptionId"::text, jsonb_build_object('replay', id)) AS entry
  FROM moved`;

const dropWaitingText = `
  UPDATE svc.deliveries SET status = 'cancelled', held_at = NULL, last_error = 'The replay was cancelled.', updated_at = now()
  WHERE id = ANY(ARRAY(SELECT id FROM svc.deliveries WHERE held_at IS NOT NULL AND subscription_id = $1 AND replay_id = $2 FOR UPDATE SKIP LOCKED))`;

/**
 * Pauses, resumes or cancels a replay. Cancelling also cancels its waiting deliveries. A replay
 * that is already in the state stays unchanged. Must run in a transaction. Returns undefined when
 * the replay has ended otherwise.
 */
export async function moveReplay(
  sql: Sql,
  id: string,
  { state, actor }: { readonly state: Exclude<ReplayState, "done">; readonly actor: Actor },
): Promise<{ readonly replay: Replay; readonly hasMoved: boolean } | undefined> {
  const [moved] = await sql<Replay>(moveText, [id, state, actorText(actor)]);
  if (moved === undefined) {
    const found = await findReplay(sql, id);
    return found?.state === state ? { replay: found, hasMoved: false } : undefined;
  }
  // A separate statement sees the deliveries of the last portion.
  if (state === "cancelled") await sql(dropWaitingText, [moved.subscriptionId, id]);
  return { replay: moved, hasMoved: true };
}
