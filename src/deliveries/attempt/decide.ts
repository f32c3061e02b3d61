import type { AttemptResult, NextStep } from "../delivery.ts";

/** A receiver may ask for a pause of a day, and for no more, unless the plan itself waits longer. */
const maxRetryAfterMs = 24 * 60 * 60 * 1000;

/**
 * Decides what follows an attempt (specification, 6.4). Pure but for the random number that it is given.
 *
 * Every failure is treated alike, 4xx and 410 Gone too: receivers answer 404 while they are being deployed, and an
 * operator can end a subscription that is really gone. Retry-After on 429 and 503 may lengthen a wait, never shorten it.
 *
 * @param attempt 1 for the first POST.
 * @param backoffMs Item n-1 is the wait after attempt n; the last one repeats, none means no wait.
 * @param jitter Share, 0 to 1, by which a wait is varied both ways; only upwards when the receiver has named the wait.
 * @param random Gives numbers in [0, 1), such as Math.random; asked once per retry.
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
  if (attempt >= maxAttempts) {
    const spent =
      maxAttempts === 1 ? "The only attempt failed" : `All ${maxAttempts} attempts failed, the last one`;
    return { kind: "failed", reason: `${spent}: ${result.detail ?? result.error}` };
  }
  const share = random();
  const plannedMs = backoffMs[attempt - 1] ?? backoffMs.at(-1) ?? 0;
  const jitteredMs = plannedMs * (1 + jitter * (2 * share - 1));
  const askedMs = askedWaitMs(result) * (1 + jitter * share);
  const boundedMs = Math.min(askedMs, Math.max(plannedMs, maxRetryAfterMs));
  return { kind: "retry", delayMs: Math.round(Math.max(jitteredMs, boundedMs)) };
}

/** RFC 9110 gives Retry-After a meaning for failures with 503, RFC 6585 with 429. */
function askedWaitMs({ statusCode, retryAfterSeconds = 0 }: AttemptResult): number {
  return statusCode === 429 || statusCode === 503 ? retryAfterSeconds * 1000 : 0;
}
