import type { Log } from "../telemetry/log.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { SnapshotColumn } from "../subscriptions/snapshot-row-sql.ts";
import { hostOf, type Admission, type SlotRequest } from "./admission/admission.ts";
import { grantsFor, type UseGrant, type Rates } from "./admission/rates.ts";
import type { Attempts } from "./attempt/attempts.ts";
import { longestPostponementMs, type ScheduleOf } from "./attempt/schedule.ts";
import type { Flight } from "./flights.ts";
import { toRequeued, urgentMs, type Outcome, type RequeuedDelivery } from "./outcome.ts";
import type { TakenDeliveries, TakenDelivery } from "./taken.ts";

export interface StartOptions {
  /**
   * Whether a delivery without an attempt is held again, which keeps its place in the order of
   * events. Its attempts take the slots of retries, so that new deliveries keep theirs. A delivery
   * whose reader cannot be judged goes into the queue, so that no other waits for it.
   */
  readonly keepsOrder?: boolean;
  readonly admission: Pick<Admission, "reserve" | "refusalOf" | "hasShareOf" | "inTurn">;
  readonly attempts: Pick<Attempts, "start" | "settle" | "putBack">;
  readonly rates: Pick<Rates, "take" | "waitMs">;
  readonly eligibility: Pick<Eligibility, "judge">;
  /** Returns whether the mapping files of this process have the resource. */
  readonly isKnown: (resource: string) => boolean;
  readonly scheduleOf: ScheduleOf;
  readonly log: Pick<Log, "error">;
  readonly metrics: Pick<DeliveryMetrics, "postponed">;
  /** Called with the id of a due delivery that only other dispatchers may attempt. */
  readonly onPassedOn?: (id: string) => void;
  /** Called when a rate limit has refused a manual retry, which is tried again in `ms`. */
  readonly onUrgent?: (subscriptionId: number, ms: number) => void;
}

/**
 * Delay of a delivery when an access rule cannot be applied, such as when its table is unavailable.
 */
const unjudgedMs = 30_000;
/**
 * Longest delay of a delivery whose resource this process does not know. The resource may be
 * removed: a million such deliveries every 30 s would fill the sweep.
 */
const longestUnknownMs = 3_600_000;
/** Delay of a delivery when the database has not answered. */
const faultMs = 2_000;
/** Gap between manual retries of one subscription that were refused together. */
const urgentGapMs = 100;

/** State of the deliveries so far, for a caller that waits for the attempts. */
interface StartedDeliveries {
  /** Number of attempts that were started. */
  started: number;
  /** Number of POSTs that were made. */
  attempted: number;
  /** Whether a delivery found no slot. */
  isRefused: boolean;
  /** Whether a delivery was held again with a delay until its next try. */
  isDelayed: boolean;
  /**
   * Promises of the ends of the started attempts, and of the writes of outcomes without an attempt.
   * The list may grow while they are awaited.
   */
  readonly ends: Promise<void>[];
}

/**
 * Starts the attempts of deliveries that were taken from the queue, or cancels, fails or puts them
 * back. Rejects when no user can be judged now: all deliveries are then due again in a moment.
 */
export async function startTaken(
  options: StartOptions,
  { flightId, beganAtMs, deliveries }: TakenDeliveries,
): Promise<StartedDeliveries> {
  const all: StartedDeliveries = { started: 0, attempted: 0, isRefused: false, isDelayed: false, ends: [] };
  if (flightId === undefined) return all;
  const flight: Flight = { id: flightId, unwritten: deliveries.length, beganAtMs };
  let judged: Judged;
  try {
    judged = await eligibleOf(options, deliveries);
  } catch (error) {
    for (const delivery of deliveries) putBack(options, { all, delivery, flight }, faultMs);
    // A held delivery must be held again before the next one is taken.
    await Promise.all(all.ends);
    throw error;
  }
  const wanted = deliveries.flatMap((delivery) => {
    const { subscriptionId, subscription } = delivery;
    if (subscription?.isActive !== true || judged(delivery) !== true) return [];
    return [{ subscriptionId, rateLimit: subscription.rateLimit }];
  });
  const useGrant = await grantsFor(options, wanted);
  const ordered = options.admission.inTurn(deliveries, ({ subscription }) => subscription?.user.id);
  const urgent = new Map<number, number>();
  for (const delivery of ordered)
    if (start(options, { all, delivery, flight, judged, useGrant, urgent })) all.started += 1;
  return all;
}

