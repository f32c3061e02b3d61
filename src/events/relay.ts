import { isDeepStrictEqual } from "node:util";
import { queues } from "../broker/topology.ts";
import { resultTooLargeCode } from "../db/result-limit.ts";
import { codeOf } from "../kit/errors.ts";
import { groupBy } from "../kit/group-by.ts";
import { pause, type Worker } from "../kit/worker.ts";
import { firstOf, type Scan } from "./outbox-cursor.ts";
import type { FoundEvent, Outbox, OutboxRead } from "./outbox.ts";
import { startPublishing } from "./relay-publish.ts";
import { publishAnnounced } from "./announced-events.ts";
import type { Share } from "./relay-shares.ts";
import {
  createRelayState,
  fitting,
  giveBack,
  isNew,
  mostBytesRead,
  now,
  readWhole,
  startOver,
  retryLater,
  type RelayOptions,
  type RelayState,
} from "./relay-state.ts";

const beatMs = 1_000;
const checkMs = 1_000;
/** Interval of checks of the events in flight, while other events wait for capacity. */
const urgentCheckMs = 10;
/**
 * The interval after `idleFrom` checks without a change, which means that no dispatcher runs.
 * Checks of a thousand events every 10 ms took 0.1 of a core of PostgreSQL, and 0.2 here.
 */
const [idleCheckMs, idleFrom] = [100, 30];
/**
 * When the fan-out's queue is empty, an event still in the outbox after this time counts as lost.
 */
const lostAfterMs = 5_000;
/**
 * With messages in the queue, an event counts as lost once a much later one is fanned out: one sent
 * this many times `requeueAfterMs` after it. The turns of owners at the fan-out take less.
 */
const overtakenAfter = 10;
const unknownEveryMs = 300_000;
const strandedEveryMs = 60_000;
/** A retry of a single event that takes at least this long is followed by a rest. */
const slowRetryMs = 200;
/**
 * Rest of a range left over, after a read of this range alone that took longer than a statement
 * may.
 */
const slowMs = 60_000;
/**
 * Rest after such a read or a slow retry, as a multiple of the time that it took. New events and
 * the beat wait for each, which may take 2 s.
 */
const aloneRest = 4;
/** Rest of a range from which no event could be taken. */
const blockedMs = 1_000;

/**
 * Creates the worker that reads captured events, transforms them and publishes them to the exchange
 * `svc.events`, at least once. It writes nothing: the fan-out removes an event from the outbox when
 * it has written the deliveries. Until then, the relay publishes the event again if the broker has
 * lost it.
 *
 * Resources do not wait for one another: each is read, presented and paused on its own.
 */
export function createRelay(options: RelayOptions): Worker {
  const { broker, shares, log, pollIntervalMs } = options;
  const state = createRelayState(options);
  const { alarm } = state;
  return {
    name: "relay",
    async run(signal) {
      const stop = publishAnnounced(state);
      while (!signal.aborted) {
        let hasMore = false;
        try {
          // Without a broker the relay reads nothing and sends no beat, so that the other relays
          // take over its share.
          if (broker.isConnected()) hasMore = await turn(state);
        } catch (error) {
          log.error({ err: error }, "relay turn failed; trying again");
          await alarm.wait(1_000, signal);
        }
        const waitMs = isHeldUp(state) ? heldUpCheckMs(state) : pollIntervalMs;
        if (hasMore) continue;
        await alarm.wait(waitMs, signal);
        const gatherMs = state.pace.waitMs();
        if (gatherMs > 0) await pause(gatherMs, signal);
      }
      stop();
      // A retry under way may begin to publish more.
      while (state.underWay.size > 0) await Promise.all(state.underWay);
      await shares.leave().catch(() => undefined);
    },
  };
}

/** Runs one turn. Returns whether there may be more to read at once. */
async function turn(state: RelayState): Promise<boolean> {
  const share = await beat(state);
  await check(state);
  reportStranded(state);
  if (!state.window.hasRoom()) return false;
  if (now() > state.nextWholeMs) readWhole(state);
  await retryFailed(state);
  await probe(state, share);
  await reportUnknown(state);
  // Chosen before new events are read, because that read makes their resource busy.
  const resources = readable(state);
  const isAloneDue = now() >= state.nextAloneMs && state.window.hasRoomToCatchUp();
  const [alone] = isAloneDue ? state.cursor.alone(resources, now()) : [];
  const hasMore = await readNext(state, share, { resources, isCatchingUp: alone === undefined });
  const hasMoreAlone = alone !== undefined && (await readAlone(state, share, alone));
  return hasMoreAlone || hasMore;
}

