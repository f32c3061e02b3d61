import type { Broker, IncomingMessage } from "../broker/broker.ts";
import { queues } from "../broker/topology.ts";
import type { Log } from "../telemetry/log.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import { noClaims, type Caller } from "../kit/caller.ts";
import { createAlarm, pause, type Worker } from "../kit/worker.ts";
import { hostOf, type Admission, type Candidate } from "./admission/admission.ts";
import type { Attempts, DeliveryInHand } from "./attempt/attempts.ts";
import type { Flight } from "./flights.ts";
import { deadDeliveryMessage, deadMessage, deliveryMessage, isDeliveryMessage } from "./messages.ts";
import { longestPostponementMs, type ScheduleOf } from "./attempt/schedule.ts";
import type { DeliveryStore, ParkedSubscription, Taken, TakenDelivery } from "./store.ts";

export interface Sweep extends Worker {
  /** Says that a delivery falls due in `ms`; undefined: that one waits for a slot. The next turn would find it too, only later. */
  onQueued(ms: number | undefined): void;
  /** Says that a slot has fallen free. */
  onFree(): void;
}

export interface SweepOptions {
  readonly broker: Broker;
  readonly store: DeliveryStore;
  readonly admission: Pick<Admission, "reserve" | "refusalOf">;
  readonly attempts: Pick<Attempts, "start" | "settle" | "putBack" | "drain">;
  readonly isAdminFor: (resource: string, user: Caller) => boolean;
  readonly scheduleOf: ScheduleOf;
  readonly flightMs: number;
  readonly log: Log;
  readonly metrics: Pick<DeliveryMetrics, "swept" | "deadLettered" | "postponed">;
  readonly intervalMs: number;
  /** How long the confirm of a dead letter may take. */
  readonly requeueAfterMs: number;
}

const batchSize = 200;
/** Between two turns, however many deliveries fall due one by one. */
const leastGapMs = 10;
/** A turn looks only so far behind the one before, for what was committed since: no statement that writes the queue takes longer. */
const lookBackMs = 10_000;
const wholeEveryMs = 30_000;
const orphansEveryMs = 10_000;
/** Of one subscription, from one turn. */
const mostOfOne = 100;
/** Dispatchers that are told of deliveries for which this one has no slot. */
const mostTold = 4;
/** Dead letters at once: each may be of 15 MB. */
const mostDead = 4;
/** Of all deliveries, in the order of their ids, that one look takes in. */
const strayPage = 5_000;
/** How often deliveries of receivers that answer nothing are looked at, whether they have waited for too long. */
const judgeEveryMs = 60_000;

/**
 * Takes what is due out of the queue and has it attempted: retries, what the fan-out had no slot for, and what a dead process left behind.
 * It takes no more than there are slots for, in turns over users and receivers; the rest stays in the database, where it costs the
 * others nothing.
 */