/** A delivery that was taken, and the flight that it was taken with. */
interface Taken {
  readonly all: StartedDeliveries;
  readonly delivery: TakenDelivery;
  readonly flight: Flight;
}

/** Puts a delivery back: into its place among the held ones, or into the queue for `delayMs`. */
function putBack(options: StartOptions, taken: Taken, delayMs: number | undefined): false {
  return options.keepsOrder === true
    ? settle(options, taken, { status: "held" })
    : requeue(options, taken, delayMs);
}

function requeue(
  { attempts }: StartOptions,
  { delivery, flight }: Taken,
  delayMs: number | undefined,
  forOthers: Pick<RequeuedDelivery, "uuidForOthers"> = {},
): false {
  attempts.putBack({ flight }, { ...toRequeued(delivery, delayMs), ...forOthers });
  return false;
}

/** Decides the outcome of a delivery without an attempt. */
function settle(
  { attempts }: StartOptions,
  { all, delivery: { id, uuid, attempt: attemptsBefore }, flight }: Taken,
  outcome: Pick<Outcome, "status" | "lastError">,
): false {
  all.ends.push(attempts.settle({ flight }, { id, uuid, attemptsBefore, ...outcome }));
  return false;
}

/**
 * Judges again, as at the fan-out, who may read the events. A user who has lost the right to an
 * event gets nothing.
 */
async function eligibleOf(
  { eligibility }: StartOptions,
  deliveries: readonly TakenDelivery[],
): Promise<Judged> {
  const verdictsOf = async (
    some: readonly TakenDelivery[],
    which: SnapshotColumn,
  ): Promise<ReadonlyMap<TakenDelivery, boolean | undefined>> => {
    const pairs = some.flatMap((delivery) => {
      const { eventId: id, resource, ownerId: owner_id, subscription } = delivery;
      return subscription ? [{ delivery, event: { id, resource, owner_id }, user: subscription.user }] : [];
    });
    const verdicts = await eligibility.judge(pairs, which);
    return new Map(pairs.map(({ delivery }, index) => [delivery, verdicts[index]]));
  };
  const verdicts = await verdictsOf(deliveries, "snapshot");
  const showing = deliveries.filter(({ hasPrevious }) => hasPrevious);
  const before = await verdictsOf(showing, "previous");
  return (delivery) => {
    const verdict = verdicts.get(delivery);
    return verdict === true && delivery.hasPrevious ? before.get(delivery) : verdict;
  };
}

/** Returns whether the subscriber may read the event; undefined when this cannot be decided now. */
type Judged = (delivery: TakenDelivery) => boolean | undefined;

interface JudgedDelivery extends Taken {
  readonly judged: Judged;
  readonly useGrant: UseGrant | undefined;
  /** Number of refused manual retries, by subscription. */
  readonly urgent: Map<number, number>;
}

/**
 * Starts the attempt of one delivery, or settles or puts it back. Returns whether an attempt was
 * started.
 */
