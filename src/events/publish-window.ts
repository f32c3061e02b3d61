import { holderOf, type InFlight, type OutboxEvent, type ReadLimits } from "./outbox.ts";

type Holding = Pick<OutboxEvent, "resource" | "ownerId" | "bytes">;
type WindowedEvent = Pick<OutboxEvent, "id" | "uuid" | "transaction" | "resource" | "ownerId" | "bytes">;

/**
 * The events in flight: being published, or published and not known to be fanned out. Other events
 * stay in the outbox, where they use no memory of the broker and the dispatchers.
 */
export interface PublishWindow {
  has(id: string): boolean;
  get(id: string): WindowedEvent | undefined;
  ids(): readonly string[];
  /** Returns the ids of events that are still in the outbox as far as known. */
  idsInFlight(): readonly string[];
  /** Returns the ids of events in flight of this transaction or a later one. */
  idsInFlightFrom(transaction: bigint): readonly string[];
  hasRoom(): boolean;
  /**
   * Returns whether the window has capacity for events that earlier reads left over. Most of the
   * window is reserved for new events, which would wait behind a backlog in the broker's one queue.
   */
  hasRoomToCatchUp(): boolean;
  /** Returns how the next read must divide the capacity. */
  limits(): ReadLimits;
  /**
   * Returns how many more events of the resource fit. A costly resource has its own part, because
   * the fan-out may take long for its events.
   */
  roomOf(resource: string): number;
  /**
   * Returns those events of a resource that fit, in their order. A holder may have at most as much
   * of a costly resource's part as it leaves free.
   */
  fitting<E extends Holding>(resource: string, events: readonly E[]): readonly E[];
  enter(event: WindowedEvent & { readonly isLeftOver?: boolean }): void;
  /**
   * Returns whether the window has capacity for the message of an event. Its holder may use at most
   * as much as it leaves free. A message may be a thousand times as large as the record.
   */
  hasRoomFor(id: string): boolean;
  /**
   * Returns the same for the first message of a group. It may exceed the part of its holder,
   * because a single record may be larger than that. It only waits when the others use all
   * capacity. Otherwise a hundred resources would have a hundred messages of 16 MB in flight.
   */
  hasRoomForFirst(id: string, bytes: number): boolean;
  /** Notes the size of an event's message, which counts from now on. */
  resize(id: string, bytes: number): void;
  /** Notes that the broker has received the events. Before that, it cannot lose them. */
  sent(ids: readonly string[]): void;
  leave(id: string): void;
  /**
   * Records which of the checked events are still in the outbox. Removes events that left the
   * outbox long enough ago, and returns their ids.
   */
  note(asked: ReadonlySet<string>, waiting: Pick<ReadonlySet<string>, "has">): readonly string[];
  /**
   * Returns the ids of events that were sent and are still in the outbox after this time.
   *
   * @param costlyMs The same time for events of costly resources.
   */
  olderThan(ms: number, costlyMs: number): readonly string[];
  /**
   * Returns the ids of events in the outbox that a later event has overtaken. The later event was
   * sent `ms` after it and has left the outbox, although the queue is in order. Each costly
   * resource has its own turns.
   */
  overtaken(ms: number): readonly string[];
}

interface Entry {
  readonly event: WindowedEvent;
  readonly transaction: bigint;
  /** Whether an earlier read had left the event over. */
  readonly isLeftOver: boolean;
  /** When the event was sent: Infinity before. Presenting alone may take minutes. */
  sentAtMs: number;
  /** When the event was first missing in the outbox; from then on it uses no capacity. */
  readonly goneSinceMs: number;
}

/** Count and size of a part of the events in flight. */
interface Part {
  count: number;
  bytes: number;
}

/** A part that its holders divide. */
interface DividedPart extends Part {
  /** What each holder has of it. */
  readonly used: Map<string, InFlight>;
}

const mostEvents = 1_000;
const mostBytes = 4 * 1024 ** 2;
/** With this many left-over events in flight, further left-over events wait. */
const catchUpBelow = { events: mostEvents / 20, bytes: mostBytes / 8 };
/** With messages up to this size, those of a read have about as many bytes as a read may have. */
export const smallBytes = 16 * 1024;
/** Capacity for each costly resource, at any number of them. */
const leastOwnEvents = 10;
const mostOwnBytes = mostBytes / 4;
/**
 * Capacity for all costly resources together. Two of them may have a message of 16 MB each in a
 * slow fan-out, and delay no other.
 */
const mostCostlyBytes = 10 * mostBytes;
/**
 * How long an event must have left the outbox to be removed from the window. A crash of the
 * database can bring it back, because the commit that removed it may not be on disk. Without
 * `synchronous_commit`, it is on disk after three times `wal_writer_delay`, 0.6 s.
 */
