/** A named loop. `run` settles only after `signal` aborts, or rejects when it cannot continue. */
export interface Worker {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Creates a worker that takes a turn, waits for `intervalMs`, and begins again.
 *
 * @param onError Called with the error of a failed turn. The next turn follows in any case.
 */
export function createPeriodicWorker({
  name,
  intervalMs,
  turn,
  onError,
}: {
  readonly name: string;
  readonly intervalMs: number;
  readonly turn: (signal: AbortSignal) => Promise<void>;
  readonly onError: (error: unknown) => void;
}): Worker {
  return {
    name,
    async run(signal) {
      while (!signal.aborted) {
        try {
          await turn(signal);
        } catch (error) {
          onError(error);
        }
        await pause(intervalMs, signal);
      }
    },
  };
}

/** Waits `ms`, or less when `signal` aborts. Never rejects. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return createAlarm().wait(ms, signal);
}

/**
 * A pause that another part of the process can end early. A wake before the pause ends it at once.
 */
export interface Alarm {
  wake(): void;
  /** Waits for the alarm, `ms` at most. Only one waiter at a time. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** Creates an alarm that is not ringing. */
export function createAlarm(): Alarm {
  let isRung = false;
  let ring: (() => void) | undefined;
  return {
    wake() {
      if (ring === undefined) isRung = true;
      else ring();
    },
    // Does not use AbortSignal.any. In Node 20, each call leaves 70 bytes on a signal that lives as
    // long as the process.
    wait(ms, signal) {
      return new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          signal.removeEventListener("abort", end);
          ring = undefined;
          isRung = false;
          resolve();
        };
        const timer = setTimeout(end, ms);
        if (isRung || signal.aborted) return end();
        ring = end;
        signal.addEventListener("abort", end);
      });
    },
  };
}

/** Resolves when `signal` aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener("abort", () => resolve(), { once: true });
  });
}

/**
 * Returns whether `work` settles within `limitMs`. Rejects with it in time, and ignores a later
 * rejection.
 */
export async function endsWithin(limitMs: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<false>((resolve) => (timer = setTimeout(resolve, limitMs, false)));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
    work.catch(() => undefined);
  }
}
