import { addCount } from "../../kit/add-count.ts";
import type { Lane } from "../../broker/topology.ts";
import type { Log } from "../../telemetry/log.ts";
import type { BreakerCounts } from "../../telemetry/metrics/receivers.ts";
import type { Sql } from "../../db/sql.ts";
import type { Worker } from "../../kit/worker.ts";
import { createBreakers, type AttemptCost } from "./breakers.ts";
import { createSharedBreakers, type SharedBreakers } from "./shared-breakers.ts";
import type { AttemptResult } from "../delivery.ts";
import { getOrSet } from "../../kit/group-by.ts";
import { createLaneSlots, type LaneSlots, type LaneSlotsOptions } from "./lane-slots.ts";
import type { UserLoad } from "./receiver-slots.ts";
import { parseUrl } from "../../kit/parse-url.ts";

/** The user and the receiver whose slots an attempt would take. */
interface SlotTarget {
  readonly userId: number;
  readonly url: string;
  readonly lane: Lane;
}

/** Request of a slot for an attempt, with the data that slots and breakers need. */
export interface SlotRequest extends SlotTarget {
  /** Size of the body. */
  readonly bytes: number;
  /**
   * Whether the attempt is the first of a manual retry, whose outcome a user waits for. Breakers
   * permit it.
   */
  readonly isUrgent: boolean;
}

/**
 * Callback that the caller must call once, when the attempt is over. It gets no result when no
 * attempt was made.
 */
export type Done = (result?: AttemptResult) => void;

/** Reservation of a slot for one attempt. The caller calls one of the two functions, once. */
export interface Reservation {
  /**
   * Calls `begin` when a slot is free, or `giveUp` when none becomes free or the receiver has
   * become silent.
   */
  enter(visit: {
    readonly begin: (done: Done) => void;
    readonly giveUp: (reason: "busy" | "silent") => void;
  }): void;
  leave(): void;
}

/** Limits the attempts in flight by user and by receiver. */
export interface Admission {
  /**
   * Returns a reservation for an attempt now or within a moment; undefined when the delivery must
   * wait in the database.
   */
  reserve(request: SlotRequest): Reservation | undefined;
  /** Returns why `reserve` would refuse a small delivery; undefined when it would not. */
  refusalOf(request: SlotTarget): "busy" | "silent" | undefined;
  /**
   * Returns whether this dispatcher has a share of the receiver's slots. If not, only other
   * dispatchers attempt its deliveries.
   */
  hasShareOf(url: string): boolean;
  /** Returns how many small deliveries `reserve` would accept now. */
  roomOf(request: SlotTarget): number;
  /**
   * Orders items for slots: users with the fewest attempts in flight first, and among these the
   * user who has waited longest.
   */
  inTurn<T>(items: readonly T[], userOf: (item: T) => number | undefined): readonly T[];
  breakerCounts(): BreakerCounts;
  /** Workers that share the breakers with other dispatchers; empty without breakers. */
  readonly workers: readonly Worker[];
}

interface AdmissionOptions extends LaneSlotsOptions {
  /** Whether there are breakers. Without them, only slots limit receivers that do not answer. */
  readonly hasBreakers: boolean;
  readonly timeoutMs: number;
  /** Database of `svc.breakers`, by which breakers are shared. */
  readonly sql: Sql;
  readonly log: Log;
  /** Resolves when no attempt is in flight. */
  readonly drained: () => Promise<void>;
  readonly random: () => number;
}

interface State extends AdmissionOptions {
  readonly slots: LaneSlots;
  readonly breakers: SharedBreakers;
  /** Bytes of the bodies of reservations and of attempts in flight. */
  bytesHeld: number;
  readonly bytesOfUsers: Map<number, number>;
}

/** A failure is cheap when it took less than this, or less than half the attempt's time limit. */
const costlyMs = 1_000;

/** Limit of `bytesHeld`. A single body may be larger. */
const mostBytes = 32 * 1024 ** 2;

/**
 * Creates the admission, which keeps users and receivers from delaying one another. Each may use
 * its share of the attempts in flight. A receiver that does not answer gets few attempts.
 *
 * Slots are counted per user and per origin of the URL. A breaker belongs to one user's URL: on a
 * shared host, one path that hangs must not delay the others. No user can open another user's
 * breaker.
 */
export function createAdmission(options: AdmissionOptions): Admission {
  const { hasBreakers, timeoutMs, perReceiver, sharedSlots, sql, log, drained, now, random } = options;
  // A receiver that hangs takes one timeout per attempt, so the first pause is one timeout.
  const own = createBreakers({ firstPauseMs: timeoutMs, now, random });
  const breakers = createSharedBreakers({ own, sql, log, drained, now, random });
  const state: State = {
    ...options,
    slots: createLaneSlots(options),
    breakers,
    bytesHeld: 0,
    bytesOfUsers: new Map(),
  };
  return {
    refusalOf: (request) => refusalOf(state, request),
    roomOf: (request) => roomOf(state, request),
    hasShareOf: (url) => perReceiver === undefined || sharedSlots.shareOf(originOf(url), perReceiver) > 0,
    reserve: (request) => reserve(state, request),
    inTurn: (items, userOf) => inTurn(state, items, userOf),
    breakerCounts: () => breakers.counts(),
    workers: hasBreakers ? [breakers] : [],
  };
}

