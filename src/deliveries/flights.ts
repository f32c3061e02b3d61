/**
 * Deliveries that this process took in one statement. Their row of `svc.flights` is deleted when
 * the last one is written.
 */
export interface Flight {
  readonly id: string;
  /** Number of its deliveries that are not written yet. */
  unwritten: number;
  /** Time before the statement that began or last renewed it, by `performance.now()`. */
  beganAtMs: number;
  /** Whether it could be renewed, while the statement is under way. */
  renewal?: Promise<boolean> | undefined;
  /** Whether some of its deliveries were written without the others. */
  isPartlyWritten?: boolean;
}

/** Returns the ids of the flights that end with these writes; one entry per delivery. */
export function flightsEndedBy(flights: readonly Flight[]): readonly string[] {
  const counts = new Map<Flight, number>();
  for (const flight of flights) counts.set(flight, (counts.get(flight) ?? 0) + 1);
  return [...counts].flatMap(([flight, count]) => (flight.unwritten === count ? [flight.id] : []));
}

/**
 * Counts these deliveries as written. Returns the flights that have ended beside `endedFlights`:
 * each of two simultaneous writes had left the end to the other.
 */
export function countWritten(flights: readonly Flight[], endedFlights: readonly string[]): readonly string[] {
  for (const flight of flights) {
    flight.unwritten -= 1;
    flight.isPartlyWritten = true;
  }
  return [...new Set(flights)].flatMap(({ id, unwritten }) =>
    unwritten === 0 && !endedFlights.includes(id) ? [id] : [],
  );
}
