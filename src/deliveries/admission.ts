import type { Lane } from "../broker/topology.ts";
import type { Log } from "../log.ts";
import type { BreakerCounts } from "../metrics/receivers.ts";
import { createBreakers, type AttemptCost, type Breakers } from "./breakers.ts";
import type { AttemptResult } from "./delivery.ts";
import { createReceiverSlots, type ReceiverSlots } from "./receiver-slots.ts";
import type { LeasedDelivery } from "./store.ts";

/** Whether a delivery may be attempted now. */
export type Admitted =
  | {
      readonly kind: "go";
      /** To be called once, as soon as the attempt is over; with nothing when none was made. */
      readonly done: (result?: AttemptResult) => void;
    }
  | {
      readonly kind: "wait";
      readonly delayMs: number;
      /** The receiver takes up its share of the slots, or owes too many answers. */
      readonly reason: "busy" | "silent";
    };

export interface Admission {
  admit(delivery: LeasedDelivery, lane: Lane): Promise<Admitted>;
  breakerCounts(): BreakerCounts;
}

/** A failure that took less has hardly kept others from a slot; or half the time that an attempt may take. */
const costlyMs = 1_000;

/** How many of so many slots are for each lane: retries get a share of their own, so that fresh work need not wait for theirs. */
export function laneShares(slots: number): Readonly<Record<Lane, number>> {
  const retry = Math.max(1, Math.floor(slots / 4));
  return { first: Math.max(1, slots - retry), retry };
}

/**
 * Keeps receivers from one another's way: each may take up its share of the attempts in flight, and one that answers nothing gets
 * only an attempt now and then.
 *
 * Slots are shared out by the URL's origin, since it is a host that hangs, with all the subscriptions that point to it. Breakers stand
 * for a user's URL: on a host that many share, one path that hangs must not hold up the others, and nobody can open another's breaker.
 *
 * @param concurrency Attempts in flight, over both lanes.
 * @param perReceiver Of these, most to one origin; undefined for a quarter, and up to three quarters while it answers quickly.
 * @param hasBreakers False: receivers that answer nothing are bounded by their slots alone.
 * @param now In ms, never going back.
 */
export function createAdmission({
  concurrency,
  perReceiver,
  hasBreakers,
  timeoutMs,
  log,
  now,
  random,
}: {
  readonly concurrency: number;
  readonly perReceiver: number | undefined;
  readonly hasBreakers: boolean;
  readonly timeoutMs: number;
  readonly log: Log;
  readonly now: () => number;
  readonly random: () => number;
}): Admission {
  const shares = laneShares(perReceiver ?? Math.floor(concurrency / 4));
  const livelyLimits = laneShares(perReceiver ?? Math.floor((concurrency * 3) / 4));
  const slotsOf = (lane: Lane): ReceiverSlots =>
    createReceiverSlots({ perReceiver: shares[lane], livelyLimit: livelyLimits[lane], now });
  const slots: Readonly<Record<Lane, ReceiverSlots>> = { first: slotsOf("first"), retry: slotsOf("retry") };
  // What a receiver that hangs costs is measured in timeouts, and so is the pause that it is given.
  const breakers: Breakers = createBreakers({ firstPauseMs: timeoutMs, now, random });

  function costOf(result: AttemptResult | undefined): AttemptCost {
    if (result === undefined) return "unmade";
    if (result.error === undefined || result.error === "http") return "answered";
    return result.durationMs >= Math.min(costlyMs, timeoutMs / 2) ? "costly" : "cheap";
  }

  function tell(receiver: string, isProbe: boolean, delivery: LeasedDelivery, result?: AttemptResult): void {
    const change = breakers.tell({ receiver, isProbe, cost: costOf(result) });
    if (change === undefined) return;
    // The host alone: paths and queries of webhooks can hold secrets.
    const host = hostOf(delivery.url);
    if (change === "opened")
      log.warn(
        { event: "breaker.opened", receiver: host, error: result?.error },
        "receiver answers nothing; its deliveries are postponed",
      );
    else log.info({ event: "breaker.closed", receiver: host }, "receiver answers again");
  }

  return {
    async admit(delivery, lane) {
      const taking = await slots[lane].take(originOf(delivery.url));
      if (taking.kind === "full") return { kind: "wait", delayMs: taking.delayMs, reason: "busy" };
      const receiver = `${delivery.user.id} ${delivery.url}`;
      // Somebody wants to know now, and what comes of it says as much as a probe.
      const isUrgent = delivery.isManual && delivery.attempt === 0;
      const permission =
        hasBreakers && !isUrgent ? breakers.ask(receiver) : { kind: "go" as const, isProbe: false };
      if (permission.kind === "wait") {
        taking.release();
        return { ...permission, reason: "silent" };
      }
      return {
        kind: "go",
        done(result) {
          // Rounded, an answer can take no time at all, which is not the same as none.
          if (result === undefined) taking.release();
          else taking.release(costOf(result) === "answered" ? Math.max(result.durationMs, 1) : 0);
          if (hasBreakers) tell(receiver, permission.isProbe, delivery, result);
        },
      };
    },
    breakerCounts: () => breakers.counts(),
  };
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** Host and port of a receiver, for people to read. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "the receiver";
}
