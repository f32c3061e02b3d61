/** How often and when a delivery of one resource is attempted. */
export interface Schedule {
  /** The first attempt included. */
  readonly maxAttempts: number;
  /** Wait before attempt n+1 is item n-1; the last one repeats. */
  readonly backoffMs: readonly number[];
}

/** The schedule in force for a resource: its own, or the settings'. */
export type ScheduleOf = (resource: string) => Schedule;
