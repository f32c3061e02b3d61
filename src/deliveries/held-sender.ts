import { randomUUID } from "node:crypto";
import { durationText } from "../kit/duration.ts";
import { createSharedPlaces, type Turns } from "../kit/turns.ts";
import { createAlarm, pause, type Alarm, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";
import type { Admission } from "./admission/admission.ts";
import type { HeldStore, HeldSubscription } from "./held-store.ts";
import { startTaken, type StartOptions } from "./start-taken.ts";
import { replayedAtOnce } from "./store-texts.ts";

export interface HeldSenderOptions extends StartOptions {
  readonly admission: Pick<Admission, "reserve" | "refusalOf" | "hasShareOf" | "inTurn" | "roomOf">;
  readonly held: HeldStore;
  readonly flightMs: number;
  readonly holdForMs: number;
  /** Subscriptions whose held deliveries go out at the same time. */
  readonly atOnce: number;
  readonly intervalMs: number;
  readonly log: Log;
}

type ActiveSubscription = Extract<HeldSubscription, { readonly url: string }>;

/** A subscription that sends, or waits for a place. */
interface Active {
  latest: ActiveSubscription;
  ended: Promise<void>;
}

interface State {
  readonly options: HeldSenderOptions;
  readonly alarm: Alarm;
  /** Name of this process in `svc.lanes`. */
  readonly holder: string;
  /** Sends for a subscription when its user has a place. */
  readonly inPlace: Turns["run"];
  /** By subscription. */
  readonly active: Map<number, Active>;
  /** The subscription that was handled last: the next turn continues after it. */
  after: number;
}

const pageSize = 200;
/** Bounds a turn: 100,000 subscriptions with held deliveries take a second to go through. */
const pagesPerTurn = 10;
/** Most active subscriptions, about 1 KB each. A later turn finds the others again. */
const mostActive = 2_000;
const cancelledAtOnce = 200;
/** Portions of one subscription in a turn: a million deliveries must not delay the others. */
const portionsPerTurn = 5;
/** Deliveries of a subscription that are handled before it leaves its place to another. */
const handledPerTurn = 50;
/** A subscription that has sent for this long leaves its place to another. */
const longestTurnMs = 5_000;
/** A subscription that must wait longer for its rate limit leaves its place to another. */
const longestWaitMs = 1_000;
/** Time between two checks for deliveries in the queue, which go first. */
const giveWayMs = 50;
/** Pause between two portions, in which other processes can write. */
const restMs = 20;

/**
 * Creates the worker that sends the held deliveries of subscriptions that are on again, beside new
 * deliveries. It sends those of one subscription one after the other, in the order of events. It
 * also sends deliveries of replays, several of one subscription at a time. It cancels deliveries
 * that were held for too long, or that the owner drops.
 */
export function createHeldSender(options: HeldSenderOptions): Worker {
  const state: State = {
    options,
    alarm: createAlarm(),
    holder: randomUUID(),
    // One user gets at most half of the places, because all its receivers may hang.
    inPlace: createSharedPlaces({ ofAll: options.atOnce, ofEach: Math.ceil(options.atOnce / 2) }),
    active: new Map(),
    after: 0,
  };
  return {
    name: "held",
    async run(signal) {
      while (!signal.aborted) {
        try {
          await turn(state, signal);
        } catch (error) {
          options.log.error({ err: error }, "held deliveries not checked; trying again");
        }
        await state.alarm.wait(options.intervalMs, signal);
      }
      await Promise.all([...state.active.values()].map(({ ended }) => ended));
    },
  };
}

/** Handles the next subscriptions in the order of ids, and starts over after the last one. */
async function turn(state: State, signal: AbortSignal): Promise<void> {
  const { held, holdForMs } = state.options;
  for (let page = 0; page < pagesPerTurn && !signal.aborted; page += 1) {
    const { after } = state;
    const found = await held.find({ after, limit: pageSize, holdForMs });
    for (const one of found) {
      if (!(await lookAfter(state, one, signal))) state.alarm.wake();
      state.after = one.subscriptionId;
    }
    if (found.length === pageSize) continue;
    state.after = 0;
    await held.forgetDiscards();
    // When there is none after the last subscription of the previous turn, this starts over at
    // once.
    if (page > 0 || found.length > 0 || after === 0) return;
  }
}

/** Handles a subscription. Returns whether nothing is left to do for it now. */
async function lookAfter(state: State, one: HeldSubscription, signal: AbortSignal): Promise<boolean> {
  const { subscriptionId, isOver, discardTo } = one;
  const { holdForMs } = state.options;
  if (one.url === null) return drop(state, one, { reason: "The subscription was deleted." }, signal);
  if (discardTo !== null) {
    const reason = "The owner dropped what was held.";
    const isDone = await drop(state, one, { reason, upTo: discardTo }, signal);
    if (isDone) await state.options.held.endDiscard({ subscriptionId, upTo: discardTo });
    return isDone;
  }
  if (one.isActive) {
    activate(state, one, signal);
  } else if (isOver) {
    const reason = `The subscription was off for longer than ${durationText(holdForMs)}.`;
    // The subscription may be on again, and a replay may have made more deliveries.
    return drop(state, one, { reason, offForMs: holdForMs }, signal);
  }
  return true;
}

/** Cancels some portions of held deliveries, with one commit each. Returns whether none is left. */
async function drop(
  { options: { held, log } }: State,
  { subscriptionId }: HeldSubscription,
  { reason, upTo, offForMs }: { readonly reason: string; readonly upTo?: string; readonly offForMs?: number },
  signal: AbortSignal,
): Promise<boolean> {
  let total = 0;
  let isDone = false;
  for (let portion = 0; portion < portionsPerTurn && !isDone && !signal.aborted; portion += 1) {
    const count = await held.cancel({ subscriptionId, upTo, offForMs, reason, limit: cancelledAtOnce });
    // A portion leaves out rows that another statement has just locked or changed.
    isDone = count === 0;
    total += count;
    await pause(restMs, signal);
  }
  if (total > 0)
    log.info(
      { event: "held.dropped", subscriptionId, deliveries: total, reason },
      "held deliveries cancelled",
    );
  return isDone;
}

/** Sends for a subscription when it has a place. Users take turns. */
function activate(state: State, one: ActiveSubscription, signal: AbortSignal): void {
  const { options, inPlace, active } = state;
  const { subscriptionId, userId } = one;
  const known = active.get(subscriptionId);
  if (known !== undefined) known.latest = one;
  if (known !== undefined || active.size >= mostActive) return;
  const added: Active = { latest: one, ended: Promise.resolve() };
  active.set(subscriptionId, added);
  added.ended = inPlace(userId, () => send(state, added.latest, signal))
    .catch((error: unknown) =>
      options.log.error({ err: error, subscriptionId }, "held deliveries not sent; trying again"),
    )
    .finally(() => active.delete(subscriptionId));
}

/**
 * Sends some held deliveries of a subscription, until none is left or the receiver has no free
 * slot.
 */
async function send(
  { options, holder, alarm }: State,
  { subscriptionId, url, userId, rateLimit }: ActiveSubscription,
  signal: AbortSignal,
): Promise<void> {
  const { admission, held, flightMs, log } = options;
  let handled = 0;
  let sent = 0;
  let hasLease = false;
  const startedAt = performance.now();
  while (handled < handledPerTurn && performance.now() - startedAt <= longestTurnMs && !signal.aborted) {
    const room = admission.roomOf({ url, userId, lane: "retry" });
    if (room === 0) break;
    const waitMs = options.rates.waitMs(subscriptionId);
    if (waitMs > longestWaitMs) break;
    if (waitMs > 0) await pause(waitMs, signal);
    // New events go first: behind a long replay they would wait for hours.
    if (rateLimit !== null && (await held.isPassed(subscriptionId))) {
      await pause(giveWayMs, signal);
      continue;
    }
    const limit = rateLimit !== null ? 1 : Math.min(room, replayedAtOnce);
    hasLease = true;
    const taken = await held.takeOldest({ subscriptionId, holder, flightMs, limit });
    if (taken.deliveries.length === 0) break;
    const started = await startTaken({ ...options, keepsOrder: true }, taken);
    for (const end of started.ends) await end;
    sent += started.attempted;
    // Other deliveries took the free slots, or no attempt can be made now. The deliveries are held
    // again, and the next turn begins with them.
    if (started.isDelayed || (started.isRefused && started.started === 0)) break;
    handled += taken.deliveries.length;
  }
  if (hasLease) await held.leave({ subscriptionId, holder });
  if (sent > 0) log.info({ event: "held.sent", subscriptionId, deliveries: sent }, "held deliveries sent");
  // More deliveries may be held, and another subscription may wait for the place.
  if (handled + sent > 0) alarm.wake();
}
