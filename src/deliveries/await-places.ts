import type { PlaceOptions } from "./place-deliveries.ts";

/** Options of `placeDeliveries` for a lane that waits for its own attempts. */
export interface AwaitedPlaces extends Pick<PlaceOptions, "admission" | "attempts"> {
  /** Returns whether an attempt found no slot. */
  isRefused(): boolean;
  /** Returns whether a delivery was put back with a delay until its next try. */
  isDelayed(): boolean;
  /** Returns how many attempts were made. */
  attempted(): number;
  /** Resolves when each started attempt is over or given up, and all outcomes are written. */
  ended(): Promise<void>;
}

const doNothing = (): void => undefined;

/**
 * Creates places whose attempts can be awaited, so that a lane starts no more attempts than it
 * awaits.
 */
export function awaitPlaces({
  admission,
  attempts,
}: Pick<PlaceOptions, "admission" | "attempts">): AwaitedPlaces {
  const open: Promise<void>[] = [];
  let isRefused = false;
  let isDelayed = false;
  let attempted = 0;
  return {
    attempts: {
      ...attempts,
      start: (delivery, place, putBack) =>
        attempts.start(
          delivery,
          place,
          putBack &&
            ((delayMs) => {
              isDelayed ||= delayMs !== undefined;
              putBack(delayMs);
            }),
        ),
      settle(delivery, outcome) {
        const written = attempts.settle(delivery, outcome);
        open.push(written);
        return written;
      },
    },
    admission: {
      ...admission,
      reserve(request) {
        const place = admission.reserve(request);
        if (place === undefined) {
          isRefused = true;
          return undefined;
        }
        let end = doNothing;
        open.push(new Promise((resolve) => (end = resolve)));
        return {
          leave() {
            place.leave();
            end();
          },
          enter({ begin, giveUp }) {
            place.enter({
              giveUp(reason) {
                giveUp(reason);
                end();
              },
              begin: (done) =>
                begin((result) => {
                  if (result !== undefined) attempted += 1;
                  done(result);
                  end();
                }),
            });
          },
        };
      },
    },
    isRefused: () => isRefused,
    isDelayed: () => isDelayed,
    attempted: () => attempted,
    async ended() {
      // The list grows meanwhile: a delivery that gives up its place may be settled, which adds a
      // promise.
      for (const one of open) await one;
    },
  };
}
