import { setBounded } from "../../kit/bounded-map.ts";
import type { Log } from "../../telemetry/log.ts";
import { arraysOf, withLockWait, withoutDiskWait, type Sql } from "../../db/sql.ts";

/** Request for attempts of a subscription that has a rate limit. */
interface RateRequest {
  readonly subscriptionId: number;
  /** The limit, in attempts a second. */
  readonly rateLimit: number;
  readonly count: number;
}

/** Enforces the rate limits of subscriptions over all dispatchers. */
export interface Rates {
  /**
   * Returns how many attempts of each subscription may begin now. Runs one statement, and none
   * without subscriptions.
   */
  take(requests: readonly RateRequest[]): Promise<ReadonlyMap<number, number>>;
  /** Returns the time until a subscription may have an attempt; 0 for now. Runs no statement. */
  waitMs(subscriptionId: number): number;
}

/** Most subscriptions without an attempt left. A dropped subscription costs one more statement. */
const mostWaiting = 10_000;

/**
 * Deliveries without a rate limit wait for this statement too, so a lock must not delay them for
 * long.
 */
const withShortLockWait = withLockWait(1000);

/**
 * Each row says when the next attempt may begin. Time that passes unused adds up to a burst. A
 * granted attempt that is not made is lost, so a rate is never exceeded. The commit does not wait
 * for the disk: a crash of the database may grant the attempts of the last 0.6 s again. The lowest
 * rate has 10 s between attempts: a time far later than that dates from before the database's clock
 * was set back.
 */
const takeText = `
  WITH given AS (
    SELECT * FROM unnest($1::int[], $2::float8[], $3::float8[], $4::int[]) AS given (id, gap_ms, burst_ms, wanted)
  ), held AS MATERIALIZED (
    SELECT subscription_id AS id, next_slot_at FROM svc.subscription_state WHERE subscription_id = ANY($1) AND ${withShortLockWait}
    ORDER BY 1 FOR UPDATE
  ), clock AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM (SELECT count(*) FROM held) AS locked
  ), base AS (
    SELECT id, gap_ms, wanted, clock.now,
      CASE WHEN next_slot_at > clock.now + interval '20 seconds' THEN clock.now
        ELSE greatest(next_slot_at, clock.now - burst_ms * interval '1 millisecond') END AS next
    FROM given JOIN held USING (id) CROSS JOIN clock
  ), granted AS MATERIALIZED (
    SELECT *, CASE WHEN next > now THEN 0
      ELSE least(wanted, floor(extract(epoch FROM now - next)::float8 * 1000 / gap_ms)::int + 1) END AS count
    FROM base
  ), written AS (
    UPDATE svc.subscription_state AS state SET next_slot_at = granted.next + granted.count * granted.gap_ms * interval '1 millisecond'
    FROM granted WHERE state.subscription_id = granted.id AND granted.count > 0
  )
  SELECT id, count, (extract(epoch FROM next - now) * 1000 + count * gap_ms)::float8 AS "waitMs" FROM granted
  WHERE ${withoutDiskWait}`;

/** Creates the rates, whose state is in `svc.subscription_state`. */
export function createRates({
  sql,
  now,
  onWait,
}: {
  readonly sql: Sql;
  readonly now: () => number;
  /** Called with the time until one of the requested subscriptions may have another attempt. */
  readonly onWait: (ms: number) => void;
}): Rates {
  const untilMs = new Map<number, number>();
  return {
    waitMs(id) {
      const until = untilMs.get(id);
      if (until === undefined) return 0;
      const waitMs = until - now();
      if (waitMs > 0) return waitMs;
      untilMs.delete(id);
      return 0;
    },
    async take(requests) {
      if (requests.length === 0) return new Map();
      const given = requests.map((request) => ({ ...request, ...paceOf(request.rateLimit) }));
      const rows = await sql<{ id: number; count: number; waitMs: number }>(
        takeText,
        arraysOf(given, "subscriptionId", "gapMs", "burstMs", "count"),
      );
      const waiting = rows.filter(({ waitMs }) => waitMs > 0);
      for (const { id, waitMs } of waiting) setBounded(untilMs, [id, now() + waitMs], mostWaiting);
      if (waiting.length > 0) onWait(Math.min(...waiting.map(({ waitMs }) => waitMs)));
      return new Map(rows.map(({ id, count }) => [id, count]));
    },
  };
}

/**
 * Returns the time between attempts, and how much unused time may add up. From a limit of 20 a
 * second on, a twentieth of them may begin together, which batches need. The rest of the second has
 * fewer, so that no second exceeds the limit.
 */
export function paceOf(rateLimit: number): { readonly gapMs: number; readonly burstMs: number } {
  const burst = burstOf(rateLimit);
  const gapMs = 1000 / (burst === 1 ? rateLimit : rateLimit - burst);
  return { gapMs, burstMs: (burst - 1) * gapMs };
}

/** Returns how many attempts may begin together at most. */
export function burstOf(rateLimit: number): number {
  return Math.max(1, Math.floor(rateLimit / 20));
}

/**
 * Uses up an attempt that `take` has granted. Returns whether one more attempt of the subscription
 * may begin; always true without a limit.
 */
export type UseGrant = (subscriptionId: number, rateLimit: number | null) => boolean;

/**
 * Requests one attempt for each delivery that has a rate limit. Runs no statement when none has a
 * limit. Undefined when the rates cannot be read: deliveries without a limit must not wait for
 * them.
 */
export async function grantsFor(
  { rates, log }: { readonly rates: Pick<Rates, "take">; readonly log: Pick<Log, "error"> },
  deliveries: Iterable<{ readonly subscriptionId: number; readonly rateLimit: number | null }>,
): Promise<UseGrant | undefined> {
  const requests = new Map<number, RateRequest>();
  for (const { subscriptionId, rateLimit } of deliveries) {
    if (rateLimit === null) continue;
    const count = (requests.get(subscriptionId)?.count ?? 0) + 1;
    requests.set(subscriptionId, { subscriptionId, rateLimit, count });
  }
  const granted = await rates.take([...requests.values()]).catch((error: unknown) => {
    log.error({ err: error }, "rate limits not asked; their deliveries wait");
    return undefined;
  });
  if (granted === undefined) return undefined;
  // A subscription without a row in `svc.subscription_state` has no limit. Only a damaged database
  // lacks the row.
  const left = new Map([...requests].map(([id, { count }]) => [id, granted.get(id) ?? count]));
  return (subscriptionId, rateLimit) => {
    if (rateLimit === null) return true;
    const count = left.get(subscriptionId) ?? 0;
    left.set(subscriptionId, count - 1);
    return count > 0;
  };
}