/** Returns whether events may be waiting for capacity in the window. */
function isHeldUp({ window, cursor, resting, options }: RelayState): boolean {
  const awake = options.resources.filter((resource) => !resting.has(resource));
  return !window.hasRoom() || cursor.hasLeftOver(awake, now());
}

/**
 * Renews this relay's share of the outbox. When the share has changed, the whole outbox is read
 * again.
 */
async function beat(state: RelayState): Promise<Share> {
  const before = state.share;
  if (before !== undefined && now() < state.nextBeatMs) return before;
  state.nextBeatMs = now() + beatMs;
  const share = await state.options.shares.beat();
  state.share = share;
  if (before !== undefined && !isDeepStrictEqual(before, share)) readWhole(state);
  return share;
}

function heldUpCheckMs({ checksInVain }: RelayState): number {
  return checksInVain < idleFrom ? urgentCheckMs : idleCheckMs;
}

/**
 * Removes fanned-out events from the window, and plans the retry of those that the broker has lost.
 */
async function check(state: RelayState): Promise<void> {
  const { window, failed, options } = state;
  const { outbox, broker, requeueAfterMs, metrics } = options;
  const isAll = now() - state.checkedAllAtMs >= checkMs;
  if (!isAll && (!isHeldUp(state) || now() - state.checkedAtMs < heldUpCheckMs(state))) return;
  const asked = new Set(isAll ? window.ids() : window.idsInFlight());
  if (asked.size === 0) return;
  state.checkedAtMs = now();
  if (isAll) state.checkedAllAtMs = now();
  const waiting = await outbox.waiting([...asked]);
  if (!isAll) state.checksInVain = waiting.size === asked.size ? state.checksInVain + 1 : 0;
  for (const id of window.note(asked, waiting)) failed.arrived(id);
  // After a fail-over, another event may have the row id of a lost one.
  for (const [id, transaction] of waiting)
    if ((window.get(id)?.transaction ?? transaction) !== transaction) retryLater(state, id);
  if (now() < state.nextDepthMs || window.olderThan(lostAfterMs, requeueAfterMs).length === 0) return;
  state.nextDepthMs = now() + checkMs;
  const depth = await broker.depth(queues.fanout);
  // An event of a costly resource may wait for its turn at the fan-out, outside every queue.
  const missing = window.olderThan(depth === 0 ? lostAfterMs : requeueAfterMs, requeueAfterMs);
  // When the queue holds at least as many messages, the events may be among them. More messages
  // would only use memory. Under a lasting load, the queue always holds as many.
  const lost = depth < missing.length ? missing : window.overtaken(overtakenAfter * requeueAfterMs);
  if (lost.length === 0) return;
  state.stranded += lost.length;
  metrics.republished(lost.length);
  for (const id of lost) retryLater(state, id, { isOnWay: true });
}

/**
 * Logs the first loss at once, and further losses once a minute. A backlog behind an old queue is
 * lost in portions, each of which would write a line.
 */
function reportStranded(state: RelayState): void {
  const { stranded: events } = state;
  if (events === 0 || now() < state.nextStrandedMs) return;
  state.stranded = 0;
  state.nextStrandedMs = now() + strandedEveryMs;
  state.options.log.warn(
    { event: "relay.stranded", events },
    "events were not fanned out in time; publishing them again",
  );
}

/**
 * Begins to publish failed events again whose pause is over, up to the limit of one read. The end
 * of the presenting begins the next turn.
 */
