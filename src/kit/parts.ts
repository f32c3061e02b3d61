import { createTurns } from "./turns.ts";

/** Turns of the parts of all long work in the process. */
const parts = createTurns<"all">(1);
/** Time of the last part. */
let lastTookMs = 0;

/**
 * Runs a part of long work in a later turn of the event loop. Lets other requests run first,
 * because all share one thread.
 */
export async function runPart<T>(part: () => T): Promise<T> {
  await parts.take("all");
  try {
    // Other requests get as much time as the previous part took, of this work or another. The
    // event loop has many turns in that time, and Node.js accepts one connection in each.
    await new Promise((resolve) => setTimeout(resolve, lastTookMs));
    const startedAt = performance.now();
    const result = part();
    lastTookMs = performance.now() - startedAt;
    return result;
  } finally {
    parts.leave("all");
  }
}

/** Limit of the long work in one turn of the event loop, for which all other requests wait. */
const longestPartMs = 10;

/** When the long work of this turn of the event loop began; undefined when there was none. */
let beganAt: number | undefined;

/**
 * Returns whether the long work of this turn of the event loop has taken its time. The first call
 * of a turn starts the clock, for the work of all requests.
 */
export function isPartOver(): boolean {
  if (beganAt === undefined) {
    beganAt = performance.now();
    setImmediate(() => (beganAt = undefined));
  }
  return performance.now() - beganAt > longestPartMs;
}
