import type { Broker } from "../broker/broker.ts";
import type { Seal } from "../broker/seal.ts";
import { queues } from "../broker/topology.ts";
import { idsForLog, type Log } from "../telemetry/log.ts";
import type { EventMetrics } from "../telemetry/metrics/events.ts";
import { noTracing, type Tracing } from "../telemetry/tracing.ts";
import { createAlarm, type Worker } from "../kit/worker.ts";
import { eventMessage } from "./event-message.ts";
import { createOutboxCursor, type OutboxCursor } from "./outbox-cursor.ts";
import { maxMessageBytes } from "../broker/message-limit.ts";
import { positionOf, type Outbox, type OutboxEvent, type Share } from "./outbox.ts";
import { beginPublish } from "./publish-span.ts";
import { createPublishWindow, type PublishWindow } from "./publish-window.ts";
import { isSameShare, type RelayShares } from "./relay-shares.ts";
import { createRestingResources, type RestingResources } from "./resting-resources.ts";
import { createFailedEvents, type FailedEvents } from "./failed-events.ts";

/** The record of an event as JSON, or why it cannot be had now. */
export type Presented =
  | { readonly kind: "presented"; readonly data: unknown }
  | { readonly kind: "refused"; readonly reason: string };

/** What became of the events of one resource that were read together. */
export type PresentedAll =
  /** One answer per event, in order. */
  | { readonly kind: "each"; readonly answers: readonly Presented[] }
  /** None can be had. `isPassing`: the database is away, which says nothing about the resource. */
  | { readonly kind: "none"; readonly reason: string; readonly isPassing: boolean };

export interface Relay extends Worker {
  /** Says that there is something to publish; the poll would find it too, only later. */
  wake(): void;
}

export interface RelayOptions {
  readonly outbox: Outbox;
  readonly shares: RelayShares;
  /** Of the mapping files: events of others wait until their resource is there again. */
  readonly resources: readonly string[];
  /** For events of one resource. Never rejects. */
  readonly present: (resource: string, events: readonly OutboxEvent[]) => Promise<PresentedAll>;
  readonly broker: Broker;
  readonly seal: Seal;
  readonly log: Log;
  readonly tracing?: Tracing;
  readonly metrics: EventMetrics;
  readonly pollIntervalMs: number;
  /** Most events of one read. */
  readonly batchSize: number;
  /** How long a confirmed event is believed to be in the broker, while the queue of the fan-out is not empty. */
  readonly requeueAfterMs: number;
}

const beatMs = 1_000;
const checkMs = 1_000;
/** While the window is full. */
const urgentCheckMs = 25;
/** Of one read: an event is in memory as text, as a record, as JSON and as a message at a time. */
const mostBytesRead = 1024 ** 2;
/** With nothing in the queue of the fan-out, an event that is not fanned out after this long was lost with the queue. */
const lostAfterMs = 5_000;
/** So many events of a resource refused in one read, and none presented: it is the resource that fails. */
const failingFrom = 10;
const longestPauseMs = 300_000;
/**
 * A crash of the database gives the ids of transactions that were not on disk to others, which the cursor has passed then. A new session of
 * the database says that there may have been one; and now and then everything is read again in any case.
 */
const wholeEveryMs = 300_000;
const strangersEveryMs = 300_000;
const now = (): number => performance.now();

/**
 * Publishes captured events to the exchange `svc.events`: read, transform, publish. Nothing is written: an event leaves the outbox when
 * the fan-out has written its deliveries, and until then it is published again, should the broker lose it. At least once.
 *
 * Resources do not wait for one another: each is read for itself, presented for itself, and rests for itself when it fails.
 */
