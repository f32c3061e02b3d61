import type { Admission } from "./admission/admission.ts";
import { placeDeliveries, type PlaceOptions } from "./place-deliveries.ts";
import type { DeliveryStore, ParkedSubscription } from "./store.ts";

export interface TakeParkedOptions extends PlaceOptions {
  readonly store: Pick<DeliveryStore, "findParked" | "takeParked" | "cancelOrphans">;
  readonly flightMs: number;
}

/** How far the walk over the subscriptions with parked deliveries has come. */
export interface ParkedWalk {
  /** Whether deliveries may wait for a slot. */
  mayBeParked: boolean;
  /** Id of the subscription after which the next look begins. */
  after: number;
  /** Whether this walk has found a subscription that a free slot would serve. */
  isSlotWanted: boolean;
  judgedAtMs: number;
}

const batchSize = 200;
/** Most deliveries of one subscription from one look. */
const mostOfOne = 100;
/** How often deliveries of silent receivers are judged by how long they have waited. */
const judgeEveryMs = 60_000;

export function createParkedWalk(): ParkedWalk {
  return { mayBeParked: true, after: 0, isSlotWanted: false, judgedAtMs: -Infinity };
}

/**
 * Takes deliveries that wait for a slot, as many as there are slots, in turns over the
 * subscriptions.
 *
 * @returns Whether to look again at once.
 */
export async function takeParked(options: TakeParkedOptions, walk: ParkedWalk): Promise<boolean> {
  const { store, flightMs } = options;
  // Cleared before the look, so that a delivery which is parked during the look sets it again.
  walk.mayBeParked = false;
  const found = await store.findParked({ after: walk.after, limit: batchSize });
  const isLast = found.length < batchSize;
  const silent = found.filter((one) => isSilent(options, one));
  walk.isSlotWanted ||= found.some((one) => one.isActive && !silent.includes(one));
  // With only paused and silent subscriptions, a free slot is no reason for a turn.
  if (walk.isSlotWanted || !isLast) walk.mayBeParked = true;
  if (isLast) walk.isSlotWanted = false;
  walk.after = isLast ? 0 : (found.at(-1)?.subscriptionId ?? 0);
  for (const { subscriptionId, url } of found)
    if (url === null) await store.cancelOrphans({ subscriptionId, limit: batchSize });
  await judge(options, walk, silent);
  const counts = shareOut(options.admission, found);
  if (counts.size === 0) return !isLast;
  // From both ends, so that new deliveries do not wait behind a backlog of hours.
  const wanted = [...counts].map(([subscriptionId, count]) => ({
    subscriptionId,
    oldest: Math.ceil(count / 2),
    newest: Math.floor(count / 2),
  }));
  const taken = await store.takeParked({ wanted, flightMs });
  return (await placeDeliveries(options, taken)) > 0 || !isLast;
}

function isSilent({ admission }: TakeParkedOptions, { url, userId, isActive }: ParkedSubscription): boolean {
  if (url === null || userId === null || !isActive) return false;
  return admission.refusalOf({ url, userId, lane: "first" }) === "silent";
}

/** Fails deliveries that have waited too long for silent receivers, and puts the others back. */
async function judge(
  options: TakeParkedOptions,
  walk: ParkedWalk,
  silent: readonly ParkedSubscription[],
): Promise<void> {
  if (silent.length === 0 || performance.now() - walk.judgedAtMs < judgeEveryMs) return;
  walk.judgedAtMs = performance.now();
  const oldest = Math.ceil(batchSize / silent.length);
  const wanted = silent.map(({ subscriptionId }) => ({ subscriptionId, oldest, newest: 0 }));
  await placeDeliveries(options, await options.store.takeParked({ wanted, flightMs: options.flightMs }));
}

/**
 * Returns how many deliveries of each subscription there are slots for: one for each in turn, until
 * there are none.
 */
function shareOut(
  admission: Pick<Admission, "reserve">,
  found: readonly ParkedSubscription[],
): ReadonlyMap<number, number> {
  const places: { readonly leave: () => void }[] = [];
  const counts = new Map<number, number>();
  let open = found.filter(({ isActive }) => isActive);
  while (open.length > 0 && places.length < batchSize)
    open = open.filter(({ subscriptionId, url, userId }) => {
      if (url === null || userId === null || places.length === batchSize) return false;
      const count = (counts.get(subscriptionId) ?? 0) + 1;
      const request = { userId, url, bytes: 0, isUrgent: false };
      const reserved =
        admission.reserve({ ...request, lane: "first" }) ?? admission.reserve({ ...request, lane: "retry" });
      if (reserved === undefined) return false;
      places.push(reserved);
      counts.set(subscriptionId, count);
      return count < mostOfOne;
    });
  for (const one of places) one.leave();
  return counts;
}
