/** Frees a slot. Told how long the receiver took to answer: 0 when it did not, undefined when no attempt was made. */
export type ReleaseSlot = (answeredMs?: number) => void;

/** A place in the line for a slot. One of the two is called, once. */
export interface Place {
  /** Takes a slot as soon as there is one, or gives the place up when none falls free for too long. */
  enter(visit: { readonly begin: (release: ReleaseSlot) => void; readonly giveUp: () => void }): void;
  leave(): void;
}

/** Bounds the attempts in flight of each user and to each receiver, so that one that hangs leaves the others their slots. */
export interface ReceiverSlots {
  /** A place, when a slot is free or will be within a moment; undefined when it is not likely. */
  reserve(holder: SlotHolder): Place | undefined;
  /** Whether `reserve` would answer a place. */
  hasRoom(holder: SlotHolder): boolean;
}

/** What a slot is counted for. */
export interface SlotHolder {
  readonly userId: number;
  /** Scheme, host and port: it is a host that hangs, with all the webhooks that point to it. */
  readonly origin: string;
}

interface Share {
  /** Of a user or a receiver that is not known to be lively. */
  readonly most: number;
  inUse: number;
  /** Places that are reserved or wait. */
  pending: number;
  /** How long its attempts take, by the recent ones; 0 while that is not known, and after one that was not answered. */
  usualMs: number;
}

interface Waiting {
  readonly shares: readonly Share[];
  readonly sinceMs: number;
  begin(): void;
  giveUp(): void;
}

/** Longer than this process itself may be busy while answers wait to be read: those must not count as none. */
const defaultPatienceMs = 1_000;
/** What would have to wait for longer stays in the database, where it costs nothing and others can take it. */
const longestLineMs = 100;
/** And no more than so many, however quick the receiver. */
const longestLine = 200;
const livelyMs = 5_000;
/** Share of the latest attempt in what is usual. */
const weight = 0.2;
const mostIdle = 1_000;

/**
 * @param slots In all.
 * @param perUser Of these, most of one user.
 * @param perReceiver And most to one receiver.
 * @param livelyLimit Whoever is usually answered within five seconds may take more than the share while less than so many slots
 *   are in use altogether: the others stay free for the rest, should it begin to hang. 0 for no more than the share.
 * @param now In ms, never going back.
 */
export function createReceiverSlots({
  slots,
  perUser,
  perReceiver,
  livelyLimit,
  patienceMs = defaultPatienceMs,
  now,
}: {
  readonly slots: number;
  readonly perUser: number;
  readonly perReceiver: number;
  readonly livelyLimit: number;
  readonly patienceMs?: number;
  readonly now: () => number;
}): ReceiverSlots {
  // Those with nothing in hand are kept for what is usual of them, the latest at the end.
  const shares = new Map<string, Share>();
  /** By user and receiver; the next in turn is the first. */
  const lines = new Map<string, Waiting[]>();
  let inUse = 0;
  let pending = 0;
  let watch: NodeJS.Timeout | undefined;

  function shareOf(name: string, most: number): Share {
    let share = shares.get(name);
    if (share === undefined) share = { most, inUse: 0, pending: 0, usualMs: 0 };
    else shares.delete(name);
    shares.set(name, share);
    return share;
  }

  function sharesOf({ userId, origin }: SlotHolder): readonly Share[] {
    const holders = [shareOf(`user ${userId}`, perUser), shareOf(origin, perReceiver)];
    for (const [name, share] of shares) {
      if (shares.size <= mostIdle) break;
      if (share.inUse + share.pending === 0 && !holders.includes(share)) shares.delete(name);
    }
    return holders;
  }

  const isLively = ({ usualMs }: Share): boolean => usualMs > 0 && usualMs <= livelyMs;

  function mayTake(holders: readonly Share[]): boolean {
    return (
      inUse < slots &&
      holders.every((share) => share.inUse < share.most || (isLively(share) && inUse < livelyLimit))
    );
  }

  function canReserve(holders: readonly Share[]): boolean {
    return (
      inUse + pending < slots + longestLine &&
      holders.every((share) => {
        const most = isLively(share) ? Math.max(share.most, livelyLimit) : share.most;
        const line = isLively(share) ? Math.min(longestLine, (most * longestLineMs) / share.usualMs) : 0;
        return share.inUse + share.pending < most + line;
      })
    );
  }

  function add(holders: readonly Share[], count: { readonly inUse: number; readonly pending: number }): void {
    inUse += count.inUse;
    pending += count.pending;
    for (const share of holders) {
      share.inUse += count.inUse;
      share.pending += count.pending;
    }
  }

  function take(holders: readonly Share[]): ReleaseSlot {
    add(holders, { inUse: 1, pending: -1 });
    let isReleased = false;
    return (answeredMs) => {
      if (isReleased) return;
      isReleased = true;
      if (answeredMs !== undefined)
        for (const share of holders) share.usualMs = blend(share.usualMs, answeredMs);
      add(holders, { inUse: -1, pending: 0 });
      admitWaiting();
    };
  }

  /** One of each line in turn, so that no user's or receiver's many keep the others waiting. */
  function admitWaiting(): void {
    for (let isAdmitted = true; isAdmitted && inUse < slots;) {
      isAdmitted = false;
      for (const [name, line] of lines) {
        const [first] = line;
        if (first === undefined || !mayTake(first.shares)) continue;
        line.shift();
        lines.delete(name);
        if (line.length > 0) lines.set(name, line);
        first.begin();
        isAdmitted = true;
        break;
      }
    }
  }

  /** Gives those up who wait in vain. */
  function dismissPatient(): void {
    for (const [name, line] of lines) {
      while (line[0] !== undefined && now() - line[0].sinceMs > patienceMs) line.shift()?.giveUp();
      if (line.length === 0) lines.delete(name);
    }
    if (lines.size > 0) return;
    clearInterval(watch);
    watch = undefined;
  }

  return {
    hasRoom: (holder) => canReserve(sharesOf(holder)),
    reserve(holder) {
      const holders = sharesOf(holder);
      if (!canReserve(holders)) return undefined;
      add(holders, { inUse: 0, pending: 1 });
      return {
        leave: () => add(holders, { inUse: 0, pending: -1 }),
        enter({ begin, giveUp }) {
          const waiting: Waiting = {
            shares: holders,
            sinceMs: now(),
            begin: () => begin(take(holders)),
            giveUp() {
              add(holders, { inUse: 0, pending: -1 });
              giveUp();
            },
          };
          const name = `${holder.userId} ${holder.origin}`;
          const line = lines.get(name);
          if (line === undefined && mayTake(holders)) return waiting.begin();
          if (line === undefined) lines.set(name, [waiting]);
          else line.push(waiting);
          watch ??= setInterval(dismissPatient, patienceMs / 4).unref();
        },
      };
    },
  };
}

function blend(usualMs: number, answeredMs: number): number {
  return usualMs === 0 || answeredMs === 0 ? answeredMs : usualMs + weight * (answeredMs - usualMs);
}
