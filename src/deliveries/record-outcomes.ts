import { arraysOf, type Sql } from "../db/sql.ts";
import type { AttemptResult, DeliveryStatus } from "./delivery.ts";
import type { Outcome } from "./outcome.ts";
import { recordText, recordWholeText } from "./store-texts.ts";

/** Outcomes to write, and the flights that end with them. */
export interface Recording {
  readonly outcomes: readonly Outcome[];
  readonly endedFlights: readonly string[];
  /** Whether the outcomes cover all deliveries of these flights. */
  readonly isWhole?: boolean;
}

/**
 * Returns one outcome of each delivery, sorted by id: all statements lock deliveries in this order.
 * A process that stood still for as long as a flight may have a delivery twice. Two outcomes would
 * make two attempts of one number, and fail the statement. The latest attempt counts, and of its
 * outcomes a success.
 */
function oneOfEach(outcomes: readonly Outcome[]): readonly Outcome[] {
  const inOrder = outcomes.toSorted(
    (one, other) =>
      Number(one.id) - Number(other.id) ||
      one.attemptsBefore - other.attemptsBefore ||
      Number(one.status === "delivered") - Number(other.status === "delivered"),
  );
  return [...new Map(inOrder.map((outcome) => [outcome.id, outcome])).values()];
}

/** Writes outcomes and their attempts: see `DeliveryStore.record`. */
export async function recordOutcomes(
  sql: Sql,
  { outcomes: given, endedFlights, isWhole = false }: Recording,
): Promise<ReadonlyMap<string, DeliveryStatus>> {
  const outcomes = oneOfEach(given);
  const results = outcomes.map(
    ({ result }): Partial<AttemptResult> => result ?? { isResponseTruncated: false },
  );
  const written = await sql<{ id: string; status: DeliveryStatus }>(isWhole ? recordWholeText : recordText, [
    ...arraysOf(outcomes, "id", "status", "attemptsBefore", "delayMs", "lastError"),
    ...arraysOf(results, "startedAt", "durationMs", "statusCode", "error"),
    results.map(({ responseHeaders }) =>
      responseHeaders === undefined ? null : JSON.stringify(responseHeaders),
    ),
    ...arraysOf(results, "responseBody", "isResponseTruncated"),
    ...arraysOf(outcomes, "uuid"),
    endedFlights,
    ...arraysOf(results, "address", "dnsMs", "connectMs", "tlsMs", "firstByteMs"),
    outcomes.map(({ trigger }) => trigger ?? "scheduled"),
    ...arraysOf(outcomes, "url"),
  ]);
  return new Map(written.map(({ id, status }) => [id, status]));
}