export function createSweep(options: SweepOptions): Sweep {
  const { broker, store, admission, attempts, scheduleOf, flightMs, log, metrics, intervalMs } = options;
  const alarm = createAlarm();
  let mayBeParked = true;
  let parkedAfter = 0;
  /** Whether this walk over the subscriptions has come by one that a free slot would serve. */
  let isSlotWanted = false;
  let judgedAtMs = -Infinity;
  let strayAfter: string | undefined;
  let tidiedAtMs = -Infinity;
  let orphansAtMs = -Infinity;
  let wholeAtMs = -Infinity;
  let dueAtMs = -Infinity;

  /** The rule of the fan-out, once more: a user who lost the right since then gets nothing. */
  function mayReceive(resource: string, ownerId: string | null, user: Caller): boolean {
    return ownerId === String(user.id) || options.isAdminFor(resource, user);
  }

  /** Has a delivery attempted, or puts it where it belongs. Answers whether it is attempted. */
  function place(delivery: TakenDelivery, flight: Flight): boolean {
    const { id, uuid, attempt, subscription, resource } = delivery;
    const decided = { id, uuid, attemptsBefore: attempt };
    if (subscription === null) {
      attempts.settle(
        { flight },
        { ...decided, status: "cancelled", lastError: "The subscription was deleted." },
      );
      return false;
    }
    if (!subscription.isActive) {
      attempts.putBack({ flight }, { id, delayMs: undefined });
      return false;
    }
    if (!mayReceive(resource, delivery.ownerId, { ...subscription.user, claims: noClaims })) {
      const lastError = "The subscriber may no longer see this record.";
      attempts.settle({ flight }, { ...decided, status: "cancelled", lastError });
      return false;
    }
    const candidate: Candidate = {
      userId: subscription.user.id,
      url: subscription.url,
      lane: attempt === 0 ? "first" : "retry",
      bytes: delivery.bytes,
      isUrgent: delivery.isManual && attempt === 0,
    };
    const reserved = admission.reserve(candidate);
    if (reserved === undefined) {
      const reason = admission.refusalOf(candidate) ?? "busy";
      metrics.postponed(reason);
      const { backoffMs } = scheduleOf(resource);
      if (reason === "silent" && delivery.waitedMs > longestPostponementMs({ ...delivery, backoffMs })) {
        const host = hostOf(subscription.url);
        const lastError = `Given up after ${attempt} of ${delivery.maxAttempts} attempts: ${host} has not answered anything for too long.`;
        attempts.settle({ flight }, { ...decided, status: "failed", lastError });
      } else attempts.putBack({ flight }, { id, delayMs: undefined });
      return false;
    }
    attempts.start(inHand(delivery, subscription, flight), reserved);
    return true;
  }

  /** Answers how many are attempted. */
  function placeAll({ flightId, deliveries }: Taken): number {
    if (flightId === undefined) return 0;
    const flight: Flight = { id: flightId, inHand: deliveries.length };
    return deliveries.filter((delivery) => place(delivery, flight)).length;
  }

  async function takeDue(signal: AbortSignal): Promise<void> {
    const startedAtMs = performance.now();
    const isWhole = startedAtMs - wholeAtMs > wholeEveryMs;
    const sinceMs = isWhole ? undefined : startedAtMs - dueAtMs + lookBackMs;
    let found = 0;
    let started = 0;
    for (let isMore = true; isMore && !signal.aborted;) {
      const taken = await store.takeDue({ limit: batchSize, flightMs, sinceMs });
      isMore = taken.deliveries.length === batchSize;
      found += taken.deliveries.length;
      started += placeAll(taken);
      if (isMore && started < found) tell(taken.deliveries);
    }
    dueAtMs = startedAtMs;
    if (isWhole) wholeAtMs = startedAtMs;
    if (found === 0) return;
    metrics.swept(found);
    log.info(
      { event: "sweep.turn", due: found, started, durationMs: Math.round(performance.now() - startedAtMs) },
      "sweep turn",
    );
  }

  /** Tells other dispatchers that there is more than this one has slots for. */
  function tell(deliveries: readonly TakenDelivery[]): void {
    void broker.publish(
      deliveries
        .slice(0, mostTold)
        .map((delivery) => deliveryMessage(delivery, delivery.attempt === 0 ? "first" : "retry")),
    );
  }

  async function takeParked(): Promise<void> {
    // Before the look, so that what is told in its course is not forgotten.
    mayBeParked = false;
    const found = await store.findParked({ after: parkedAfter, limit: batchSize });
    const isLast = found.length < batchSize;
    const silent = found.filter(isSilent);
    isSlotWanted ||= found.some((one) => one.isActive && !isSilent(one));
    // Of paused and silent ones alone, no slot that falls free makes a turn.
    if (isSlotWanted || !isLast) mayBeParked = true;
    if (isLast) isSlotWanted = false;
    parkedAfter = isLast ? 0 : (found.at(-1)?.subscriptionId ?? 0);
    for (const { subscriptionId, url } of found)
      if (url === null) await store.cancelOrphans({ subscriptionId, limit: batchSize });
    if (!isLast) alarm.wake();
    await judge(silent);
    const counts = shareOut(found);
    if (counts.size === 0) return;
    // From both ends: what is new does not wait behind a backlog of hours.
    const wanted = [...counts].map(([subscriptionId, count]) => ({
      subscriptionId,
      oldest: Math.ceil(count / 2),
      newest: Math.floor(count / 2),
    }));
    const taken = await store.takeParked({ wanted, flightMs });
    if (placeAll(taken) > 0) alarm.wake();
  }

  function isSilent({ url, userId, isActive }: ParkedSubscription): boolean {
    if (url === null || userId === null || !isActive) return false;
    return admission.refusalOf({ url, userId, lane: "first" }) === "silent";
  }

  /** Gives up what has waited for too long for receivers that answer nothing; the rest goes back. */
  async function judge(silent: readonly ParkedSubscription[]): Promise<void> {
    if (silent.length === 0 || performance.now() - judgedAtMs < judgeEveryMs) return;
    judgedAtMs = performance.now();
    const oldest = Math.ceil(batchSize / silent.length);
    const wanted = silent.map(({ subscriptionId }) => ({ subscriptionId, oldest, newest: 0 }));
    placeAll(await store.takeParked({ wanted, flightMs }));
  }

  /** How many deliveries of each subscription there are slots for: one for each in turn, until there are none. */
  function shareOut(found: readonly ParkedSubscription[]): ReadonlyMap<number, number> {
    const places: { readonly leave: () => void }[] = [];
    const counts = new Map<number, number>();
    let open = found.filter(({ isActive }) => isActive);
    while (open.length > 0 && places.length < batchSize)
      open = open.filter(({ subscriptionId, url, userId }) => {
        if (url === null || userId === null || places.length === batchSize) return false;
        const count = (counts.get(subscriptionId) ?? 0) + 1;
        const candidate = { userId, url, bytes: 0, isUrgent: false };
        const reserved =
          admission.reserve({ ...candidate, lane: "first" }) ??
          admission.reserve({ ...candidate, lane: "retry" });
        if (reserved === undefined) return false;
        places.push(reserved);
        counts.set(subscriptionId, count);
        return count < mostOfOne;
      });
    for (const one of places) one.leave();
    return counts;
  }

  /** A net under the others: no delivery may be forgotten, whatever went wrong. */
  async function returnStrays(): Promise<void> {
    const { last, count } = await store.returnStrays({
      after: strayAfter,
      limit: strayPage,
      olderThanMs: flightMs,
    });
    strayAfter = last;
    if (count > 0)
      log.error(
        { event: "sweep.strays", deliveries: count },
        "unfinished deliveries were neither in the queue nor in hand; they are due again",
      );
  }

  async function publishDead(): Promise<void> {
    const dead = await store.findUndeadLettered({ limit: mostDead, olderThanMs: options.requeueAfterMs });
    if (dead.length === 0) return;
    const outcomes = await broker.publish(dead.map(deadDeliveryMessage));
    const buried = dead.filter((_, index) => outcomes[index]?.kind === "confirmed");
    metrics.deadLettered("spent", buried.length);
    await store.markDeadLettered(buried.map(({ id }) => id));
  }

  /** What need not be done to the moment. */
  async function tidy(): Promise<void> {
    const now = performance.now();
    if (now - tidiedAtMs < intervalMs) return;
    tidiedAtMs = now;
    mayBeParked = true;
    const overdue = await store.endOverdueFlights(batchSize);
    if (overdue > 0)
      log.warn(
        { event: "sweep.overdue", deliveries: overdue },
        "deliveries of a process that died are due again",
      );
    await returnStrays();
    if (broker.isConnected()) await publishDead();
    if (now - orphansAtMs < orphansEveryMs) return;
    orphansAtMs = now;
    for (const subscriptionId of await store.findOrphaned(batchSize))
      while ((await store.cancelOrphans({ subscriptionId, limit: batchSize })) === batchSize)
        await pause(leastGapMs, neverAborted);
  }

  /** One turn; answers how long nothing falls due, as far as is known. */
  async function turn(signal: AbortSignal): Promise<number> {
    await tidy();
    // Asked before, so that what falls due in the course of the turn is not missed by both questions.
    const nextMs = (await store.nextDueInMs()) ?? intervalMs;
    const askedAt = performance.now();
    await takeDue(signal);
    if (mayBeParked && !signal.aborted) await takeParked();
    return Math.min(intervalMs, nextMs - (performance.now() - askedAt));
  }

  async function onMessage(message: IncomingMessage): Promise<void> {
    if (isDeliveryMessage(message)) {
      mayBeParked = true;
      alarm.wake();
      return message.ack();
    }
    const [outcome] = await broker.publish([deadMessage(message, "not a delivery")]);
    if (outcome?.kind !== "confirmed") {
      await pause(1_000, neverAborted);
      return message.requeue();
    }
    metrics.deadLettered("foreign", 1);
    message.ack();
  }

  return {
    name: "sweep",
    onQueued(ms) {
      if (ms === undefined) mayBeParked = true;
      // A later one is known to the database by the next turn.
      else if (ms < intervalMs) setTimeout(() => alarm.wake(), ms).unref();
    },
    onFree() {
      if (mayBeParked) alarm.wake();
    },
    async run(signal) {
      const consumptions = await Promise.all(
        (["first", "retry"] as const).map((lane) =>
          broker.consume({
            queue: queues[lane],
            prefetch: 20,
            onMessage: (message) => void onMessage(message),
          }),
        ),
      );
      while (!signal.aborted) {
        let waitMs = intervalMs;
        try {
          waitMs = await turn(signal);
        } catch (error) {
          log.error({ err: error }, "sweep failed; trying again");
        }
        await pause(leastGapMs, signal);
        await alarm.wait(waitMs - leastGapMs, signal);
      }
      await Promise.all(consumptions.map((consumption) => consumption.stop()));
      await attempts.drain();
    },
  };
}

const neverAborted = new AbortController().signal;

function inHand(
  delivery: TakenDelivery,
  subscription: NonNullable<TakenDelivery["subscription"]>,
  flight: Flight,
): DeliveryInHand {
  const happenedAtMs = performance.now() - delivery.eventAgeMs;
  return { ...delivery, subscription, happenedAtMs, data: undefined, flight };
}
