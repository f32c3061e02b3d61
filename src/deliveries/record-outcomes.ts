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

/** Writes outcomes and their attempts: see `DeliveryStore.record`. */
export async function recordOutcomes(
  sql: Sql,
  { outcomes: given, endedFlights, isWhole = false }: Recording,
): Promise<ReadonlyMap<string, DeliveryStatus>> {
  // Sorted by id, because all statements lock deliveries in this order.
  const outcomes = given.toSorted((one, other) => Number(one.id) - Number(other.id));
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