const sureAfterMs = 2_000;

interface State {
  readonly inFlight: Map<string, Entry>;
  /** Events that have left the outbox, for `sureAfterMs`. */
  readonly gone: Map<string, Entry>;
  /** When the last of the events that have left the outbox was sent, by `turnsOf`. */
  readonly arrivedSentAtMs: Map<string, number>;
  readonly parts: Parts;
  readonly now: () => number;
}

/**
 * @param costly Names of the resources whose events may take long at the fan-out.
 * @param now Monotonic clock, in ms.
 */
export function createPublishWindow({
  costly,
  now,
}: {
  readonly costly: readonly string[];
  readonly now: () => number;
}): PublishWindow {
  const parts = createParts(costly);
  const state: State = { inFlight: new Map(), gone: new Map(), arrivedSentAtMs: new Map(), parts, now };
  const { inFlight, gone } = state;
  const { shared, leftOver, costlyAll, own, roomOf } = parts;
  const entryOf = (id: string): Entry | undefined => inFlight.get(id) ?? gone.get(id);
  return {
    has: (id) => entryOf(id) !== undefined,
    get: (id) => entryOf(id)?.event,
    ids: () => [...inFlight.keys(), ...gone.keys()],
    idsInFlight: () => [...inFlight.keys()],
    idsInFlightFrom(first) {
      const found: string[] = [];
      for (const [id, { transaction }] of inFlight) if (transaction >= first) found.push(id);
      return found;
    },
    hasRoom: () => shared.count < mostEvents && shared.bytes < mostBytes,
    hasRoomToCatchUp: () => leftOver.count < catchUpBelow.events && leftOver.bytes < catchUpBelow.bytes,
    limits: () => ({
      used: shared.used,
      free: { events: mostEvents - shared.count, bytes: mostBytes - shared.bytes },
      catchUpBelow,
      full: parts.full(),
    }),
    roomOf,
    fitting: parts.fitting,
    enter: (event) => enter(state, event),
    hasRoomFor: (id) => hasRoomFor(state, id),
    hasRoomForFirst(id, bytes) {
      const event = inFlight.get(id)?.event;
      if (event === undefined || bytes <= smallBytes) return true;
      const [part, most] = own.has(event.resource) ? [costlyAll, mostCostlyBytes] : [shared, mostBytes];
      return part.bytes - event.bytes < most;
    },
    resize: (id, bytes) => resize(state, id, bytes),
    sent(ids) {
      for (const entry of ids.map(entryOf)) if (entry !== undefined) entry.sentAtMs = now();
    },
    leave: (id) => leave(state, id),
    note(asked, waiting) {
      const left: string[] = [];
      for (const id of asked) {
        const entry = entryOf(id);
        if (entry === undefined) continue;
        noteOne(state, entry, waiting.has(id));
        if (waiting.has(id) || now() - entry.goneSinceMs <= sureAfterMs) continue;
        leave(state, id);
        left.push(id);
      }
      return left;
    },
    olderThan: (ms, costlyMs) =>
      [...inFlight]
        .filter(([, { event, sentAtMs }]) => now() - sentAtMs > (own.has(event.resource) ? costlyMs : ms))
        .map(([id]) => id),
    overtaken: (ms) => overtaken(state, ms),
  };
}

function enter(
  state: State,
  {
    id,
    uuid,
    transaction,
    resource,
    ownerId,
    bytes,
    isLeftOver = false,
  }: Parameters<PublishWindow["enter"]>[0],
): void {
  leave(state, id);
  const event = { id, uuid, transaction, resource, ownerId, bytes };
  const times = { sentAtMs: Infinity, goneSinceMs: Infinity };
  const entry = { event, transaction: BigInt(transaction), isLeftOver, ...times };
  state.inFlight.set(id, entry);
  state.parts.countIn(entry, 1);
}

function leave({ inFlight, gone, parts }: State, id: string): void {
  const entry = inFlight.get(id);
  if (entry !== undefined) parts.countIn(entry, -1);
  inFlight.delete(id);
  gone.delete(id);
}

function hasRoomFor({ inFlight, parts: { shared, own } }: State, id: string): boolean {
  const event = inFlight.get(id)?.event;
  if (event === undefined) return false;
  const part = own.get(event.resource) ?? shared;
  const most = part === shared ? mostBytes : mostOwnBytes;
  return (part.used.get(holderOf(event))?.bytes ?? 0) < most - part.bytes;
}

function resize({ inFlight, parts: { countIn } }: State, id: string, bytes: number): void {
  const entry = inFlight.get(id);
  if (entry === undefined) return;
  countIn(entry, -1);
  const resized = { ...entry, event: { ...entry.event, bytes } };
  inFlight.set(id, resized);
  countIn(resized, 1);
}

