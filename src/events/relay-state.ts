import type { Broker } from "../broker/broker.ts";
import type { Notices } from "../db/notices.ts";
import { createFailedEvents, type FailedEvents } from "./failed-events.ts";
import { setBounded } from "../kit/bounded-map.ts";
import { createAlarm, type Alarm } from "../kit/worker.ts";
import { createOutboxCursor, type OutboxCursor } from "./outbox-cursor.ts";
import { holderOf, positionOf, type FoundEvent, type Outbox, type OutboxEvent } from "./outbox.ts";
import type { PresentedAll } from "./event-presenter.ts";
import type { PublishOptions } from "./publish-events.ts";
import { createPublishWindow, smallBytes, type PublishWindow } from "./publish-window.ts";
import { createRelayPace, type RelayPace } from "./relay-pace.ts";
import type { RelayShares, Share } from "./relay-shares.ts";
import { createRestingResources, type RestingResources } from "./resting-resources.ts";
import { createSlowOwners, type SlowOwners } from "./slow-owners.ts";

export interface RelayOptions extends PublishOptions {
  readonly broker: Broker;
  readonly outbox: Outbox;
  readonly shares: RelayShares;
  readonly notices: Notices;
  /**
   * Resources of the mapping files. Events of other resources wait until their resource is back.
   */
  readonly resources: readonly string[];
  /** Resources whose events may take long at the fan-out. */
  readonly costly?: readonly string[];
  /** Presents events of one resource. Rejects when fewer of them may fit into an answer. */
  readonly present: (resource: string, events: readonly OutboxEvent[]) => Promise<PresentedAll>;
  readonly pollIntervalMs: number;
  /** Most events of one read. */
  readonly batchSize: number;
  /** Time until a confirmed event counts as lost although the fan-out's queue is not empty. */
  readonly requeueAfterMs: number;
}

/** State of a relay: its events in flight, and the times of its periodic work. */
export interface RelayState {
  readonly options: RelayOptions;
  /** Begins the next turn. */
  readonly alarm: Alarm;
  readonly window: PublishWindow;
  readonly pace: RelayPace;
  readonly failed: FailedEvents;
  readonly resting: RestingResources;
  readonly slow: SlowOwners;
  /** Resources whose events are being presented. */
  readonly busy: Set<string>;
  readonly underWay: Set<Promise<void>>;
  /** About how many bytes a message has, by resource and holder. */
  readonly likelyBytes: Map<string, number>;
  /** Sessions of PostgreSQL that have answered reads. */
  readonly sessions: Set<string>;
  cursor: OutboxCursor;
  share: Share | undefined;
  nextBeatMs: number;
  checkedAtMs: number;
  /** Number of successive checks that found no event in flight gone from the outbox. */
  checksInVain: number;
  /** When the whole window was last checked, including events that have left the outbox. */
  checkedAllAtMs: number;
  /** Before this time, no failed event is tried again. */
  nextRetryMs: number;
  nextDepthMs: number;
  /** Number of events that the broker has lost and that are not logged yet. */
  stranded: number;
  nextStrandedMs: number;
  nextUnknownMs: number;
  nextWholeMs: number;
  /** Before this time, no range left over is read alone. */
  nextAloneMs: number;
  /** Whether the next read only finds the visible events, because new events took too long. */
  isBlindDue: boolean;
}

const longestPauseMs = 300_000;
/**
 * Most bytes of one read, because an event is in memory as text, record, JSON and message at once.
 */
export const mostBytesRead = 1024 ** 2;
const mostSizes = 10_000;
/** Most events of a resource that its tries leave out. */
const mostTried = 10_000;
/**
 * How often the whole outbox is read. A crash of the database frees the ids of transactions that
 * were not on disk. Later transactions get these ids, which the cursor has already passed. A new
 * database session hints at such a crash and also causes a whole read.
 */
const wholeEveryMs = 300_000;

/** Returns the time of a monotonic clock, in ms. */
export const now = (): number => performance.now();

export function createRelayState(options: RelayOptions): RelayState {
  return {
    options,
    alarm: createAlarm(),
    window: createPublishWindow({ costly: options.costly ?? [], now }),
    pace: createRelayPace({ now }),
    failed: createFailedEvents({ longestPauseMs, now }),
    resting: createRestingResources({ longestPauseMs, now }),
    slow: createSlowOwners({ now }),
    busy: new Set(),
    underWay: new Set(),
    likelyBytes: new Map(),
    sessions: new Set(),
    cursor: createOutboxCursor(options.resources),
    share: undefined,
    nextBeatMs: 0,
    checkedAtMs: -Infinity,
    checksInVain: 0,
    checkedAllAtMs: -Infinity,
    nextRetryMs: -Infinity,
    nextDepthMs: 0,
    stranded: 0,
    nextStrandedMs: 0,
    nextUnknownMs: 0,
    nextWholeMs: now() + wholeEveryMs,
    nextAloneMs: -Infinity,
    isBlindDue: true,
  };
}

/**
 * Returns the events of a read that are presented. Large messages of all resources have about as
 * many bytes as a read: related records may make one a thousand times as large as its own. The
 * holder whose last message of any resource is longest ago comes first, and its resources take
 * turns. Small messages do not wait for large ones.
 */