async function retryFailed(state: RelayState): Promise<void> {
  const { failed, options, window } = state;
  if (now() < state.nextRetryMs) return;
  const { free } = window.limits();
  const ids = failed.take(Math.min(options.batchSize, free.events));
  if (ids.length === 0) return;
  let events: readonly FoundEvent[];
  let unread: readonly string[];
  let waiting: ReadonlyMap<string, string>;
  try {
    events = await options.outbox.find(ids, Math.min(free.bytes, mostBytesRead));
    const found = new Set(events.map(({ id }) => id));
    unread = ids.filter((id) => !found.has(id));
    // When no event is found, the events were deleted by hand. If given back, they would be due
    // again at once.
    waiting = await options.outbox.waiting(events.length === 0 ? [] : unread);
  } catch (error) {
    for (const id of ids) failed.add(id);
    throw error;
  }
  for (const id of unread)
    if (waiting.has(id)) failed.giveBack(id);
    else failed.forget(id);
  // One at a time, because slow retries would otherwise use all connections of the relay.
  state.nextRetryMs = Infinity;
  const again = presentAgain(state, events).finally(() => state.underWay.delete(again));
  state.underWay.add(again);
}

/** Begins to publish failed events again, and plans the next retry once they are presented. */
async function presentAgain(state: RelayState, events: readonly FoundEvent[]): Promise<void> {
  const startedAt = now();
  const fit = fitting(state, events);
  for (const { id } of without(events, fit)) state.failed.giveBack(id);
  for (const group of groupBy(fit, (event) => state.slow.groupOf(event)).values()) {
    // Slow groups must not delay the others.
    if (now() - startedAt >= slowRetryMs) for (const { id } of group) state.failed.giveBack(id);
    else await startPublishing(state, group[0]?.resource ?? "", group, { isRetry: true });
  }
  const tookMs = now() - startedAt;
  // A slow group is soon divided, but a slow owner may have more and more events.
  const mayRest = events.length === 1 || events.every((event) => state.slow.has(event));
  state.nextRetryMs = now() + (mayRest && tookMs >= slowRetryMs ? aloneRest * tookMs : 0);
  state.alarm.wake();
}

/** Tries the oldest and one of the newest events of each resource whose pause is over. */
async function probe(state: RelayState, share: Share): Promise<void> {
  const { resting, busy, cursor, window, failed } = state;
  for (const resource of resting.due()) {
    if (busy.has(resource)) continue;
    const [alone] = cursor.alone([resource], now());
    const tried = resting.tried(resource);
    const passed = [...tried].flatMap(([id, isAlone]) => (isAlone ? [id] : []));
    const { events, scanned } = await readOutbox(state, {
      scans: alone === undefined ? cursor.leftOver(resource, Infinity) : [alone],
      share,
      // Events that failed one by one do not show whether their resource fails.
      known: [...window.ids(), ...failed.ids(), ...passed],
      limit: 2,
      maxBytes: mostBytesRead,
    });
    if (events.length > 0) void startPublishing(state, resource, events, { isProbe: true });
    // All of them have failed alone: the next probe begins at the ends again.
    else if (tried.size > 0) tried.clear();
    else if (alone !== undefined) cursor.take(scanned);
    // The failed event may be in a range that is not due yet.
    else if (cursor.alone([resource], Infinity).length === 0 && !state.isBlindDue) resting.wake(resource);
  }
}

/** Logs now and then which resources have events in the outbox but are not in the mapping files. */
async function reportUnknown(state: RelayState): Promise<void> {
  if (now() < state.nextUnknownMs) return;
  state.nextUnknownMs = now() + unknownEveryMs;
  const { outbox, resources, log } = state.options;
  const unknown = (await outbox.resources()).filter((resource) => !resources.includes(resource));
  for (const resource of unknown)
    log.warn(
      { event: "relay.unknown_resource", resource },
      `Events of the resource ${resource} wait in the outbox: it is not in the mapping files.`,
    );
}

/**
 * Reads events that are new or left over, and begins to publish them. Returns whether there may be
 * more to read at once.
 *
 * @param isCatchingUp Whether the read may take events that were left over. They would use all the
 *   capacity for a range that is read alone after it.
 */
