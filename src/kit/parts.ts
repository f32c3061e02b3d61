import { setImmediate as nextTurn } from "node:timers/promises";
import { createSharedPlaces } from "./turns.ts";

/** Runs one part at a time of all long work in the process. */
const inTurn = createSharedPlaces({ ofAll: 1, ofEach: 1 });
/** Time of the last part. */
let lastTookMs = 0;

/**
 * Runs a part of a user's long work in a later turn of the event loop. Lets other requests run
 * first, because all share one thread.
 */
export function runPart<T>(userId: number, part: () => T): Promise<T> {
  return inTurn(userId, async () => {
    // Other requests get as much time as the previous part took, of this work or another. The
    // event loop has many turns in that time, and Node.js accepts one connection in each.
    await new Promise((resolve) => setTimeout(resolve, lastTookMs));
    const startedAt = performance.now();
    const result = part();
    lastTookMs = performance.now() - startedAt;
    return result;
  });
}

/** Long work in steps. It yields where other requests may run. */
export type Steps<T> = Generator<undefined, T, undefined>;

/**
 * Does the first part of a user's long work at once, the others in later turns of the loop.
 *
 * @param userId Undefined for work whose time has another limit: it does not wait for other work.
 */
export async function inParts<T>(userId: number | undefined, steps: Steps<T>): Promise<T> {
  const next = (): IteratorResult<undefined, T> => {
    calls = 0;
    return steps.next();
  };
  const goOn = (): IteratorResult<undefined, T> => {
    // Starts the clock.
    isTimeOver();
    return next();
  };
  let step = next();
  while (step.done !== true) {
    if (userId === undefined) await nextTurn();
    step = userId === undefined ? goOn() : await runPart(userId, goOn);
  }
  return step.value;
}

/** Does all of the work at once, for code that runs while no requests are served. */
export function atOnce<T>(steps: Steps<T>): T {
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  return step.value;
}

/** Limit of the long work in one turn of the event loop, for which all other requests wait. */
const longestPartMs = 10;

/** When the long work of this turn of the event loop began; undefined when there was none. */
let beganAt: number | undefined;

/**
 * Calls for one look at the clock. The work between two calls takes some microseconds. Counts the
 * calls of one part only, so that short work never waits for long work in its first turn.
 */
const callsPerLook = 100;
let calls = 0;

/** Returns whether the long work of this turn of the event loop has taken its time. */
export function isPartOver(): boolean {
  calls += 1;
  return calls % callsPerLook === 0 && isTimeOver();
}

/**
 * Returns the same for work whose single steps take long. The first look of a turn starts the
 * clock, for the work of all requests.
 */
export function isTimeOver(): boolean {
  if (beganAt === undefined) {
    beganAt = performance.now();
    setImmediate(() => (beganAt = undefined));
  }
  return performance.now() - beganAt > longestPartMs;
}
