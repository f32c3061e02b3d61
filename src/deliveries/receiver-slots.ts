/** Frees the slot. Told how long the receiver took to answer: 0 when it did not, undefined when no attempt was made. */
export type ReleaseSlot = (answeredMs?: number) => void;

export type Taking =
  | { readonly kind: "taken"; readonly release: ReleaseSlot }
  /** When to come back. */
  | { readonly kind: "full"; readonly delayMs: number };

/** Bounds the attempts in flight to each receiver, so that one that hangs leaves the others their slots. */
export interface ReceiverSlots {
  /** Waits for a slot where one is likely to fall free soon, and for `patienceMs` at most. */
  take(receiver: string): Promise<Taking>;
}

interface Receiver {
  inUse: number;
  /** In the order in which they came. */
  readonly waiting: Set<() => void>;
  /** How long it takes to answer, by the recent attempts; 0 while that is not known, and after one that it did not answer. */
  usualMs: number;
  /** When a slot was last taken or freed. */
  movedAtMs: number;
  /** When the next delivery that finds no slot may come back; each has a time of its own. */
  nextPlaceMs: number;
}

/** Longer than this process itself may be busy while answers wait to be read: those must not count as none. */
const defaultPatienceMs = 1_000;
/** Who is likely to wait for longer had better make room for deliveries to others, which may come next. */
const longestQueueMs = 100;
const livelyMs = 5_000;
/** Share of the latest attempt in what is usual. */
const weight = 0.2;
/** Between two that come back, while nothing is known of their receiver, and at most. */
const unknownPlaceMs = 10;
const longestPlaceMs = 50;
const mostIdle = 1_000;

function blend(usualMs: number, answeredMs: number): number {
  return usualMs === 0 || answeredMs === 0 ? answeredMs : usualMs + weight * (answeredMs - usualMs);
}

/** Between two slots that fall free. */
const paceOf = ({ usualMs, inUse }: Receiver): number => usualMs / inUse;

/**
 * @param perReceiver Slots of each receiver.
 * @param livelyLimit A receiver that usually answers within five seconds may take more than its share while less than so many slots
 *   are in use altogether: the others stay free for the rest, should it begin to hang. `perReceiver` for no more than the share.
 * @param now In ms, never going back.
 */
export function createReceiverSlots({
  perReceiver,
  livelyLimit,
  patienceMs = defaultPatienceMs,
  now,
}: {
  readonly perReceiver: number;
  readonly livelyLimit: number;
  readonly patienceMs?: number;
  readonly now: () => number;
}): ReceiverSlots {
  // Only those with attempts in flight, and so never more than there are attempts in flight.
  const receivers = new Map<string, Receiver>();
  /** Of receivers without attempts in flight, those that had some last at the end. */
  const usual = new Map<string, number>();
  let allInUse = 0;

  function mayTake({ inUse, usualMs }: Receiver): boolean {
    const isLively = usualMs > 0 && usualMs <= livelyMs;
    return inUse < perReceiver || (isLively && allInUse < livelyLimit);
  }

  function forget(name: string, { usualMs }: Receiver): void {
    receivers.delete(name);
    usual.delete(name);
    usual.set(name, usualMs);
    const [oldest] = usual.keys();
    if (oldest !== undefined && usual.size > mostIdle) usual.delete(oldest);
  }

  function slotOf(name: string, receiver: Receiver): Taking {
    let isReleased = false;
    receiver.inUse += 1;
    allInUse += 1;
    receiver.movedAtMs = now();
    return {
      kind: "taken",
      release(answeredMs) {
        if (isReleased) return;
        isReleased = true;
        if (answeredMs !== undefined) receiver.usualMs = blend(receiver.usualMs, answeredMs);
        receiver.movedAtMs = now();
        receiver.inUse -= 1;
        allInUse -= 1;
        // More than one, when the receiver has just shown that it is lively.
        for (const enter of receiver.waiting) if (mayTake(receiver)) enter();
        if (receiver.inUse === 0) forget(name, receiver);
      },
    };
  }

  /** They come back at the pace at which slots fall free, and later the longer none has. */
  function full(receiver: Receiver): Taking {
    const stalledMs = now() - receiver.movedAtMs;
    const dueMs = Math.max(now() + Math.max(longestQueueMs, stalledMs), receiver.nextPlaceMs);
    const paceMs = paceOf(receiver);
    // A little faster, so that the slots do not run dry.
    receiver.nextPlaceMs = dueMs + (paceMs === 0 ? unknownPlaceMs : Math.min(0.8 * paceMs, longestPlaceMs));
    return { kind: "full", delayMs: dueMs - now() };
  }

  function waitFor(name: string, receiver: Receiver): Promise<Taking> {
    return new Promise((resolve) => {
      const leave = (): void => {
        clearTimeout(timer);
        receiver.waiting.delete(enter);
      };
      const enter = (): void => {
        leave();
        resolve(slotOf(name, receiver));
      };
      const timer = setTimeout(() => {
        leave();
        resolve(full(receiver));
      }, patienceMs);
      receiver.waiting.add(enter);
    });
  }

  return {
    async take(name) {
      let receiver = receivers.get(name);
      if (receiver === undefined) {
        const usualMs = usual.get(name) ?? 0;
        receiver = { inUse: 0, waiting: new Set(), usualMs, movedAtMs: now(), nextPlaceMs: 0 };
        receivers.set(name, receiver);
      }
      if (mayTake(receiver)) return slotOf(name, receiver);
      const queueMs = (receiver.waiting.size + 1) * paceOf(receiver);
      const isHopeless = queueMs > longestQueueMs || now() - receiver.movedAtMs > patienceMs;
      return isHopeless ? full(receiver) : waitFor(name, receiver);
    },
  };
}