async function readNext(
  state: RelayState,
  share: Share,
  { resources, isCatchingUp }: { readonly resources: readonly string[]; readonly isCatchingUp: boolean },
): Promise<boolean> {
  const { window, cursor, sessions, pace } = state;
  const isBlind = state.isBlindDue;
  // Reads even without readable resources: the cursor must learn which transactions become visible
  // now.
  const scans = isBlind ? [] : cursor.scans(resources, isCatchingUp && window.hasRoomToCatchUp());
  const { session, snapshot, events, scanned } = await readScans(state, share, scans);
  if (!sessions.has(session)) {
    sessions.add(session);
    // The earlier connections were lost, perhaps because the database crashed.
    if (sessions.size > 1) {
      startOver(state);
      return true;
    }
  }
  cursor.advance(snapshot, scanned);
  state.isBlindDue = false;
  if (isBlind) return true;
  const count = begin(state, events);
  pace.note(count);
  return count > 0 && canCatchUp(state);
}

/** Reads a range alone, and begins to publish its events. Returns the same as `readNext`. */
async function readAlone(state: RelayState, share: Share, scan: Scan): Promise<boolean> {
  const { cursor } = state;
  const startedAt = now();
  try {
    const { events, scanned } = await readScans(state, share, [scan]);
    // The owner of its first event has enough in flight. Other ranges take their turns meanwhile.
    if (scanned.every(({ last, hasMore }) => last === undefined && hasMore))
      cursor.setApart([scan], now() + (events.length > 0 ? 0 : blockedMs));
    else cursor.take(scanned);
    return begin(state, events) > 0 && canCatchUp(state);
  } finally {
    state.nextAloneMs = now() + Math.min(slowMs, aloneRest * (now() - startedAt));
  }
}

function readable({ window, busy, resting, options }: RelayState): readonly string[] {
  return options.resources.filter(
    (resource) => !busy.has(resource) && !resting.has(resource) && window.roomOf(resource) > 0,
  );
}

function canCatchUp(state: RelayState): boolean {
  return state.window.hasRoomToCatchUp() && state.cursor.hasLeftOver(readable(state), now());
}

/** Begins to publish the events that were found. Returns how many of them are new to the relay. */
function begin(state: RelayState, events: readonly FoundEvent[]): number {
  const all = events.filter((event) => isNew(state, event));
  const slow = all.filter((event) => state.slow.has(event) && !state.failed.isFull(event.resource));
  for (const { id, resource } of slow) {
    state.failed.add(id, { resource, isSlow: true });
    state.failed.giveBack(id);
  }
  const fresh = without(all, slow);
  const fit = fitting(state, fresh);
  for (const event of without(fresh, fit)) giveBack(state, event);
  for (const [resource, group] of groupBy(fit, resourceOf)) {
    const taken = state.window.fitting(resource, group);
    for (const event of without(group, taken)) giveBack(state, event);
    if (taken.length > 0) void startPublishing(state, resource, taken);
  }
  return all.length;
}

function readScans(state: RelayState, share: Share, scans: readonly Scan[]): Promise<OutboxRead> {
  const { window, options } = state;
  const limits = window.limits();
  return readOutbox(state, {
    scans,
    share,
    // Events before all scans are not found. At 100 a second, the second of events in flight made
    // an eighth of what `svc api` allocates.
    known: window.idsInFlightFrom(firstOf(scans)),
    limits,
    limit: Math.max(1, Math.min(options.batchSize, limits.free.events)),
    maxBytes: Math.min(limits.free.bytes, mostBytesRead),
  });
}

/** Reads the outbox. When the read takes too long or returns too much, the next reads take less. */
async function readOutbox(state: RelayState, options: Parameters<Outbox["read"]>[0]): Promise<OutboxRead> {
  try {
    return await state.options.outbox.read(options);
  } catch (error) {
    if (["57014", resultTooLargeCode].includes(codeOf(error) ?? "")) takeLess(state, options.scans);
    throw error;
  }
}

function takeLess(state: RelayState, scans: readonly Scan[]): void {
  const left = scans.filter(({ isNew: isOfNew }) => !isOfNew);
  if (left.length === 0) state.isBlindDue = true;
  // Only a range that was read alone is known to be the slow one.
  else state.cursor.setApart(left, scans.length === 1 ? now() + slowMs : now());
}

function without(events: readonly FoundEvent[], some: readonly FoundEvent[]): readonly FoundEvent[] {
  const others = new Set(some);
  return events.filter((event) => !others.has(event));
}

function resourceOf({ resource }: FoundEvent): string {
  return resource;
}
