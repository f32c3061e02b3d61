import { setBounded } from "../kit/bounded-map.ts";
import { groupBy } from "../kit/group-by.ts";
import { burstOf } from "./admission/rates.ts";
import { startTaken, type StartOptions } from "./start-taken.ts";
import type { DeliveryStore, WaitingSubscription } from "./store.ts";

interface TakeParkedOptions extends StartOptions {
  readonly store: Pick<DeliveryStore, "findParked" | "takeParked">;
  readonly flightMs: number;
}

/** Progress of the walk over the subscriptions with parked deliveries. */
export interface ParkedWalk {
  /** Whether deliveries may wait for a slot. */
  mayBeParked: boolean;
  /** Id of the subscription after which the next page begins. */
  after: number;
  /** Whether this walk has found a subscription that a free slot would serve. */
  isSlotWanted: boolean;
  judgedAtMs: number;
  /** Earliest time when a rate-limited subscription of this walk may have an attempt. */
  rateAtMs: number;
  /** The subscription that got the last slot, by user. */
  readonly served: Map<number, number>;
  /** Whether the newest delivery gets the next single slot, by subscription. */
  readonly newestNext: Map<number, boolean>;
  /**
   * Time until which a rate-limited subscription's next attempt is kept for a manual retry, by
   * subscription.
   */
  readonly urgentUntilMs: Map<number, number>;
}

const batchSize = 200;
/** Most deliveries of one subscription in one turn. */
const mostOfOne = 100;
/** Most users whose last subscription is remembered, and most subscriptions with a manual retry. */
const mostServed = 10_000;
/** Extra time for the write of a manual retry into the queue, and its take from the queue. */
const urgentGraceMs = 200;
/** How often deliveries of silent receivers are judged by how long they have waited. */
const judgeEveryMs = 60_000;

export function createParkedWalk(): ParkedWalk {
  return {
    mayBeParked: true,
    after: 0,
    isSlotWanted: false,
    judgedAtMs: -Infinity,
    rateAtMs: Infinity,
    served: new Map(),
    newestNext: new Map(),
    urgentUntilMs: new Map(),
  };
}

/** Keeps the next attempt of a rate-limited subscription for a manual retry that is due in `ms`. */
export function leaveNextTo({ urgentUntilMs }: ParkedWalk, subscriptionId: number, ms: number): void {
  setBounded(urgentUntilMs, [subscriptionId, performance.now() + ms + urgentGraceMs], mostServed);
}

function waitMsOf(
  { rates }: TakeParkedOptions,
  { urgentUntilMs }: ParkedWalk,
  subscriptionId: number,
): number {
  const urgentMs = (urgentUntilMs.get(subscriptionId) ?? 0) - performance.now();
  return Math.max(rates.waitMs(subscriptionId), urgentMs);
}

/**
 * Takes as many deliveries that wait for a slot as there are slots. Users take turns, and so do the
 * subscriptions of each user.
 *
 * @returns Whether to look again at once.
 */
export async function takeParked(options: TakeParkedOptions, walk: ParkedWalk): Promise<boolean> {
  const { store, flightMs, admission } = options;
  // Cleared before the read, so that a delivery that is parked during the read sets it again.
  walk.mayBeParked = false;
  if (walk.after === 0) walk.rateAtMs = Infinity;
  const found = await store.findParked({ after: walk.after, limit: batchSize });
  const isLast = found.length < batchSize;
  const active = found.flatMap((one) => (one.isActive ? [one] : []));
  const silent = active.filter(
    ({ url, userId }) => admission.refusalOf({ url, userId, lane: "first" }) === "silent",
  );
  const limited = active.filter(({ rateLimit }) => rateLimit !== null);
  const paused = limited.filter(({ subscriptionId }) => waitMsOf(options, walk, subscriptionId) > 0);
  walk.isSlotWanted ||= active.some(
    (one) => admission.hasShareOf(one.url) && !silent.includes(one) && !paused.includes(one),
  );
  // A free slot is no reason for a turn when all subscriptions are paused, silent, rate-limited, or
  // for other dispatchers.
  if (walk.isSlotWanted || !isLast) walk.mayBeParked = true;
  if (isLast) walk.isSlotWanted = false;
  walk.after = isLast ? 0 : (found.at(-1)?.subscriptionId ?? 0);
  if (silent.length > 0 && performance.now() - walk.judgedAtMs >= judgeEveryMs) {
    walk.judgedAtMs = performance.now();
    await settleOldest(options, silent);
  }
  const off = found.filter(({ url, isActive }) => url !== null && !isActive);
  const hasOff = off.length > 0 && (await settleOldest(options, off)) > 0;
  const counts = divideSlots(
    options,
    walk,
    active.filter((one) => !paused.includes(one)),
  );
  noteRates(options, walk, limited);
  if (counts.size === 0) return hasOff || !isLast;
  // Takes from both ends, so that new deliveries do not wait behind a backlog of hours. With a
  // single slot, the ends take turns. A limit below 40 a second never has more at a time.
  const wanted = [...counts].map(([subscriptionId, count]) => {
    const isNewestNext = walk.newestNext.get(subscriptionId) === true;
    if (count % 2 === 1) setBounded(walk.newestNext, [subscriptionId, !isNewestNext], mostServed);
    const newest = Math.floor((count + Number(isNewestNext)) / 2);
    return { subscriptionId, oldest: count - newest, newest };
  });
  const taken = await store.takeParked({ wanted, flightMs });
  const { started } = await startTaken(options, taken);
  noteRates(options, walk, limited);
  return started > 0 || hasOff || !isLast;
}

