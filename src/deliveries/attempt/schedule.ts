/** Number and times of the attempts of a resource's deliveries. */
interface Schedule {
  /** Number of attempts, including the first. */
  readonly maxAttempts: number;
  /** Item n-1 is the wait before attempt n+1; the last item repeats. */
  readonly backoffMs: readonly number[];
}

/** Returns the schedule of a resource: its own, or the schedule of the settings. */
export type ScheduleOf = (resource: string) => Schedule;

/** Two days: one as grace, and one that the receiver may have requested by Retry-After. */
const graceMs = 2 * 24 * 60 * 60 * 1000;

/**
 * Returns how long a silent receiver may keep a delivery from its next attempt before the delivery
 * fails: as long as the remaining attempts would have taken, and two days. Pure.
 *
 * @param attempt Attempts made so far.
 */
export function longestPostponementMs({
  attempt,
  maxAttempts,
  backoffMs,
}: Schedule & { readonly attempt: number }): number {
  let waitsMs = 0;
  for (let made = Math.max(attempt, 1); made < maxAttempts; made++)
    waitsMs += backoffMs[made - 1] ?? backoffMs.at(-1) ?? 0;
  return waitsMs + graceMs;
}
