/** How often and when a delivery of one resource is attempted. */
export interface Schedule {
  /** The first attempt included. */
  readonly maxAttempts: number;
  /** Wait before attempt n+1 is item n-1; the last one repeats. */
  readonly backoffMs: readonly number[];
}

/** The schedule in force for a resource: its own, or the settings'. */
export type ScheduleOf = (resource: string) => Schedule;

/** A day, and one more that the receiver may have asked for by Retry-After. */
const graceMs = 2 * 24 * 60 * 60 * 1000;

/**
 * How long a receiver that answers nothing may keep a delivery from its next attempt before it is given up: as long as the attempts
 * left to it would have taken, and two days. Pure.
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
