import { resultTooLargeCode } from "../db/result-limit.ts";
import { codeOf, messageOf } from "../kit/errors.ts";
import type { Presented, PresentedAll } from "./event-presenter.ts";
import type { FoundEvent, OutboxEvent } from "./outbox.ts";
import { publishEvents, refuseTooLarge, uuidsOf, type PresentedEvent, type Room } from "./publish-events.ts";
import {
  giveBack,
  mostBytesRead,
  noteBytes,
  now,
  restResource,
  retryLater,
  wakeResource,
  type RelayOptions,
  type RelayState,
} from "./relay-state.ts";

/**
 * With at least this many events of one read refused, and none presented, the resource counts as
 * failing.
 */
const failingFrom = 10;
/** After this time, the relay checks again that an event it has read is still in the outbox. */
const freshForMs = 100;

/**
 * Presents and publishes events of one resource, without waiting for it.
 *
 * @returns A promise that resolves when the events are presented or have failed.
 */
export function startPublishing(
  state: RelayState,
  resource: string,
  found: readonly FoundEvent[],
  { isProbe = false, isRetry = false }: { readonly isProbe?: boolean; readonly isRetry?: boolean } = {},
): Promise<unknown> {
  const { window, busy, underWay, options } = state;
  const readAtMs = now();
  for (const event of found) window.enter(event);
  for (const event of found.filter(({ snapshot }) => snapshot === null)) {
    refuseTooLarge(options, event, event.bytes);
    retryLater(state, event.id, { isLasting: true });
  }
  const readable = found.filter((event): event is OutboxEvent => event.snapshot !== null);
  if (readable.length === 0) return Promise.resolve();
  let events = readable;
  // A slow retry must not delay new events.
  if (!isRetry) busy.add(resource);
  const presenting = (
    isProbe
      ? presentAlone(options, resource, events)
      : options.present(resource, events).catch((error: unknown) => {
          if (codeOf(error) !== resultTooLargeCode) throw error;
          // From now on, the holder's events are presented one by one.
          for (const event of events) noteBytes(state, event, 2 * mostBytesRead);
          for (const event of events.slice(1)) leaveToLater(state, event, isRetry);
          events = events.slice(0, 1);
          return presentAlone(options, resource, events);
        })
  ).finally(() => isRetry || busy.delete(resource));
  const done = presenting
    .then((presented) => publish(state, { resource, events, presented, isProbe, readAtMs }))
    .catch((error: unknown) => {
      for (const { id } of events) retryLater(state, id);
      options.log.error({ err: error, resource }, "relay failed; trying again");
    })
    .finally(() => underWay.delete(done));
  underWay.add(done);
  return presenting.catch(() => undefined);
}

/** Leaves an event to a later read; leaves an event that had failed to the next retry. */
function leaveToLater(state: RelayState, event: OutboxEvent, isRetry: boolean): void {
  if (!isRetry) return giveBack(state, event);
  state.window.leave(event.id);
  state.failed.giveBack(event.id);
}

/**
 * Presents events one by one. A record with too many related records fails all events of its group:
 * their statement exceeds its limit of time or bytes.
 */
async function presentAlone(
  { present }: Pick<RelayOptions, "present">,
  resource: string,
  events: readonly OutboxEvent[],
): Promise<PresentedAll> {
  const all: PresentedAll[] = [];
  for (const event of events)
    all.push(
      await present(resource, [event]).catch((error: unknown): PresentedAll => {
        return { kind: "each", answers: [{ kind: "refused", reason: messageOf(error) }] };
      }),
    );
  const answers = all.flatMap((one): readonly Presented[] =>
    one.kind === "each" ? one.answers : [{ kind: "refused", reason: one.reason }],
  );
  const fault = all.find(({ kind }) => kind === "none");
  const isOfAll = answers.every(({ kind }) => kind === "refused");
  return isOfAll && fault !== undefined ? fault : { kind: "each", answers };
}

/** Events of one resource that were read together. */
interface Group {
  readonly resource: string;
  readonly events: readonly OutboxEvent[];
  readonly presented: PresentedAll;
  readonly isProbe: boolean;
  readonly readAtMs: number;
}

