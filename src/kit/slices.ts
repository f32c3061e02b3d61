import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";

/** How long a slice lasts, in which the process does no other work. */
const sliceMs = 10;
/** No rest follows a slice that is shorter than this. */
const shortMs = 2;

/** Resolves when the process may have the next slice. */
let free: Promise<void> = Promise.resolve();

/** Resolves when the caller may have a slice: the only one of its turn of the event loop. */
async function slice(): Promise<void> {
  const begun = free.then(() => nextTurn());
  free = begun.then(rest);
  await begun;
}

/** Gives other work, which takes several turns of the event loop, as long as the slice took. */
async function rest(): Promise<void> {
  const startedAt = performance.now();
  // The slice is over by then.
  await nextTurn();
  const tookMs = performance.now() - startedAt;
  if (tookMs > shortMs) await sleep(tookMs);
}

/** How work is cut. Work whose share of the time is bounded, as by a budget, needs no rests. */
export interface SlicesOptions {
  readonly rests?: boolean;
  /** In ms, never going back. */
  readonly now?: (() => number) | undefined;
}

/**
 * Cuts long work into slices, so that the process gets to other work between them. With rests,
 * other work has half of the time: all sliced works take turns, one slice at a time.
 *
 * @returns A function that the work calls before each part. The work waits for the promise that it
 *   returns; undefined: it goes on at once.
 */
export function createSlices({ rests = true, now = () => performance.now() }: SlicesOptions = {}): () =>
  | Promise<void>
  | undefined {
  let endsAt = rests ? -Infinity : now() + sliceMs;
  const pause = async (): Promise<void> => {
    await (rests ? slice() : nextTurn());
    endsAt = now() + sliceMs;
  };
  return () => (now() < endsAt ? undefined : pause());
}
