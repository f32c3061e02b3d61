/** Events that failed one by one, with the time of their next retry. */
export interface FailedEvents {
  has(id: string): boolean;
  ids(): readonly string[];
  /**
   * Returns whether a resource has used up its part of the free capacity. Some always remains for
   * another resource.
   */
  isFull(resource: string): boolean;
  /**
   * Records a failure. Returns the wait in ms, which doubles with each failure. A lasting failure
   * gets the longest wait at once.
   *
   * @param resource Resource of an event that had not failed before.
   * @param isOnWay Whether the event failed on its way: its record could be presented, but the
   *   broker refused or lost it.
   * @param isSlow Whether it is an event of a slow owner.
   */
  add(
    id: string,
    options?: {
      readonly resource?: string;
      readonly isLasting?: boolean;
      readonly isOnWay?: boolean;
      readonly isSlow?: boolean;
    },
  ): number;
  /**
   * Takes due events: those that failed on their way first, those of slow owners last. The more
   * often they have failed, the fewer are taken at once, down to one.
   */
  take(limit: number): readonly string[];
  /** Makes an event due again that was taken and not tried. */
  giveBack(id: string): void;
  forget(id: string): void;
  /**
   * Forgets an event that was published. If it had failed on its way, the broker works again. The
   * other events that failed on their way are then due at once, and are taken in large groups.
   */
  arrived(id: string): void;
}

interface FailedEvent {
  readonly resource: string;
  failures: number;
  readonly isOnWay: boolean;
  readonly isSlow: boolean;
  /** Infinity while the event is being tried. */
  retryAtMs: number;
}

const mostFailed = 10_000;
/**
 * Longest wait of a few events, whose cause may have ended. Each failed event adds to it, so that
 * there are never more than 37 retries a second.
 */
const fewWaitMs = 30_000;
const waitOfEachMs = 27;
/** After this many doublings, a wait is longer than every longest pause. */
const mostDoublings = 20;

/** @param now Monotonic clock, in ms. */
export function createFailedEvents({
  longestPauseMs,
  now,
}: {
  readonly longestPauseMs: number;
  readonly now: () => number;
}): FailedEvents {
  const events = new Map<string, FailedEvent>();
  /** Number of events by resource. */
  const counts = new Map<string, number>();
  /** Whether an event has failed on its way since the last one arrived. */
  let isBlocked = false;

  function count(resource: string, change: 1 | -1): void {
    counts.set(resource, (counts.get(resource) ?? 0) + change);
  }

  function forget(id: string): void {
    const event = events.get(id);
    if (event !== undefined) count(event.resource, -1);
    events.delete(id);
  }

  return {
    has: (id) => events.has(id),
    ids: () => [...events.keys()],
    isFull: (resource) => (counts.get(resource) ?? 0) >= mostFailed - events.size,
    add(id, { resource: given = "", isLasting = false, isOnWay = false, isSlow: isNewSlow = false } = {}) {
      const before = events.get(id);
      const resource = before?.resource ?? given;
      if (before === undefined) count(resource, 1);
      const failures = isLasting ? mostDoublings : (before?.failures ?? 0) + 1;
      const longestMs = isLasting ? longestPauseMs : fewWaitMs + waitOfEachMs * events.size;
      const doubledMs = 1_000 * 2 ** Math.min(failures - 1, mostDoublings);
      const pauseMs = Math.min(doubledMs, longestMs, longestPauseMs);
      const isSlow = before?.isSlow ?? isNewSlow;
      events.set(id, { resource, failures, isOnWay, isSlow, retryAtMs: now() + pauseMs });
      isBlocked ||= isOnWay;
      return pauseMs;
    },
    take(limit) {
      const all = [...events].filter(([, { retryAtMs }]) => retryAtMs <= now());
      // New events of a slow owner may be due without end. Others would wait behind them, and so
      // would its earlier ones.
      const onWay = all.filter(([, { isOnWay }]) => isOnWay);
      const others = all.filter(([, { isSlow }]) => !isSlow);
      const due = [onWay, others].find(({ length }) => length > 0) ?? all;
      const key = due === all ? "retryAtMs" : "failures";
      let [first] = due;
      for (const one of due) if (first === undefined || one[1][key] < first[1][key]) first = one;
      if (first === undefined) return [];
      const [, { failures: same }] = first;
      const atOnce = Math.max(1, limit >> (2 * Math.min(same, 15)));
      const taken = due.filter(([, { failures }]) => failures === same).slice(0, atOnce);
      for (const [, event] of taken) event.retryAtMs = Infinity;
      return taken.map(([id]) => id);
    },
    giveBack(id) {
      const event = events.get(id);
      if (event !== undefined) event.retryAtMs = now();
    },
    forget,
    arrived(id) {
      const isFree = events.get(id)?.isOnWay === true;
      forget(id);
      // Runs once, because thousands of events may arrive after this one.
      if (!isFree || !isBlocked) return;
      isBlocked = false;
      for (const event of events.values())
        if (event.isOnWay && event.retryAtMs !== Infinity)
          Object.assign(event, { failures: 0, retryAtMs: now() });
    },
  };
}