export function fitting({ likelyBytes }: RelayState, events: readonly FoundEvent[]): readonly FoundEvent[] {
  const sizeOf = (event: FoundEvent): number => likelyBytes.get(sizeKey(event)) ?? event.bytes;
  // An event without a snapshot is refused at once.
  const large = events.filter((event) => event.snapshot !== null && sizeOf(event) > smallBytes);
  if (large.reduce((sum, event) => sum + sizeOf(event), 0) <= mostBytesRead) return events;
  const keys = [...likelyBytes.keys()];
  const places = new Map(keys.map((key, place) => [key, place]));
  const placesOfHolders = new Map(keys.map((key, place) => [key.slice(key.indexOf(" ") + 1), place]));
  const placeOf = (event: FoundEvent): number => places.get(sizeKey(event)) ?? -1;
  const placeOfHolder = (event: FoundEvent): number => placesOfHolders.get(holderOf(event)) ?? -1;
  const inTurn = (one: FoundEvent, other: FoundEvent): number =>
    placeOfHolder(one) - placeOfHolder(other) || placeOf(one) - placeOf(other);
  const left = new Set<FoundEvent>();
  let bytes = 0;
  for (const event of large.toSorted(inTurn)) {
    if (bytes >= mostBytesRead) left.add(event);
    bytes += sizeOf(event);
  }
  return events.filter((event) => !left.has(event));
}

/** Notes the size of a message, as the estimate for the holder's next messages of the resource. */
export function noteBytes({ likelyBytes }: RelayState, event: FoundEvent, bytes: number): void {
  const before = likelyBytes.get(sizeKey(event)) ?? bytes;
  setBounded(likelyBytes, [sizeKey(event), (before + bytes) / 2], mostSizes);
}

function sizeKey(event: FoundEvent): string {
  return `${event.resource} ${holderOf(event)}`;
}

/** Makes the next reads cover the whole outbox. Events in flight are recognised by their ids. */
export function readWhole(state: RelayState): void {
  state.cursor.leaveAllOver();
  state.nextWholeMs = now() + wholeEveryMs;
}

/** Forgets which transactions were visible. After a crash, others may have the same ids. */
export function startOver(state: RelayState): void {
  state.cursor = createOutboxCursor(state.options.resources);
  state.isBlindDue = true;
  readWhole(state);
}

/** Returns whether an event is neither in flight nor waiting for its retry. */
export function isNew({ window, failed }: RelayState, { id }: Pick<OutboxEvent, "id">): boolean {
  return !window.has(id) && !failed.has(id);
}

/**
 * Plans the retry of an event that failed.
 *
 * @param isLasting Whether only a change of its resource helps. The first wait is then the longest:
 *   an event of 17 MB takes 100 ms of the only thread.
 * @param isOnWay See `FailedEvents`.
 * @param resource Resource of an event that is not in flight.
 */
export function retryLater(
  state: RelayState,
  id: string,
  options: { readonly isLasting?: boolean; readonly isOnWay?: boolean; readonly resource?: string } = {},
): void {
  const { window, failed, resting } = state;
  const event = window.get(id);
  window.leave(id);
  const { resource = "" } = event ?? options;
  if (failed.has(id) || !failed.isFull(resource)) failed.add(id, { ...options, resource });
  else if (event !== undefined) {
    // There are too many failed events to plan each retry, so their resource pauses instead.
    giveBack(state, event);
    if (!resting.has(event.resource)) resting.rest(event.resource, { isPassing: false });
  }
}

/**
 * Pauses a resource that fails as a whole. Its events stay in the outbox.
 *
 * @param isByEach Whether each event was refused by itself. The next probe then skips these events,
 *   since later ones may be presentable.
 * @param isProbe Whether each event was tried alone. The next probe skips these too. They stay in
 *   the ranges left over.
 */
export function restResource(
  state: RelayState,
  resource: string,
  events: readonly OutboxEvent[],
  {
    reason,
    isPassing,
    isByEach,
    isProbe,
  }: {
    readonly reason: string;
    readonly isPassing: boolean;
    readonly isByEach: boolean;
    readonly isProbe: boolean;
  },
): void {
  const pauseMs = state.resting.rest(resource, { isPassing });
  for (const event of events)
    if (isByEach) retryLater(state, event.id);
    else if (isProbe) state.window.leave(event.id);
    else giveBack(state, event);
  const tried = state.resting.tried(resource);
  if (!isByEach && tried.size < mostTried) for (const { id } of events) tried.set(id, isProbe);
  state.options.log.error(
    { event: "relay.resting", resource, events: events.length, reason, retryInMs: pauseMs },
    "the events of a resource cannot be published; they wait",
  );
}

/**
 * Ends the pause of a resource after an event could be presented. Events that failed together
 * before it, or alone meanwhile, are retried separately: one may fail a whole group.
 */
export function wakeResource(state: RelayState, resource: string): void {
  const tried = state.resting.tried(resource);
  if (!state.resting.wake(resource)) return;
  for (const [id, isAlone] of tried) {
    if (state.window.has(id)) continue;
    retryLater(state, id, { resource });
    // Counts twice, like a refused event of a probe, so that it does not fail the others again.
    if (isAlone) retryLater(state, id, { resource });
  }
  state.options.log.info(
    { event: "relay.recovered", resource },
    "the events of a resource can be published again",
  );
}

/** Leaves an event to a later read of the outbox. */
export function giveBack(
  { window, failed, cursor }: RelayState,
  event: Pick<OutboxEvent, "id" | "transaction" | "resource">,
): void {
  window.leave(event.id);
  failed.forget(event.id);
  const { transaction, event: id } = positionOf(event);
  cursor.giveBack(event.resource, {
    from: { transaction, event: id - 1n },
    to: { transaction, event: id },
  });
}