function refusalOf(state: State, request: SlotTarget): "busy" | "silent" | undefined {
  if (isSilent(state, request)) return "silent";
  return slotsFor(state, request) > 0 ? undefined : "busy";
}

function roomOf(state: State, request: SlotTarget): number {
  return isSilent(state, request) ? 0 : slotsFor(state, request);
}

function isSilent({ breakers }: State, receiver: Pick<SlotRequest, "userId" | "url">): boolean {
  return !breakers.mayAcquire(receiverOf(receiver));
}

function slotsFor({ slots }: State, { lane, userId, url }: SlotTarget): number {
  return slots[lane].roomOf({ userId, origin: originOf(url) });
}

function reserve(state: State, request: SlotRequest): Reservation | undefined {
  const { hasBreakers, breakers, slots } = state;
  const { lane, isUrgent, bytes, userId, url } = request;
  const receiver = receiverOf(request);
  if (!isUrgent && !breakers.mayAcquire(receiver)) return undefined;
  const ownBytes = state.bytesOfUsers.get(userId) ?? 0;
  const freeBytes = mostBytes - state.bytesHeld - bytes;
  if (state.bytesHeld > 0 && freeBytes < 0) return undefined;
  // Leaves bytes to users who come later: two users with half of all would leave none.
  if (ownBytes > 0 && ownBytes + bytes > freeBytes) return undefined;
  const slot = slots[lane].reserve({ userId, origin: originOf(url) });
  if (slot === undefined) return undefined;
  countBytes(state, userId, bytes);
  const uncount = (): void => countBytes(state, userId, -bytes);
  return {
    leave() {
      uncount();
      slot.leave();
    },
    enter({ begin, giveUp }) {
      slot.enter({
        giveUp() {
          uncount();
          giveUp("busy");
        },
        begin(release) {
          const permission = isUrgent ? "go" : breakers.tryAcquire(receiver);
          if (permission === "wait") {
            uncount();
            release();
            return giveUp("silent");
          }
          begin((result) => {
            uncount();
            // Reports at least 1 ms: a rounded time may be 0 ms, but 0 means no answer.
            if (result === undefined) release();
            else release(costOf(state, result) === "answered" ? Math.max(result.durationMs, 1) : 0);
            if (hasBreakers) report(state, request, permission === "probe", result);
          });
        },
      });
    },
  };
}

function countBytes(state: State, userId: number, bytes: number): void {
  state.bytesHeld += bytes;
  addCount(state.bytesOfUsers, userId, bytes);
}

function inTurn<T>(
  { slots }: State,
  items: readonly T[],
  userOf: (item: T) => number | undefined,
): readonly T[] {
  const loads = new Map<number | undefined, UserLoad>();
  const loadOf = (item: T): UserLoad => getOrSet(loads, userOf(item), () => loadIn(slots, userOf(item)));
  return items.toSorted((one, other) => {
    const [a, b] = [loadOf(one), loadOf(other)];
    return a.inUse - b.inUse || a.servedAt - b.servedAt;
  });
}

/** Returns the user's load over both lanes. */
function loadIn({ first, retry }: LaneSlots, userId: number | undefined): UserLoad {
  if (userId === undefined) return { inUse: 0, servedAt: 0 };
  const [one, other] = [first.loadOf(userId), retry.loadOf(userId)];
  return { inUse: one.inUse + other.inUse, servedAt: Math.max(one.servedAt, other.servedAt) };
}

function costOf({ timeoutMs }: State, result: AttemptResult | undefined): AttemptCost {
  if (result === undefined) return "unmade";
  if (result.error === undefined || result.error === "http") return "answered";
  return result.durationMs >= Math.min(costlyMs, timeoutMs / 2) ? "costly" : "cheap";
}

function report(
  state: State,
  request: SlotRequest,
  isProbe: boolean,
  result: AttemptResult | undefined,
): void {
  const change = state.breakers.report({
    receiver: receiverOf(request),
    isProbe,
    cost: costOf(state, result),
  });
  if (change === undefined) return;
  // Logs only the host, because paths and queries of webhooks can hold secrets.
  const receiver = hostOf(request.url);
  if (change === "opened")
    state.log.warn(
      { event: "breaker.opened", receiver, error: result?.error },
      "receiver does not answer; its deliveries wait",
    );
  else state.log.info({ event: "breaker.closed", receiver }, "receiver answers again");
}

/** Returns the key of a breaker. */
function receiverOf({ userId, url }: Pick<SlotRequest, "userId" | "url">): string {
  return `${userId} ${url}`;
}

function originOf(url: string): string {
  return parseUrl(url)?.origin ?? url;
}

/** Returns host and port of a receiver, for texts that people read. */
export function hostOf(url: string): string {
  return parseUrl(url)?.host ?? "the receiver";
}
