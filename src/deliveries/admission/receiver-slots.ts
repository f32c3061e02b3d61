/**
 * Frees a slot. `answeredMs` is the time to the answer: 0 for no answer, undefined when no attempt
 * was made.
 */
export type ReleaseSlot = (answeredMs?: number) => void;

/** A reservation of a slot. The holder calls one of the two functions, once. */
export interface SlotReservation {
  /** Takes a slot as soon as one is free. Gives up when none becomes free in time. */
  enter(visit: { readonly begin: (release: ReleaseSlot) => void; readonly giveUp: () => void }): void;
  leave(): void;
}

/**
 * Limits the attempts in flight per user, per receiver, and for all silent receivers together.
 * Receivers that hang leave slots to the others, however many hang.
 */
export interface ReceiverSlots {
  /**
   * Returns a reservation when a slot is free or is likely to be free within a moment; otherwise
   * undefined.
   */
  reserve(holder: SlotHolder): SlotReservation | undefined;
  /** Returns how many reservations `reserve` would return, one after the other. */
  roomOf(holder: SlotHolder): number;
  loadOf(userId: number): UserLoad;
}

export interface UserLoad {
  readonly inUse: number;
  /** When the user got its latest slot, by `now`; 0 when that was long ago. */
  readonly servedAt: number;
}

/** The user and the receiver that a slot is counted for. */
export interface SlotHolder {
  readonly userId: number;
  /** Scheme, host and port: when a host hangs, all webhooks that point to it hang. */
  readonly origin: string;
}