export function createRelay(options: RelayOptions): Relay {
  const { outbox, shares, resources, present, broker, seal, log, metrics, pollIntervalMs, batchSize } =
    options;
  const { tracing = noTracing } = options;
  const alarm = createAlarm();
  const window: PublishWindow = createPublishWindow({ now });
  const postponed: FailedEvents = createFailedEvents({ longestPauseMs, now });
  const resting: RestingResources = createRestingResources({ longestPauseMs, now });
  /** Resources whose events are being presented. */
  const busy = new Set<string>();
  const underWay = new Set<Promise<void>>();
  let cursor: OutboxCursor = createOutboxCursor(resources);
  let share: Share | undefined;
  let nextBeatMs = 0;
  let nextCheckMs = 0;
  let nextDepthMs = 0;
  let nextStrangersMs = 0;
  let nextWholeMs = now() + wholeEveryMs;
  /** Of the database, that reads were answered by. */
  const sessions = new Set<number>();

  /** Renews this relay's share; a share that changed is read from its beginning. */
  async function beat(): Promise<Share> {
    if (share !== undefined && now() < nextBeatMs) return share;
    nextBeatMs = now() + beatMs;
    const before = share;
    share = await shares.beat();
    if (before !== undefined && !isSameShare(before, share)) beginAnew();
    return share;
  }

  /** Has the whole outbox read again; what is at work is known by its id. */
  function beginAnew(): void {
    cursor = createOutboxCursor(resources);
    nextWholeMs = now() + wholeEveryMs;
  }

  /** Reads what is new or left over, and begins to publish it. Answers whether there may be more to read at once. */
  async function readNext(own: Share): Promise<boolean> {
    const room = window.room();
    const readable = resources.filter((resource) => !busy.has(resource) && !resting.has(resource));
    // Also when none is readable: what becomes visible now must not be passed later.
    const scans = cursor.scans(readable, { withLeftOver: window.hasRoomToCatchUp() });
    const reading = cursor;
    const { session, snapshot, events, scanned } = await outbox.read({
      scans,
      share: own,
      known: window.idsSince(cursor.firstNew()),
      limit: Math.max(1, Math.min(batchSize, room.events)),
      maxBytes: Math.min(room.bytes, mostBytesRead),
    });
    if (!sessions.has(session)) {
      const isFirst = sessions.size === 0;
      sessions.add(session);
      // The connections before were lost, perhaps in a crash.
      if (!isFirst) {
        beginAnew();
        return true;
      }
    }
    reading.advance(snapshot, scanned);
    for (const [resource, group] of groupByResource(events.filter(isUnknown)))
      begin(resource, group, { isProbe: false });
    const idle = readable.filter((resource) => !busy.has(resource));
    return window.hasRoomToCatchUp() && cursor.hasLeftOver(idle);
  }

  function isUnknown({ id }: OutboxEvent): boolean {
    return !window.has(id) && !postponed.has(id);
  }

  /** Asks a resource that failed for its oldest event and one of its newest. */
  async function probe(own: Share): Promise<void> {
    for (const resource of resting.due()) {
      if (busy.has(resource)) continue;
      const scans = cursor.leftOver(resource);
      const { events } = await outbox.read({ scans, share: own, known: [], limit: 2, maxBytes: 1024 ** 2 });
      const unknown = events.filter(isUnknown);
      if (unknown.length === 0) resting.wake(resource);
      else begin(resource, unknown, { isProbe: true });
    }
  }

  async function retryPostponed(): Promise<void> {
    const ids = postponed.take(batchSize);
    if (ids.length === 0) return;
    let events: readonly OutboxEvent[];
    try {
      events = await outbox.find(ids);
    } catch (error) {
      for (const id of ids) postponed.add(id);
      throw error;
    }
    const found = new Set(events.map(({ id }) => id));
    for (const id of ids) if (!found.has(id)) postponed.forget(id);
    for (const [resource, group] of groupByResource(events)) begin(resource, group, { isProbe: false });
  }

  /** Takes those out of the window that were fanned out, and publishes again what the broker must have lost. */
  async function check(): Promise<void> {
    const asked = new Set(window.ids());
    if (asked.size === 0 || now() < nextCheckMs) return;
    nextCheckMs = now() + (isHeldUp() ? urgentCheckMs : checkMs);
    for (const id of window.note(asked, await outbox.waiting([...asked]))) postponed.forget(id);
    if (now() < nextDepthMs || window.olderThan(lostAfterMs).length === 0) return;
    nextDepthMs = now() + checkMs;
    const depth = await broker.depth(queues.fanout);
    const lost = window.olderThan(depth === 0 ? lostAfterMs : options.requeueAfterMs);
    // As long as they can all be in the queue, nobody is there to take them: more messages would only be more memory.
    if (lost.length === 0 || depth >= lost.length) return;
    log.warn(
      { event: "relay.stranded", events: lost.length },
      "events were not fanned out in time; publishing them again",
    );
    metrics.republished(lost.length);
    for (const id of lost) postpone(id);
  }

  /** Whether there is something to read, and no room for it. */
  function isHeldUp(): boolean {
    return !window.hasRoom() || (!window.hasRoomToCatchUp() && cursor.hasLeftOver(resources));
  }

  function begin(resource: string, events: readonly OutboxEvent[], how: { readonly isProbe: boolean }): void {
    busy.add(resource);
    for (const event of events) window.enter(event);
    const done = present(resource, events)
      .finally(() => busy.delete(resource))
      .then((presented) => publish(resource, events, presented, how))
      .catch((error: unknown) => {
        for (const { id } of events) postpone(id);
        log.error({ err: error, resource }, "relay failed; trying again");
      })
      .finally(() => underWay.delete(done));
    underWay.add(done);
  }

  async function publish(
    resource: string,
    events: readonly OutboxEvent[],
    presented: PresentedAll,
    { isProbe }: { readonly isProbe: boolean },
  ): Promise<void> {
    const presentedAt = now();
    const answers = presented.kind === "each" ? presented.answers : events.map(() => presented);
    const refused = events.filter((_, index) => answers[index]?.kind !== "presented");
    if (refused.length > 0) metrics.postponed("refused", refused.length);
    const reason = answers.find((answer) => answer.kind !== "presented")?.reason;
    const isWhole = refused.length === events.length;
    if (
      isWhole &&
      (isProbe || presented.kind === "none" || events.length >= failingFrom || postponed.isFull())
    )
      return rest(resource, events, {
        reason: reason ?? "refused",
        isPassing: presented.kind === "none" && presented.isPassing,
      });
    if (resting.wake(resource))
      log.info({ event: "relay.recovered", resource }, "the events of a resource can be published again");
    for (const { id } of refused) postpone(id);
    if (refused.length > 0)
      log.error(
        { event: "relay.refused", resource, reason, events: refused.length, eventUuids: uuidsOf(refused) },
        "events cannot be presented; they wait",
      );

    const ready = events.flatMap((event, index) => {
      const answer = answers[index];
      if (answer?.kind !== "presented") return [];
      const span = beginPublish(tracing, event);
      const data = JSON.stringify(answer.data ?? null);
      const message = eventMessage({ event, data, traceparent: span.traceparent, seal });
      if (message.body.length <= maxMessageBytes) return [{ event, span, message }];
      // The broker would close the channel, and take all that is on it along.
      span.end("too_large");
      metrics.postponed("refused", 1);
      postpone(event.id);
      log.error(
        {
          event: "relay.too_large",
          resource,
          eventUuid: event.uuid,
          bytes: message.body.length,
          most: maxMessageBytes,
        },
        "an event is too large for the broker; it waits until its resource's transform makes less of it",
      );
      return [];
    });
    const outcomes = await broker.publish(ready.map(({ message }) => message));
    let whyNot: string | undefined;
    const unconfirmed: OutboxEvent[] = [];
    ready.forEach(({ event, span }, index) => {
      const outcome = outcomes[index];
      const isConfirmed = outcome?.kind === "confirmed";
      span.end(isConfirmed ? undefined : "unconfirmed");
      if (isConfirmed) return metrics.published(event);
      whyNot = outcome?.reason ?? "no answer";
      unconfirmed.push(event);
      postpone(event.id);
    });
    if (unconfirmed.length > 0) {
      metrics.postponed("unconfirmed", unconfirmed.length);
      log.warn(
        {
          event: "relay.unconfirmed",
          resource,
          reason: whyNot,
          events: unconfirmed.length,
          eventUuids: uuidsOf(unconfirmed),
        },
        "the broker did not confirm events; they are published again",
      );
    }
    log.info(
      {
        event: "relay.turn",
        resource,
        read: events.length,
        published: ready.length - unconfirmed.length,
        eventUuids: uuidsOf(events),
        oldestAgeMs: Date.now() - Date.parse(events[0]?.timestamp ?? ""),
        publishMs: Math.round(now() - presentedAt),
      },
      "relay turn",
    );
  }

  /** Leaves a resource alone for a while; its events stay in the outbox. */
  function rest(
    resource: string,
    events: readonly OutboxEvent[],
    { reason, isPassing }: { readonly reason: string; readonly isPassing: boolean },
  ): void {
    const pauseMs = resting.rest(resource, { isPassing });
    for (const event of events) giveBack(event);
    log.error(
      { event: "relay.resting", resource, events: events.length, reason, retryInMs: pauseMs },
      "the events of a resource cannot be published; they wait",
    );
  }

  function giveBack(event: Pick<OutboxEvent, "id" | "transaction" | "resource">): void {
    window.leave(event.id);
    postponed.forget(event.id);
    const { transaction, event: id } = positionOf(event);
    cursor.giveBack(event.resource, {
      from: { transaction, event: id - 1n },
      to: { transaction, event: id },
    });
  }

  function postpone(id: string): void {
    const event = window.get(id);
    window.leave(id);
    if (!postponed.isFull() || postponed.has(id)) postponed.add(id);
    else if (event !== undefined) {
      // When too many events wait one by one, their resource does.
      giveBack(event);
      resting.rest(event.resource, { isPassing: false });
    }
  }

  /** Says now and then what waits for a resource that is not in the mapping files. */
  async function watchStrangers(): Promise<void> {
    if (now() < nextStrangersMs) return;
    nextStrangersMs = now() + strangersEveryMs;
    const strangers = (await outbox.resources()).filter((resource) => !resources.includes(resource));
    for (const resource of strangers)
      log.warn(
        { event: "relay.unknown_resource", resource },
        `Events of the resource ${resource} wait in the outbox: it is not in the mapping files.`,
      );
  }

  async function turn(): Promise<boolean> {
    const own = await beat();
    await check();
    if (!window.hasRoom()) return false;
    if (now() > nextWholeMs) beginAnew();
    await retryPostponed();
    await probe(own);
    await watchStrangers();
    return readNext(own);
  }

  return {
    name: "relay",
    wake: () => alarm.wake(),
    async run(signal) {
      while (!signal.aborted) {
        let isMore = false;
        try {
          // Without a broker nothing is read, and the other relays take this one for dead.
          if (broker.isConnected()) isMore = await turn();
        } catch (error) {
          log.error({ err: error }, "relay turn failed; trying again");
          await alarm.wait(1_000, signal);
        }
        const waitMs = isHeldUp() ? urgentCheckMs : pollIntervalMs;
        if (!isMore) await alarm.wait(waitMs, signal);
      }
      await Promise.all(underWay);
      await shares.leave().catch(() => undefined);
    },
  };
}

function uuidsOf(events: readonly OutboxEvent[]): ReturnType<typeof idsForLog> {
  return idsForLog(events.map(({ uuid }) => uuid));
}

function groupByResource(events: readonly OutboxEvent[]): ReadonlyMap<string, readonly OutboxEvent[]> {
  const groups = new Map<string, OutboxEvent[]>();
  for (const event of events) {
    const group = groups.get(event.resource);
    if (group === undefined) groups.set(event.resource, [event]);
    else group.push(event);
  }
  return groups;
}
