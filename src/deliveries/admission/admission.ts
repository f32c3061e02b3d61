import type { Lane } from "../../broker/topology.ts";
import type { Log } from "../../telemetry/log.ts";
import type { BreakerCounts } from "../../telemetry/metrics/receivers.ts";
import { createBreakers, type AttemptCost, type Breakers } from "./breakers.ts";
import type { AttemptResult } from "../delivery.ts";
import { createReceiverSlots, type ReceiverSlots } from "./receiver-slots.ts";

/** What is asked for when a delivery wants to be attempted. */
export interface Candidate {
  readonly userId: number;
  readonly url: string;
  readonly lane: Lane;
  /** Of its body. */
  readonly bytes: number;
  /** Somebody wants to know now: its first attempt by hand. */
  readonly isUrgent: boolean;
}

/** To be called once, as soon as the attempt is over; with nothing when none was made. */
export type Done = (result?: AttemptResult) => void;

/** A place for one attempt. One of the two is called, once. */
export interface Place {
  /** `begin` as soon as a slot is free; `giveUp` when none falls free, or the receiver turns out to be silent. */
  enter(visit: {
    readonly begin: (done: Done) => void;
    readonly giveUp: (reason: "busy" | "silent") => void;
  }): void;
  leave(): void;
}

export interface Admission {
  /** A place for an attempt that can be made at once or within a moment; undefined when the delivery had better wait in the database. */
  reserve(candidate: Candidate): Place | undefined;
  /** Why `reserve` would answer no place to a small one; undefined when it would. */
  refusalOf(candidate: Omit<Candidate, "bytes" | "isUrgent">): "busy" | "silent" | undefined;
  breakerCounts(): BreakerCounts;
}

/** A failure that took less has hardly kept others from a slot; or half the time that an attempt may take. */
const costlyMs = 1_000;

/** Of all bodies that are in hand, those that wait for a slot included. One alone may be larger. */
const mostBytes = 32 * 1024 ** 2;

/** How many of so many slots are for each lane: retries get a share of their own, so that fresh work need not wait for theirs. */
export function laneShares(slots: number): Readonly<Record<Lane, number>> {
  const retry = Math.max(1, Math.floor(slots / 4));
  return { first: Math.max(1, slots - retry), retry };
}

/**
 * Keeps users and receivers from one another's way: each may take up its share of the attempts in flight, and a receiver that answers
 * nothing gets only an attempt now and then.
 *
 * Slots are shared out by user and by the URL's origin. Breakers stand for a user's URL: on a host that many share, one path that hangs
 * must not hold up the others, and nobody can open another's breaker.
 *
 * @param concurrency Attempts in flight, over both lanes.
 * @param perReceiver Of these, most to one origin; undefined for a quarter, and up to three quarters while it answers quickly. A user
 *   may have half of them, and three quarters likewise.
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
  const shares = laneShares(concurrency);
  const userShares = laneShares(Math.floor(concurrency / 2));
  const receiverShares = laneShares(perReceiver ?? Math.floor(concurrency / 4));
  const livelyLimits = laneShares(Math.floor((concurrency * 3) / 4));
  const slotsOf = (lane: Lane): ReceiverSlots =>
    createReceiverSlots({
      slots: shares[lane],
      perUser: userShares[lane],
      perReceiver: receiverShares[lane],
      livelyLimit: perReceiver === undefined ? livelyLimits[lane] : 0,
      now,
    });
  const slots: Readonly<Record<Lane, ReceiverSlots>> = { first: slotsOf("first"), retry: slotsOf("retry") };
  // What a receiver that hangs costs is measured in timeouts, and so is the pause that it is given.
  const breakers: Breakers = createBreakers({ firstPauseMs: timeoutMs, now, random });
  let bytesInHand = 0;

  function costOf(result: AttemptResult | undefined): AttemptCost {
    if (result === undefined) return "unmade";
    if (result.error === undefined || result.error === "http") return "answered";
    return result.durationMs >= Math.min(costlyMs, timeoutMs / 2) ? "costly" : "cheap";
  }

  function tell(receiver: string, isProbe: boolean, url: string, result?: AttemptResult): void {
    const change = breakers.tell({ receiver, isProbe, cost: costOf(result) });
    if (change === undefined) return;
    // The host alone: paths and queries of webhooks can hold secrets.
    const host = hostOf(url);
    if (change === "opened")
      log.warn(
        { event: "breaker.opened", receiver: host, error: result?.error },
        "receiver answers nothing; its deliveries wait",
      );
    else log.info({ event: "breaker.closed", receiver: host }, "receiver answers again");
  }

  return {
    refusalOf({ lane, ...candidate }) {
      if (hasBreakers && !breakers.mayAsk(receiverOf(candidate))) return "silent";
      return slots[lane].hasRoom({ ...candidate, origin: originOf(candidate.url) }) ? undefined : "busy";
    },
    reserve({ lane, isUrgent, bytes, ...candidate }) {
      const receiver = receiverOf(candidate);
      const asks = hasBreakers && !isUrgent;
      if (asks && !breakers.mayAsk(receiver)) return undefined;
      if (bytesInHand > 0 && bytesInHand + bytes > mostBytes) return undefined;
      const place = slots[lane].reserve({ ...candidate, origin: originOf(candidate.url) });
      if (place === undefined) return undefined;
      bytesInHand += bytes;
      return {
        leave() {
          bytesInHand -= bytes;
          place.leave();
        },
        enter({ begin, giveUp }) {
          place.enter({
            giveUp() {
              bytesInHand -= bytes;
              giveUp("busy");
            },
            begin(release) {
              const permission = asks ? breakers.ask(receiver) : { kind: "go" as const, isProbe: false };
              if (permission.kind === "wait") {
                bytesInHand -= bytes;
                release();
                return giveUp("silent");
              }
              begin((result) => {
                bytesInHand -= bytes;
                // Rounded, an answer can take no time at all, which is not the same as none.
                if (result === undefined) release();
                else release(costOf(result) === "answered" ? Math.max(result.durationMs, 1) : 0);
                if (hasBreakers) tell(receiver, permission.isProbe, candidate.url, result);
              });
            },
          });
        },
      };
    },
    breakerCounts: () => breakers.counts(),
  };
}

/** What has a breaker. */
function receiverOf({ userId, url }: Pick<Candidate, "userId" | "url">): string {
  return `${userId} ${url}`;
}

function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : url;
}

/** Host and port of a receiver, for people to read. */
export function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : "the receiver";
}
