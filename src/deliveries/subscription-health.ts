import type { Actor } from "../kit/actor.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { createAlarm, pause, type Worker } from "../kit/worker.ts";
import { actingCte, actorText } from "../db/audit.ts";
import type { Sql } from "../db/sql.ts";
import type { Log } from "../telemetry/log.ts";
import type { AttemptResult } from "./delivery.ts";

/**
 * Records the state of subscriptions' receivers (docs/webhooks.md, "States of a subscription").
 * Switches off subscriptions whose receiver is gone, or has failed for too long.
 */
export interface SubscriptionHealth extends Worker {
  /** Notes the result of an attempt, in memory. Tests of a subscription do not count. */
  note(
    subscription: { readonly id: number; readonly url: string },
    result: Pick<AttemptResult, "error" | "statusCode">,
  ): void;
}

interface SubscriptionHealthOptions {
  readonly sql: Sql;
  readonly log: Log;
  /** Actor in the audit trail when a subscription is switched off. */
  readonly actor: Actor;
  /** A subscription that only fails for this long is switched off. */
  readonly disableAfterMs: number;
  /** Resolves when no attempt is in flight: an orderly stop writes the last results too. */
  readonly drained: () => Promise<void>;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/** Results of one subscription's attempts. Times are on the clock of `now`. */
interface Entry {
  /** URL of the last attempt. */
  url: string;
  isFailing: boolean;
  /** Time of the last write; undefined before the first. */
  writtenAtMs: number | undefined;
  attemptAtMs: number;
  /** Last success that is not written yet. */
  successAtMs: number | undefined;
  /** First failure after the last success that is not written yet. */
  failureAtMs: number | undefined;
  /** URL that answered 410. */
  goneUrl: string | undefined;
}

interface State extends SubscriptionHealthOptions {
  /** Entries by subscription, the latest at the end. A dropped entry costs one more write. */
  readonly entries: Map<number, Entry>;
  /** Since when the entry of a subscription is due to be written, by subscription. */
  readonly due: Map<number, number>;
}

/** Interval of the writes of times without a change between success and failure. */
const writeEveryMs = 60_000;
const flushEveryMs = 1_000;
const mostAtOnce = 500;
const mostEntries = 20_000;
/** Share of `disableAfter` after which `webhook.failing` is sent: by default, after a day. */
const tellShare = 0.2;

export function createSubscriptionHealth(options: SubscriptionHealthOptions): SubscriptionHealth {
  const state: State = { ...options, entries: new Map(), due: new Map() };
  const alarm = createAlarm();
  return {
    name: "subscription-health",
    note(subscription, result) {
      note(state, subscription, result);
      alarm.wake();
    },
    async run(signal) {
      while (!signal.aborted) {
        await alarm.wait(state.due.size > 0 ? flushEveryMs : writeEveryMs, signal);
        await pause(flushEveryMs, signal);
        await flush(state, Math.floor(state.now()));
      }
      await state.drained();
      // Also writes entries that are not due yet: they would be lost when the process stops or the
      // configuration is replaced.
      await flush(state, Number.POSITIVE_INFINITY);
    },
  };
}

function note(
  { entries, due, now }: State,
  { id, url }: { readonly id: number; readonly url: string },
  { error, statusCode }: Pick<AttemptResult, "error" | "statusCode">,
): void {
  const isFailing = error !== undefined;
  const atMs = Math.floor(now());
  const known = entries.get(id);
  const entry: Entry = known ?? {
    url,
    isFailing: !isFailing,
    writtenAtMs: undefined,
    attemptAtMs: atMs,
    successAtMs: undefined,
    failureAtMs: undefined,
    goneUrl: undefined,
  };
  const isNews = entry.isFailing !== isFailing || entry.url !== url || statusCode === 410;
  entry.url = url;
  entry.isFailing = isFailing;
  entry.attemptAtMs = atMs;
  // The columns have whole ms, so a failure is at least 1 ms later than the success before it.
  if (isFailing) entry.failureAtMs ??= Math.max(atMs, (entry.successAtMs ?? -Infinity) + 1);
  else {
    entry.successAtMs = atMs;
    entry.failureAtMs = undefined;
  }
  if (statusCode === 410) entry.goneUrl = url;
  setBounded(entries, [id, entry], mostEntries);
  const dueMs = isNews || entry.writtenAtMs === undefined ? atMs : entry.writtenAtMs + writeEveryMs;
  due.set(id, Math.min(due.get(id) ?? dueMs, dueMs));
}

/**
 * Another process may have seen other results. A success ends the period of failures before it, and
 * the first failure after the last success begins one. The parameters are ages, because the clocks
 * of processes differ. A change or deletion by the owner locks the subscription first and then its
 * state. This statement locks in the same order.
 */
const writeText = `
  WITH ${actingCte("$8")}, given AS (
    SELECT id, at - attempt_age * interval '1 millisecond' AS attempt_at, at - success_age * interval '1 millisecond' AS success_at,
      at - failure_age * interval '1 millisecond' AS failure_at, gone_url
    FROM unnest($1::int[], $2::float8[], $3::float8[], $4::float8[], $5::text[]) AS given (id, attempt_age, success_age, failure_age, gone_url),
      date_trunc('milliseconds', now()) AS at
  ), candidate AS MATERIALIZED (
    SELECT id FROM svc.subscriptions WHERE is_active AND id = ANY(ARRAY(
      SELECT given.id FROM given JOIN svc.subscription_state AS state ON state.subscription_id = given.id
      WHERE gone_url IS NOT NULL OR least(failing_since, failure_at) < now() - $6 * interval '1 millisecond'))
    ORDER BY id FOR NO KEY UPDATE
  ), was AS MATERIALIZED (
    SELECT * FROM svc.subscription_state WHERE subscription_id = ANY($1) AND (SELECT count(*) FROM candidate) >= 0
    ORDER BY subscription_id FOR UPDATE
  ), seen AS (
    SELECT id, gone_url, greatest(last_attempt_at, attempt_at) AS attempt_at, greatest(last_success_at, success_at) AS success_at,
      last_success_at, failing_since, failing_told_at, failure_at
    FROM given JOIN was ON was.subscription_id = given.id
  ), becomes AS MATERIALIZED (
    SELECT id, gone_url, attempt_at, success_at, failing_told_at, failure_at, least(
      CASE WHEN failing_since > coalesce(success_at, '-infinity') THEN failing_since END,
      CASE WHEN failure_at > coalesce(success_at, '-infinity') THEN failure_at END) AS failing_since
    FROM seen
  ), written AS (
    UPDATE svc.subscription_state AS state
    SET last_attempt_at = becomes.attempt_at, last_success_at = becomes.success_at, failing_since = becomes.failing_since,
      failing_told_at = CASE WHEN becomes.failing_since < now() - $7 * interval '1 millisecond'
        THEN coalesce(becomes.failing_told_at, now()) END
    FROM becomes WHERE state.subscription_id = becomes.id
  )
  UPDATE svc.subscriptions AS subscription
  SET is_active = false, disabled_at = now(), disabled_reason = CASE WHEN url = becomes.gone_url THEN 'gone' ELSE 'failing' END, updated_at = now()
  FROM acting, becomes
  WHERE subscription.id = becomes.id AND subscription.id = ANY(ARRAY(SELECT id FROM candidate)) AND is_active AND becomes.failure_at IS NOT NULL
    AND (url = becomes.gone_url OR becomes.failing_since < now() - $6 * interval '1 millisecond')
  RETURNING subscription.id, user_id AS "userId", disabled_reason AS reason`;

/** Writes the entries that are due by a time. Entries that cannot be written now stay due. */
async function flush(
  { sql, entries, due, log, actor, disableAfterMs, now }: State,
  dueByMs: number,
): Promise<void> {
  const all = [...due].filter(([, dueMs]) => dueMs <= dueByMs).map(([id]) => id);
  for (let start = 0; start < all.length; start += mostAtOnce) {
    const atMs = Math.floor(now());
    const taken = all.slice(start, start + mostAtOnce).flatMap((id) => {
      due.delete(id);
      const entry = entries.get(id);
      return entry === undefined ? [] : [{ id, entry, seen: { ...entry } }];
    });
    const ageOf = (ms: number | undefined): number | null => (ms === undefined ? null : atMs - ms);
    try {
      const disabled = await sql<{ id: number; userId: number; reason: string }>(writeText, [
        taken.map(({ id }) => id),
        taken.map(({ seen }) => ageOf(seen.attemptAtMs)),
        taken.map(({ seen }) => ageOf(seen.successAtMs)),
        taken.map(({ seen }) => ageOf(seen.failureAtMs)),
        taken.map(({ seen }) => seen.goneUrl ?? null),
        disableAfterMs,
        disableAfterMs * tellShare,
        actorText(actor),
      ]);
      for (const { entry, seen } of taken) forget(entry, seen, atMs);
      for (const { id: subscriptionId, userId, reason } of disabled)
        log.warn({ event: "webhook.disabled", subscriptionId, userId, reason }, "webhook switched off");
    } catch (error) {
      for (const { id } of taken) due.set(id, atMs);
      log.warn({ err: error }, "state of webhooks not written; trying again");
      return;
    }
  }
}

/** Clears the values that were written, and keeps those that were noted meanwhile. */
function forget(entry: Entry, seen: Entry, atMs: number): void {
  entry.writtenAtMs = atMs;
  if (entry.successAtMs === seen.successAtMs) entry.successAtMs = undefined;
  if (entry.failureAtMs === seen.failureAtMs) entry.failureAtMs = undefined;
  if (entry.goneUrl === seen.goneUrl) entry.goneUrl = undefined;
}
