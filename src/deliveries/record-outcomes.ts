import type { Sql } from "../db/sql.ts";
import type { DeliveryStatus } from "./delivery.ts";
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
  const written = await sql<{ id: string; status: DeliveryStatus }>(isWhole ? recordWholeText : recordText, [
    outcomes.map(({ id }) => id),
    outcomes.map(({ status }) => status),
    outcomes.map(({ attemptsBefore }) => attemptsBefore),
    outcomes.map(({ delayMs }) => delayMs ?? null),
    outcomes.map(({ lastError }) => lastError ?? null),
    outcomes.map(({ result }) => result?.startedAt ?? null),
    outcomes.map(({ result }) => result?.durationMs ?? null),
    outcomes.map(({ result }) => result?.statusCode ?? null),
    outcomes.map(({ result }) => result?.error ?? null),
    outcomes.map(({ result }) =>
      result?.responseHeaders === undefined ? null : JSON.stringify(result.responseHeaders),
    ),
    outcomes.map(({ result }) => result?.responseBody ?? null),
    outcomes.map(({ result }) => result?.isResponseTruncated ?? false),
    outcomes.map(({ uuid }) => uuid),
    endedFlights,
    outcomes.map(({ result }) => result?.address ?? null),
    outcomes.map(({ result }) => result?.dnsMs ?? null),
    outcomes.map(({ result }) => result?.connectMs ?? null),
    outcomes.map(({ result }) => result?.tlsMs ?? null),
    outcomes.map(({ result }) => result?.firstByteMs ?? null),
    outcomes.map(({ trigger }) => trigger ?? "scheduled"),
    outcomes.map(({ url }) => url ?? null),
  ]);
  return new Map(written.map(({ id, status }) => [id, status]));
}