/**
 * Takes a batch of the oldest deliveries of subscriptions that get no slot. Holds those of
 * subscriptions that are off. Fails those that have waited too long for a silent receiver, and puts
 * the others back. Returns how many it has taken.
 */
async function settleOldest(
  options: TakeParkedOptions,
  subscriptions: readonly WaitingSubscription[],
): Promise<number> {
  const oldest = Math.ceil(batchSize / subscriptions.length);
  const wanted = subscriptions.map(({ subscriptionId }) => ({ subscriptionId, oldest, newest: 0 }));
  const taken = await options.store.takeParked({ wanted, flightMs: options.flightMs });
  await startTaken(options, taken);
  return taken.removed;
}

/** Notes the earliest time when a rate-limited subscription may have an attempt. */
function noteRates(
  options: TakeParkedOptions,
  walk: ParkedWalk,
  limited: readonly WaitingSubscription[],
): void {
  for (const { subscriptionId } of limited) {
    const waitMs = waitMsOf(options, walk, subscriptionId);
    if (waitMs > 0) walk.rateAtMs = Math.min(walk.rateAtMs, performance.now() + waitMs);
  }
}

/**
 * Returns the number of slots for each subscription's deliveries. Users get one slot each in turn,
 * until there are none.
 */
function divideSlots(
  { admission }: TakeParkedOptions,
  { served }: ParkedWalk,
  active: readonly ActiveSubscription[],
): ReadonlyMap<number, number> {
  const reservations: { readonly leave: () => void }[] = [];
  const counts = new Map<number, number>();
  const lines = groupBy(active, ({ userId }) => userId);
  /** Reserves a slot for the user's next subscription that can get one. */
  const serve = (line: ActiveSubscription[]): boolean => {
    for (let one = line.shift(); one !== undefined; one = line.shift()) {
      const { subscriptionId, url, userId, rateLimit } = one;
      const request = { userId, url, bytes: 0, isUrgent: false };
      const reserved =
        admission.reserve({ ...request, lane: "first" }) ?? admission.reserve({ ...request, lane: "retry" });
      if (reserved === undefined) continue;
      reservations.push(reserved);
      const count = (counts.get(subscriptionId) ?? 0) + 1;
      counts.set(subscriptionId, count);
      setBounded(served, [userId, subscriptionId], mostServed);
      if (count < (rateLimit === null ? mostOfOne : Math.min(mostOfOne, burstOf(rateLimit)))) line.push(one);
      return true;
    }
    return false;
  };
  let open = admission
    .inTurn([...lines], ([userId]) => userId)
    .map(([userId, line]) => behind(line, served.get(userId) ?? 0));
  while (open.length > 0) open = open.filter((line) => reservations.length < batchSize && serve(line));
  for (const one of reservations) one.leave();
  return counts;
}

type ActiveSubscription = Extract<WaitingSubscription, { readonly url: string }>;

/** Rotates a list in the order of ids, so that it begins after an id. */
function behind(line: readonly ActiveSubscription[], id: number): ActiveSubscription[] {
  const isBehind = ({ subscriptionId }: ActiveSubscription): boolean => subscriptionId > id;
  return [...line.filter(isBehind), ...line.filter((one) => !isBehind(one))];
}