interface SlotLimits {
  readonly slots: number;
  /** Most slots of one user. */
  readonly perUser: number;
  /** Most slots of one receiver. */
  readonly perReceiver: number | SharedLimit;
  /**
   * While fewer slots are in use, users and receivers usually answered within five seconds may
   * exceed their limits. The other slots stay free in case these receivers begin to hang. 0 turns
   * this off, which a `SharedLimit` requires.
   */
  readonly livelyLimit: number;
  readonly patienceMs: number;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/** Limits of each receiver over several lanes, including this lane. */
export interface SharedLimit {
  /** Returns the usage of a receiver by all lanes. */
  usedOf(origin: string): Used;
  /** Returns the current limits of a receiver: of all lanes together, and of this lane. */
  mostOf(origin: string): { readonly all: number; readonly own: number };
  /** Callbacks of lanes with waiting attempts. A lane that frees a slot calls them. */
  readonly waiting: Set<() => void>;
}

/** Slots in use, and reservations that may take one. */
export interface Used {
  inUse: number;
  /** Number of reservations without a slot yet. */
  pending: number;
}

/** Usage of one user or one receiver. */
interface Usage extends Used {
  /**
   * Moving average of the attempts' time. 0 while unknown, and after an attempt without an answer.
   */
  usualMs: number;
  /** Whether the latest attempt to end had no answer. */
  isUnanswered: boolean;
  servedAt: number;
}

interface InFlight {
  readonly user: Usage;
  readonly receiver: Usage;
  readonly sinceMs: number;
}

interface Waiting {
  readonly usages: Usages;
  readonly sinceMs: number;
  begin(): void;
  giveUp(): void;
}

/** The user, the receiver and the limits that a slot counts for. */
interface Usages {
  readonly user: Usage;
  readonly receiver: Usage;
  readonly limits: readonly Limit[];
}

interface Limit {
  readonly used: Used;
  /** Limit while the holder is not known to answer quickly. */
  readonly most: () => number;
  /** The user or receiver of the limit. The usual time of its attempts limits how many may wait. */
  readonly holder: Usage;
}

interface State extends SlotLimits {
  /** Gives free slots to waiting attempts. */
  readonly admit: () => void;
  readonly inFlight: Set<InFlight>;
  /**
   * Usage by user and by receiver. Idle entries are kept for their `usualMs`, the latest at the
   * end.
   */
  readonly usages: Map<string, Usage>;
  /** Lines of waiting attempts, by user and receiver. The first line is the next in turn. */
  readonly lines: Map<string, Waiting[]>;
  inUse: number;
  pending: number;
  watch: NodeJS.Timeout | undefined;
}

/**
 * Longest wait in a line. It allows for answers that wait to be read while this process is busy.
 */
const defaultPatienceMs = 1_000;
/** An attempt that would wait longer stays in the database, where other dispatchers can take it. */
const longestLineMs = 100;
/** Longest line in attempts, however quick the receiver is. */
const longestLine = 200;
const livelyMs = 5_000;
/** An attempt without an answer for this long makes its receiver silent. */
const silentMs = 1_000;
/** Weight of the latest attempt in the moving average. */
const weight = 0.2;
const mostIdle = 1_000;

/** Creates the slots of one lane, all free. */
export function createReceiverSlots({
  patienceMs = defaultPatienceMs,
  ...limits
}: Omit<SlotLimits, "patienceMs"> & Partial<Pick<SlotLimits, "patienceMs">>): ReceiverSlots {
  const state: State = {
    ...limits,
    patienceMs,
    admit: () => admitWaiting(state),
    inFlight: new Set(),
    usages: new Map(),
    lines: new Map(),
    inUse: 0,
    pending: 0,
    watch: undefined,
  };
  return {
    loadOf(userId) {
      const { inUse = 0, pending = 0, servedAt = 0 } = state.usages.get(`user ${userId}`) ?? {};
      return { inUse: inUse + pending, servedAt };
    },
    roomOf: (holder) => roomOf(state, usagesOf(state, holder)),
    reserve(holder) {
      const usages = usagesOf(state, holder);
      if (roomOf(state, usages) === 0) return undefined;
      add(state, usages, { inUse: 0, pending: 1 });
      return {
        leave: () => add(state, usages, { inUse: 0, pending: -1 }),
        enter: ({ begin, giveUp }) =>
          enterLine(state, holder, {
            usages,
            sinceMs: state.now(),
            begin: () => begin(takeSlot(state, usages)),
            giveUp() {
              add(state, usages, { inUse: 0, pending: -1 });
              giveUp();
            },
          }),
      };
    },
  };
}

function usagesOf(state: State, { userId, origin }: SlotHolder): Usages {
  const user = usageOf(state, `user ${userId}`);
  const receiver = usageOf(state, origin);
  for (const [name, usage] of state.usages) {
    if (state.usages.size <= mostIdle) break;
    if (usage.inUse + usage.pending === 0 && usage !== user && usage !== receiver) state.usages.delete(name);
  }
  const { perUser, perReceiver } = state;
  const limits: Limit[] = [{ used: user, most: () => perUser, holder: user }];
  if (typeof perReceiver === "number")
    limits.push({ used: receiver, most: () => perReceiver, holder: receiver });
  else
    limits.push(
      { used: receiver, most: () => perReceiver.mostOf(origin).own, holder: receiver },
      { used: perReceiver.usedOf(origin), most: () => perReceiver.mostOf(origin).all, holder: receiver },
    );
  return { user, receiver, limits };
}

function usageOf({ usages }: State, name: string): Usage {
  const usage = usages.get(name) ?? { inUse: 0, pending: 0, usualMs: 0, isUnanswered: false, servedAt: 0 };
  usages.delete(name);
  usages.set(name, usage);
  return usage;
}

function isLively({ usualMs }: Usage): boolean {
  return usualMs > 0 && usualMs <= livelyMs;
}

/**
 * Returns the number of slots left for a silent receiver; Infinity for others. Without this limit,
 * twenty silent receivers would take all slots until their breakers open, which takes minutes.
 *
 * All silent receivers share half of the slots, and the silent receivers of one user share a
 * quarter. A user without attempts in flight gets one more slot: a receiver that answers again must
 * not wait for receivers that hang.
 *
 * @param reserved Reservations that the user already has.
 */
function roomOfSilent({ inFlight, slots, now }: State, { user, receiver }: Usages, reserved: number): number {
  const silent = new Set<Usage>();
  const before = now() - silentMs;
  for (const { receiver: one, sinceMs } of inFlight)
    if (one.isUnanswered || sinceMs < before) silent.add(one);
  if (!receiver.isUnanswered && !silent.has(receiver)) return Infinity;
  const flights = [...inFlight].filter((flight) => silent.has(flight.receiver));
  const own = flights.filter((flight) => flight.user === user).length;
  const share = (quarters: number): number => Math.max(1, Math.floor((slots * quarters) / 4));
  const room = Math.min(share(2) - flights.length, share(1) - own);
  if (room > 0) return room;
  return user.inUse + user.pending <= reserved && flights.length < share(3) ? 1 : 0;
}

/**
 * Returns whether a slot is free, and slots are left for users who come later. In the last quarter
 * of the slots, a user may have fewer than are free. Without this limit, two users whose new
 * receivers hang took all slots, until their attempts timed out.
 */
function leavesSlots({ inUse, slots }: State, user: Usage): boolean {
  return inUse < Math.floor((slots * 3) / 4) || user.inUse < slots - inUse;
}

function canTake(state: State, usages: Usages): boolean {
  const { inUse, livelyLimit } = state;
  return (
    leavesSlots(state, usages.user) &&
    roomOfSilent(state, usages, 1) > 0 &&
    usages.limits.every(
      ({ used, most, holder }) => used.inUse < most() || (isLively(holder) && inUse < livelyLimit),
    )
  );
}

function roomOf(state: State, usages: Usages): number {
  const { inUse, pending, slots, livelyLimit } = state;
  const rooms = usages.limits.map(({ used, most: mostOf, holder }) => {
    const most = isLively(holder) ? Math.max(mostOf(), livelyLimit) : mostOf();
    const line = isLively(holder) ? Math.min(longestLine, (most * longestLineMs) / holder.usualMs) : 0;
    return most + line - used.inUse - used.pending;
  });
  // A user with none gets a free slot, however many attempts of others wait.
  const isFirst = inUse < slots && usages.user.inUse + usages.user.pending === 0;
  const ofAll = Math.max(slots + longestLine - inUse - pending, isFirst ? 1 : 0);
  const most = Math.min(ofAll, roomOfSilent(state, usages, 0), ...rooms);
  return Math.max(0, Math.ceil(most));
}

function add(
  state: State,
  { limits }: Usages,
  { inUse, pending }: { readonly inUse: number; readonly pending: number },
): void {
  for (const counted of [state, ...limits.map(({ used }) => used)]) {
    counted.inUse += inUse;
    counted.pending += pending;
  }
}

function takeSlot(state: State, usages: Usages): ReleaseSlot {
  add(state, usages, { inUse: 1, pending: -1 });
  const { user, receiver } = usages;
  user.servedAt = state.now();
  const flight = { user, receiver, sinceMs: state.now() };
  state.inFlight.add(flight);
  let isReleased = false;
  return (answeredMs) => {
    if (isReleased) return;
    isReleased = true;
    state.inFlight.delete(flight);
    if (answeredMs !== undefined) {
      receiver.isUnanswered = answeredMs === 0;
      for (const usage of [user, receiver]) usage.usualMs = blend(usage.usualMs, answeredMs);
    }
    add(state, usages, { inUse: -1, pending: 0 });
    passOn(state);
  };
}

/**
 * Gives a free slot to a waiting attempt. Calls the other lane first, so that the lanes take turns.
 */
function passOn({ perReceiver, admit }: State): void {
  if (typeof perReceiver !== "number") for (const other of perReceiver.waiting) if (other !== admit) other();
  admit();
}

function enterLine(state: State, { userId, origin }: SlotHolder, waiting: Waiting): void {
  const { lines, patienceMs, perReceiver, admit } = state;
  const name = `${userId} ${origin}`;
  const line = lines.get(name);
  if (line === undefined && canTake(state, waiting.usages)) return waiting.begin();
  if (line === undefined) lines.set(name, [waiting]);
  else line.push(waiting);
  if (typeof perReceiver !== "number") perReceiver.waiting.add(admit);
  state.watch ??= setInterval(() => dismissLate(state), patienceMs / 4).unref();
}

/** Admits one attempt of each line in turn, so that a long line does not delay the others. */
function admitWaiting(state: State): void {
  const { lines, slots } = state;
  for (let isAdmitted = true; isAdmitted && state.inUse < slots;) {
    isAdmitted = false;
    for (const [name, line] of lines) {
      const [first] = line;
      if (first === undefined || !canTake(state, first.usages)) continue;
      line.shift();
      lines.delete(name);
      if (line.length > 0) lines.set(name, line);
      first.begin();
      isAdmitted = true;
      break;
    }
  }
}

/** Gives up the reservations that have waited longer than `patienceMs`. */
function dismissLate(state: State): void {
  const { lines, now, patienceMs, perReceiver, admit } = state;
  for (const [name, line] of lines) {
    while (line[0] !== undefined && now() - line[0].sinceMs > patienceMs) line.shift()?.giveUp();
    if (line.length === 0) lines.delete(name);
  }
  if (lines.size > 0) return;
  clearInterval(state.watch);
  state.watch = undefined;
  if (typeof perReceiver !== "number") perReceiver.waiting.delete(admit);
}

function blend(usualMs: number, answeredMs: number): number {
  return usualMs === 0 || answeredMs === 0 ? answeredMs : usualMs + weight * (answeredMs - usualMs);
}
