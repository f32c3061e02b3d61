import type { AttemptResult, NextStep } from "../delivery.ts";

/** Longest wait that a receiver may request: a day, unless the schedule itself waits longer. */
const maxRetryAfterMs = 24 * 60 * 60 * 1000;

/**
 * Decides the next step after an attempt (docs/webhooks.md, "Attempts and retries"). Pure except
 * for the random number.
 *
 * Treats all failures alike, including 4xx, because receivers answer 404 during a deployment. After
 * 410 Gone the subscription is switched off, and the retry waits. Retry-After on 429 and 503 can
 * lengthen a wait, never shorten it.
 *
 * @param attempt 1 for the first POST.
 * @param backoffMs Item n-1 is the wait after attempt n. The last item repeats; an empty list means
 *   no wait.
 * @param jitter Share, 0 to 1, by which a wait varies both ways; only upwards when the receiver
 *   requested the wait.
 * @param random Returns numbers in [0, 1), such as Math.random; called once per retry.
 */
export function decide({
  attempt,
  maxAttempts,
  backoffMs,
  jitter,
  result,
  random,
}: {
  readonly attempt: number;
  readonly maxAttempts: number;
  readonly backoffMs: readonly number[];
  readonly jitter: number;
  readonly result: AttemptResult;
  readonly random: () => number;
}): NextStep {
  if (result.error === undefined) return { kind: "delivered" };
  if (attempt >= maxAttempts) return { kind: "failed" };
  const share = random();
  const plannedMs = backoffMs[attempt - 1] ?? backoffMs.at(-1) ?? 0;
  const jitteredMs = plannedMs * (1 + jitter * (2 * share - 1));
  const askedMs = askedWaitMs(result) * (1 + jitter * share);
  const boundedMs = Math.min(askedMs, Math.max(plannedMs, maxRetryAfterMs));
  return { kind: "retry", delayMs: Math.round(Math.max(jitteredMs, boundedMs)) };
}

/** Returns the longest wait that `decide` can give by these schedules. */
export function longestWaitMs(backoffMs: readonly number[], jitter: number): number {
  return Math.max(maxRetryAfterMs, ...backoffMs.map((waitMs) => waitMs * (1 + jitter)));
}

/**
 * Returns the wait that the receiver requests: RFC 9110 defines Retry-After for 503, RFC 6585 for
 * 429.
 */
function askedWaitMs({ statusCode, retryAfterSeconds = 0 }: AttemptResult): number {
  return statusCode === 429 || statusCode === 503 ? retryAfterSeconds * 1000 : 0;
}