/** Notes whether an event is in the outbox. */
function noteOne(state: State, entry: Entry, isWaiting: boolean): void {
  const { inFlight, gone, parts, now } = state;
  const { id } = entry.event;
  if (isWaiting === inFlight.has(id)) return;
  leave(state, id);
  if (!isWaiting) noteArrived(state, entry);
  (isWaiting ? inFlight : gone).set(id, { ...entry, goneSinceMs: isWaiting ? Infinity : now() });
  if (isWaiting) parts.countIn(entry, 1);
}

function noteArrived(state: State, { event, sentAtMs }: Entry): void {
  const turns = turnsOf(state, event);
  const before = state.arrivedSentAtMs.get(turns) ?? 0;
  if (sentAtMs > before && sentAtMs < Infinity) state.arrivedSentAtMs.set(turns, sentAtMs);
}

function overtaken(state: State, ms: number): readonly string[] {
  return [...state.inFlight]
    .filter(([, { event, sentAtMs }]) => {
      return (state.arrivedSentAtMs.get(turnsOf(state, event)) ?? 0) - sentAtMs > ms;
    })
    .map(([id]) => id);
}

/** Returns in whose turns an event is fanned out: of its costly resource, or of all others. */
function turnsOf({ parts: { own } }: State, { resource }: WindowedEvent): string {
  return own.has(resource) ? resource : "";
}

interface Parts {
  /** The events of all other resources. */
  readonly shared: DividedPart;
  /** The events of `shared` that earlier reads had left over. */
  readonly leftOver: Part;
  /** The events of all costly resources. */
  readonly costlyAll: Part;
  /** Parts of costly resources, by resource. */
  readonly own: ReadonlyMap<string, DividedPart>;
  readonly roomOf: PublishWindow["roomOf"];
  readonly fitting: PublishWindow["fitting"];
  /** Returns the costly resources and holders of which no more events fit. */
  readonly full: () => ReadLimits["full"];
  readonly countIn: (entry: Entry, direction: 1 | -1) => void;
}

function createParts(costly: readonly string[]): Parts {
  const shared: DividedPart = { count: 0, bytes: 0, used: new Map() };
  const leftOver: Part = { count: 0, bytes: 0 };
  const costlyAll: Part = { count: 0, bytes: 0 };
  const own = new Map(
    costly.map((resource): [string, DividedPart] => [resource, { count: 0, bytes: 0, used: new Map() }]),
  );
  const mostOwn = Math.max(leastOwnEvents, Math.min(mostEvents / 5, Math.floor(mostEvents / costly.length)));
  const isFull = (part: DividedPart, holder: string): boolean => {
    const { events, bytes } = part.used.get(holder) ?? { events: 0, bytes: 0 };
    return events >= mostOwn - part.count || bytes >= mostOwnBytes - part.bytes;
  };
  return {
    shared,
    leftOver,
    costlyAll,
    own,
    roomOf(resource) {
      const part = own.get(resource);
      if (part === undefined) return Infinity;
      // Opens only when an eighth is free, because each read scans more events than it may take.
      // One holder leaves half of it free; two leave a third.
      const hasBytes = part.bytes < mostOwnBytes && costlyAll.bytes < mostCostlyBytes;
      const isOpen = hasBytes && part.count <= (mostOwn * 7) / 8;
      return isOpen ? mostOwn - part.count : 0;
    },
    fitting(resource, events) {
      const part = own.get(resource);
      if (part === undefined) return events;
      const after = { ...part, used: new Map(part.used) };
      return events.filter((event) => {
        if (isFull(after, holderOf(event))) return false;
        count(after, event, 1);
        return true;
      });
    },
    full: () =>
      [...own].flatMap(([resource, part]) =>
        [...part.used.keys()].flatMap((holder) =>
          isFull(part, holder) ? [[resource, holder] as const] : [],
        ),
      ),
    countIn({ event, isLeftOver }, direction) {
      const part = own.get(event.resource) ?? shared;
      count(part, event, direction);
      const second = part === shared ? leftOver : costlyAll;
      if (!isLeftOver && second === leftOver) return;
      second.count += direction;
      second.bytes += direction * event.bytes;
    },
  };
}

/** Counts an event in or out of a part. */
function count(part: DividedPart, event: Holding, direction: 1 | -1): void {
  const bytes = direction * event.bytes;
  part.count += direction;
  part.bytes += bytes;
  const holder = holderOf(event);
  const before = part.used.get(holder) ?? { events: 0, bytes: 0 };
  if (before.events + direction === 0) part.used.delete(holder);
  else part.used.set(holder, { events: before.events + direction, bytes: before.bytes + bytes });
}
