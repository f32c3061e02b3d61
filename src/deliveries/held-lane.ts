import { randomUUID } from "node:crypto";
import type { Lane } from "../broker/topology.ts";
import { durationText } from "../kit/duration.ts";
import { createAlarm, pause, type Alarm, type Worker } from "../kit/worker.ts";
import type { Log } from "../telemetry/log.ts";
import { awaitPlaces } from "./await-places.ts";
import type { HeldStore, HeldSubscription } from "./held-store.ts";
import { placeDeliveries, type PlaceOptions } from "./place-deliveries.ts";

export interface HeldLaneOptions extends PlaceOptions {
  readonly held: HeldStore;
  readonly flightMs: number;
  readonly holdForMs: number;
  /** Subscriptions whose held deliveries go out at the same time. */
  readonly atOnce: number;
  readonly intervalMs: number;
  readonly log: Log;
}

interface State {
  readonly options: HeldLaneOptions;
  readonly alarm: Alarm;
  /** Name of this process in `svc.lanes`. */
  readonly holder: string;
  readonly busy: Map<number, Promise<void>>;
}

/** As for retries, so that fresh deliveries keep their slots. */
const lane: Lane = "retry";
const pageSize = 200;
const cancelledAtOnce = 200;
/** A subscription whose rate has it wait for longer leaves its place to another. */
const longestWaitMs = 1_000;
/** Between two portions, in which others write. */
const restMs = 20;

/**
 * Sends what was held of subscriptions that are on again: of each in the order of its events, one
 * after the other, beside the fresh ones. Drops what was held for too long, and what its owner
 * drops.
 */
export function createHeldLane(options: HeldLaneOptions): Worker {
  const state: State = { options, alarm: createAlarm(), holder: randomUUID(), busy: new Map() };
  return {
    name: "held",
    async run(signal) {
      while (!signal.aborted) {
        try {
          await turn(state, signal);
        } catch (error) {
          options.log.error({ err: error }, "held deliveries not looked after; trying again");
        }
        await state.alarm.wait(options.intervalMs, signal);
      }
      await Promise.all(state.busy.values());
    },
  };
}

async function turn(state: State, signal: AbortSignal): Promise<void> {
  const { held, holdForMs } = state.options;
  for (let after = 0, isLast = false; !isLast && !signal.aborted;) {
    const found = await held.find({ after, limit: pageSize, holdForMs });
    for (const one of found) await lookAfter(state, one, signal);
    isLast = found.length < pageSize;
    after = found.at(-1)?.subscriptionId ?? 0;
  }
}

async function lookAfter(state: State, one: HeldSubscription, signal: AbortSignal): Promise<void> {
  const { subscriptionId, url, isActive, isOver, discardTo } = one;
  const { holdForMs } = state.options;
  if (url === null) await drop(state, one, "The subscription was deleted.", signal);
  else if (discardTo !== null) {
    await drop(state, one, "The owner dropped what was held.", signal, discardTo);
    if (!signal.aborted) await state.options.held.endDiscard({ subscriptionId, upTo: discardTo });
  } else if (isActive) start(state, one, signal);
  else if (isOver)
    await drop(state, one, `The subscription was off for longer than ${durationText(holdForMs)}.`, signal);
}

/** Cancels in portions, each a commit of its own. */
async function drop(
  { options: { held, log } }: State,
  { subscriptionId }: HeldSubscription,
  reason: string,
  signal: AbortSignal,
  upTo?: string,
): Promise<void> {
  let total = 0;
  for (let count = cancelledAtOnce; count === cancelledAtOnce && !signal.aborted; total += count) {
    count = await held.cancel({ subscriptionId, upTo, reason, limit: cancelledAtOnce });
    await pause(restMs, signal);
  }
  if (total > 0)
    log.info(
      { event: "held.dropped", subscriptionId, deliveries: total, reason },
      "held deliveries cancelled",
    );
}

/** Starts to send what is held of a subscription, unless enough others are being sent. */
function start(state: State, one: HeldSubscription, signal: AbortSignal): void {
  const { options, busy, alarm } = state;
  const { subscriptionId } = one;
  if (busy.has(subscriptionId) || busy.size >= options.atOnce) return;
  const sent = send(state, one, signal)
    .catch((error: unknown) =>
      options.log.error({ err: error, subscriptionId }, "held deliveries not sent; trying again"),
    )
    .finally(() => {
      busy.delete(subscriptionId);
      // Another subscription may wait for this place.
      if (busy.size === options.atOnce - 1) alarm.wake();
    });
  busy.set(subscriptionId, sent);
}

/** Sends held deliveries until none is left, or the receiver has no slot for more. */
async function send(
  { options, holder }: State,
  { subscriptionId, url, userId }: HeldSubscription,
  signal: AbortSignal,
): Promise<void> {
  const { admission, held, flightMs, log } = options;
  if (url === null || userId === null) return;
  let count = 0;
  while (!signal.aborted && admission.refusalOf({ url, userId, lane }) === undefined) {
    const waitMs = options.rates.waitMs(subscriptionId);
    if (waitMs > longestWaitMs) break;
    if (waitMs > 0) await pause(waitMs, signal);
    const taken = await held.takeOldest({ subscriptionId, holder, flightMs });
    if (taken.deliveries.length === 0) break;
    const waiting = awaitPlaces(options, lane);
    await placeDeliveries({ ...options, ...waiting }, taken);
    await waiting.ended();
    count += 1;
  }
  await held.leave({ subscriptionId, holder });
  if (count > 0) log.info({ event: "held.sent", subscriptionId, deliveries: count }, "held deliveries sent");
}
