import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** Duration of a slice, during which the process does no other work. */
const sliceMs = 10;
/** No rest follows a slice that is shorter than this. */
const shortMs = 2;

/** Resolves when the process may begin the next slice. */
let free: Promise<void> = Promise.resolve();

/** Resolves when the caller may begin a slice: the only one of its turn of the event loop. */
async function slice(): Promise<void> {
  const begun = free.then(() => nextTurn());
  free = begun.then(rest);
  await begun;
}

/** Rests as long as the slice took, for other work, which takes several turns of the event loop. */
async function rest(): Promise<void> {
  const startedAt = performance.now();
  // Ends after the slice.
  await nextTurn();
  const tookMs = performance.now() - startedAt;
  if (tookMs > shortMs) await sleep(tookMs);
}

/**
 * Options of slices. Work whose share of the time is limited, such as by a budget, needs no rests.
 */
export interface SlicesOptions {
  readonly rests: boolean;
  /** Monotonic clock, in ms. */
  readonly now?: (() => number) | undefined;
}

/**
 * Cuts long work into slices, so that the process can do other work between them. With rests, other
 * work has half of the time, because only one slice runs at a time.
 *
 * @returns A function that the work calls before each part. The work waits for the returned
 *   promise; undefined means that it continues at once.
 */
export function createSlices({
  rests,
  now = () => performance.now(),
}: SlicesOptions): () => Promise<void> | undefined {
  let endsAt = rests ? -Infinity : now() + sliceMs;
  const pause = async (): Promise<void> => {
    await (rests ? slice() : nextTurn());
    endsAt = now() + sliceMs;
  };
  return () => (now() < endsAt ? undefined : pause());
}
