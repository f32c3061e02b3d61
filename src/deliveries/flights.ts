/** Deliveries that this process took in one statement; the row of svc.flights goes when none of them is in hand any more. */
export interface Flight {
  readonly id: string;
  /** Of its deliveries, how many are still in hand. */
  inHand: number;
  /** Whether some of its deliveries were written without the others. */
  isPartlyWritten?: boolean;
}

/** Ids of the flights that have nothing in hand once these are written; one entry for each delivery. */
export function landingOf(flights: readonly Flight[]): readonly string[] {
  const counts = new Map<Flight, number>();
  for (const flight of flights) counts.set(flight, (counts.get(flight) ?? 0) + 1);
  return [...counts].flatMap(([flight, count]) => (flight.inHand === count ? [flight.id] : []));
}

/**
 * Notes that these are written, and the flights of `landed` ended with them. Answers the other flights that have nothing in hand any
 * more: two writes at once each left the end to the other.
 */
export function land(flights: readonly Flight[], landed: readonly string[]): readonly string[] {
  for (const flight of flights) {
    flight.inHand -= 1;
    flight.isPartlyWritten = true;
  }
  return [...new Set(flights)].flatMap(({ id, inHand }) =>
    inHand === 0 && !landed.includes(id) ? [id] : [],
  );
}
