import type { Log } from "../../telemetry/log.ts";
import type { Flight } from "../flights.ts";
import type { DeliveryStore } from "../store.ts";

export interface RenewalOptions {
  readonly store: Pick<DeliveryStore, "renewFlight">;
  /** How long a flight lasts: see `flightMsOf`. */
  readonly flightMs: number;
  readonly log: Log;
}

/** Less than the 15 s that a flight has in addition to the POST. */
const renewFromMs = 5_000;

/**
 * Returns whether a flight is to be renewed before a POST. Its readers were judged slowly, the
 * database answered late, or this process stood still. Others may have the deliveries by now.
 */
export function isOld({ beganAtMs }: Flight): boolean {
  return performance.now() - beganAtMs > renewFromMs;
}

/**
 * Makes a flight last as long as a new one. Returns false when it has ended. Its deliveries share
 * the statement.
 */
export function renewFlight({ store, flightMs, log }: RenewalOptions, flight: Flight): Promise<boolean> {
  const { id } = flight;
  const beganAtMs = performance.now();
  flight.renewal ??= store
    .renewFlight({ id, flightMs })
    .then((isRenewed) => {
      if (isRenewed) flight.beganAtMs = beganAtMs;
      else
        log.warn(
          { event: "delivery.late", flight: id },
          "attempts began too late: their deliveries are due again, or another process has them",
        );
      return isRenewed;
    })
    .finally(() => {
      flight.renewal = undefined;
    });
  return flight.renewal;
}
