import type { Lane } from "../../broker/topology.ts";
import { createReceiverSlots, type ReceiverSlots, type SharedLimit } from "./receiver-slots.ts";
import type { SharedSlots } from "./shared-slots.ts";

export type LaneSlots = Readonly<Record<Lane, ReceiverSlots>>;

/** The limits that the lanes share. */
export interface LaneSlotsOptions {
  /** Attempts in flight, over both lanes. */
  readonly concurrency: number;
  /**
   * Most attempts in flight to one origin, over all dispatchers and both lanes. Undefined: a
   * quarter of `concurrency`, and up to three quarters while the origin answers quickly. A user may
   * have half, and up to three quarters while its attempts are answered quickly.
   */
  readonly perReceiver: number | undefined;
  /** Shares `perReceiver` out among the dispatchers. */
  readonly sharedSlots: Pick<SharedSlots, "shareOf" | "usedOf" | "waiting">;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/**
 * Shares slots between the lanes. Retries get a quarter, so that new deliveries need not wait for
 * them.
 */
export function laneShares(slots: number): Readonly<Record<Lane, number>> {
  const retry = Math.max(1, Math.floor(slots / 4));
  return { first: Math.max(1, slots - retry), retry };
}

export function createLaneSlots({ concurrency, perReceiver, sharedSlots, now }: LaneSlotsOptions): LaneSlots {
  const shares = laneShares(concurrency);
  const userShares = laneShares(Math.floor(concurrency / 2));
  const receiverShares = laneShares(Math.floor(concurrency / 4));
  const livelyLimits = laneShares(Math.floor((concurrency * 3) / 4));
  const ofLane = (lane: Lane): ReceiverSlots =>
    createReceiverSlots({
      slots: shares[lane],
      perUser: userShares[lane],
      perReceiver:
        perReceiver === undefined ? receiverShares[lane] : sharedLimit(sharedSlots, perReceiver, lane),
      livelyLimit: perReceiver === undefined ? livelyLimits[lane] : 0,
      now,
    });
  return { first: ofLane("first"), retry: ofLane("retry") };
}

/**
 * Returns the limit of a lane for each receiver. Retries get at most a quarter of a receiver's
 * slots. New deliveries may use all of them, so that a receiver with few slots leaves none empty.
 */
function sharedLimit(
  sharedSlots: LaneSlotsOptions["sharedSlots"],
  perReceiver: number,
  lane: Lane,
): SharedLimit {
  return {
    waiting: sharedSlots.waiting,
    usedOf: (origin) => sharedSlots.usedOf(origin),
    mostOf(origin) {
      const all = sharedSlots.shareOf(origin, perReceiver);
      return { all, own: lane === "retry" ? laneShares(all).retry : all };
    },
  };
}
