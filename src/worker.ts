/** A loop with a name. `run` settles only after `signal` aborts, or rejects when it cannot go on. */
export interface Worker {
  readonly name: string;
  run(signal: AbortSignal): Promise<void>;
}

/** Waits `ms`, or less when `signal` aborts; never rejects. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener("abort", done, { once: true });
  });
}

/** A pause that another part of the process can cut short; a wake before the pause is not forgotten. */
export interface Alarm {
  wake(): void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export function createAlarm(): Alarm {
  let isRung = false;
  let ring: (() => void) | undefined;
  return {
    wake() {
      isRung = true;
      ring?.();
    },
    async wait(ms, signal) {
      if (!isRung) {
        const rung = new AbortController();
        ring = () => rung.abort();
        await pause(ms, AbortSignal.any([signal, rung.signal]));
        ring = undefined;
      }
      isRung = false;
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