function start(options: StartOptions, taken: JudgedDelivery): boolean {
  const { all, delivery, flight, judged, useGrant } = taken;
  const { admission, attempts } = options;
  const { attempt, subscription } = delivery;
  const cancel = (lastError: string): false => settle(options, taken, { status: "cancelled", lastError });
  if (subscription === null) return cancel("The subscription was deleted.");
  const hold = (): false => settle(options, taken, { status: "held" });
  if (!subscription.isActive) return hold();
  const verdict = judged(delivery);
  // Other dispatchers may know the access rules of an unknown resource. This one can only judge the
  // owners.
  if (verdict === undefined || (!verdict && !options.isKnown(delivery.resource))) {
    const waitedMs = verdict === undefined ? 0 : delivery.waitedMs;
    return requeue(options, taken, Math.max(unjudgedMs, Math.min(waitedMs, longestUnknownMs)));
  }
  if (!verdict)
    return cancel(
      `The subscriber may no longer see this record${delivery.hasPrevious ? ", or what it was before" : ""}.`,
    );
  const request: SlotRequest = {
    userId: subscription.user.id,
    url: subscription.url,
    lane: attempt === 0 && options.keepsOrder !== true ? "first" : "retry",
    bytes: delivery.bytes,
    isUrgent: delivery.trigger === "manual",
  };
  if (useGrant === undefined && subscription.rateLimit !== null) return putBack(options, taken, faultMs);
  if (useGrant?.(delivery.subscriptionId, subscription.rateLimit) === false) {
    options.metrics.postponed("rate");
    return putBack(options, taken, urgentDelayMs(options, taken));
  }
  const reserved = admission.reserve(request);
  if (reserved === undefined) {
    all.isRefused = true;
    if (options.keepsOrder === true) {
      options.metrics.postponed(admission.refusalOf(request) ?? "busy");
      return hold();
    }
    return postponeOrFail(options, taken, request);
  }
  const happenedAtMs = performance.now() - delivery.eventAgeMs;
  const inFlight = { ...delivery, subscription, happenedAtMs, payload: undefined, flight };
  const holdAgain = (delayMs: number | undefined): void => {
    all.isDelayed ||= delayMs !== undefined;
    hold();
  };
  const end = new Promise<void>((resolve) => {
    const onEnd = (isMade: boolean): void => {
      all.attempted += Number(isMade);
      resolve();
    };
    attempts.start(inFlight, reserved, {
      putBack: options.keepsOrder === true ? holdAgain : undefined,
      onEnd,
    });
  });
  all.ends.push(end);
  return true;
}

/**
 * Puts a delivery without a slot back, or fails it when its receiver has been silent for too long.
 */
function postponeOrFail(options: StartOptions, taken: JudgedDelivery, request: SlotRequest): false {
  const { admission, metrics, scheduleOf, onPassedOn } = options;
  const { id, uuid: uuidForOthers, attempt, maxAttempts, waitedMs, resource } = taken.delivery;
  const reason = admission.refusalOf(request) ?? "busy";
  metrics.postponed(reason);
  if (!admission.hasShareOf(request.url)) {
    if (request.isUrgent) {
      // The manual retry stays due. If it waited for a slot, it would also wait for the breaker.
      onPassedOn?.(id);
      return requeue(options, taken, 0, { uuidForOthers });
    }
    if (reason === "busy") return requeue(options, taken, undefined, { uuidForOthers });
  }
  const delayMs = urgentDelayMs(options, taken);
  if (delayMs !== undefined) return requeue(options, taken, delayMs);
  const { backoffMs } = scheduleOf(resource);
  if (reason !== "silent" || waitedMs <= longestPostponementMs({ attempt, maxAttempts, backoffMs }))
    return requeue(options, taken, undefined);
  const lastError = `Given up after ${attempt} of ${maxAttempts} attempts: ${hostOf(request.url)} has not answered anything for too long.`;
  return settle(options, taken, { status: "failed", lastError });
}

/**
 * Returns the delay of a manual retry that was refused a slot, or by its rate limit. Retries of one
 * subscription are spread out: otherwise thousands would be taken each second. Undefined for other
 * deliveries.
 */
function urgentDelayMs(
  { rates, onUrgent }: StartOptions,
  { delivery: { subscriptionId, trigger }, urgent }: JudgedDelivery,
): number | undefined {
  if (trigger !== "manual") return undefined;
  const count = urgent.get(subscriptionId) ?? 0;
  urgent.set(subscriptionId, count + 1);
  const waitMs = rates.waitMs(subscriptionId);
  const delayMs = Math.max(waitMs, urgentMs) + count * urgentGapMs;
  if (waitMs > 0 && count === 0) onUrgent?.(subscriptionId, delayMs);
  return delayMs;
}