async function publish(state: RelayState, group: Group): Promise<void> {
  const startedAt = now();
  const { resource, events, presented } = group;
  const { log, metrics } = state.options;
  const answers: readonly Presented[] =
    presented.kind === "each"
      ? presented.answers
      : events.map(() => ({ kind: "refused", reason: presented.reason }));
  const refused = events.filter((_, index) => answers[index]?.kind !== "presented");
  if (refused.length > 0) metrics.postponed("refused", refused.length);
  const reason = answers.find((answer) => answer.kind === "refused")?.reason;
  if (refused.length === events.length && isFailing(state, group)) {
    const isByEach = presented.kind === "each";
    const isPassing = !isByEach && presented.isPassing;
    return restResource(state, resource, events, {
      reason: reason ?? "refused",
      isPassing,
      isByEach,
      isProbe: group.isProbe,
    });
  }
  if (refused.length < events.length) {
    state.slow.presented(resource);
    wakeResource(state, resource);
  }
  for (const { id } of refused) retryLater(state, id);
  if (group.isProbe) for (const { id } of refused) retryLater(state, id, { resource });
  if (refused.length > 0)
    log.error(
      { event: "relay.refused", resource, reason, events: refused.length, eventUuids: uuidsOf(refused) },
      "events cannot be presented; they wait",
    );
  const ready = events.flatMap((event, index): readonly PresentedEvent[] => {
    const answer = answers[index];
    return answer?.kind === "presented" ? [{ event, data: answer.data, previous: answer.previous }] : [];
  });
  const wanted = await stillWaiting(state, ready, group.readAtMs);
  const options = { ...state.options, room: roomIn(state) };
  const { tooLarge, unconfirmed, left } = await publishEvents(options, resource, wanted);
  for (const event of left) giveBack(state, event);
  state.window.sent(wanted.map(({ event }) => event.id));
  for (const id of unconfirmed) retryLater(state, id, { isOnWay: true });
  for (const id of tooLarge) retryLater(state, id, { isLasting: true });
  log.info(
    {
      event: "relay.turn",
      resource,
      read: events.length,
      published: wanted.length - tooLarge.length - unconfirmed.length - left.length,
      eventUuids: uuidsOf(events),
      oldestAgeMs: Date.now() - Date.parse(events[0]?.timestamp ?? ""),
      publishMs: Math.round(now() - startedAt),
    },
    "relay turn",
  );
}

function roomIn(state: RelayState): Room {
  return {
    has: ({ id }) => state.window.hasRoomFor(id),
    hasForFirst(event, bytes) {
      const isFree = state.window.hasRoomForFirst(event.id, bytes);
      if (!isFree) noteBytes(state, event, bytes);
      return isFree;
    },
    take(event, bytes) {
      state.window.resize(event.id, bytes);
      noteBytes(state, event, bytes);
    },
  };
}

/**
 * Leaves out the events that have left the outbox since they were read, because their record may be
 * erased. Runs no statement for events that were read less than `freshForMs` ago.
 */
async function stillWaiting(
  { window, failed, options }: RelayState,
  ready: readonly PresentedEvent[],
  readAtMs: number,
): Promise<readonly PresentedEvent[]> {
  if (ready.length === 0 || now() - readAtMs < freshForMs) return ready;
  const waiting = await options.outbox.waiting(ready.map(({ event }) => event.id));
  return ready.filter(({ event: { id } }) => {
    if (waiting.has(id)) return true;
    window.leave(id);
    failed.forget(id);
    return false;
  });
}

/**
 * Returns whether a group of refused events means that their resource fails as a whole. While it
 * rests, only a probe counts: each of hundreds of retries would double its pause. Events that
 * failed before are retried one by one after they fail together.
 */
function isFailing(
  { failed, resting, slow }: RelayState,
  { resource, events, presented, isProbe, readAtMs: startedAtMs }: Group,
): boolean {
  if (isProbe || resting.has(resource)) return isProbe;
  if (presented.kind === "none") {
    const areNew = events.some(({ id }) => !failed.has(id));
    return presented.isTooSlow === true ? slow.tookTooLong(events, { startedAtMs, areNew }) : areNew;
  }
  return events.length >= failingFrom || failed.isFull(resource);
}
