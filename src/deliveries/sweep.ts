import type { Broker, IncomingMessage } from "../broker/broker.ts";
import { queues } from "../broker/topology.ts";
import type { Log } from "../telemetry/log.ts";
import type { DeliveryMetrics } from "../telemetry/metrics/deliveries.ts";
import { createAlarm, pause, type Alarm, type Worker } from "../kit/worker.ts";
import type { Attempts } from "./attempt/attempts.ts";
import { deadLetterForeign } from "./foreign-messages.ts";
import { deadDeliveryMessage, isDeliveryMessage, type Announce } from "./messages.ts";
import { startTaken, type StartOptions } from "./start-taken.ts";
import type { DeliveryStore } from "./store.ts";
import { createParkedWalk, leaveNextTo, takeParked, type ParkedWalk } from "./take-parked.ts";

/** The worker that takes due deliveries, and the calls that wake it. */
export interface Sweep extends Worker {
  /**
   * Notes that a delivery is due in `ms`, or waits for a slot when undefined. Without the call, the
   * next turn finds the delivery later.
   */
  onQueued(ms: number | undefined): void;
  /** Notes that a slot is free again. */
  onFree(): void;
  /** Notes that the dispatchers' shares of the slots have changed. */
  onShares(): void;
}

export interface SweepOptions extends StartOptions {
  readonly broker: Broker;
  readonly announce: Announce;
  readonly store: DeliveryStore;
  readonly attempts: Pick<Attempts, "start" | "settle" | "putBack" | "drain">;
  readonly flightMs: number;
  readonly log: Log;
  readonly metrics: Pick<DeliveryMetrics, "swept" | "deadLettered" | "postponed">;
  readonly intervalMs: number;
  /** Limit for the confirm of a dead letter. */
  readonly requeueAfterMs: number;
  /** Longest wait of a delivery in the queue, by the schedules of all resources. */
  readonly longestWaitMs: number;
}

interface State {
  readonly options: SweepOptions;
  readonly alarm: Alarm;
  readonly walk: ParkedWalk;
  /**
   * Ids of due deliveries that only other dispatchers may attempt: this one does not take them
   * again.
   */
  readonly passedOn: Set<string>;
  /** Row id after which the next search for strays begins. */
  strayAfter: string | undefined;
  /** Row id after which the next dead letters begin. The broker may refuse some every time. */
  deadAfter: string;
  /** Dead letters that are being published. */
  publishing: Promise<void> | undefined;
  /** Ids of deleted subscriptions whose deliveries are being cancelled. */
  orphaned: readonly number[];
  /** Id of the subscription after which the next search for deleted ones begins. */
  orphansAfter: number;
  tidiedAtMs: number;
  orphansAtMs: number;
  wholeAtMs: number;
  dueAtMs: number;
}

const batchSize = 200;
/** Most batches of due deliveries in a turn: a million of them must not delay the rest of it. */
const batchesPerTurn = 20;
/** Shortest time between two turns, so that deliveries that become due one by one share a turn. */
const leastGapMs = 10;
/**
 * A turn also reads due times up to this long before the previous turn, for deliveries committed
 * since. No statement that writes the queue takes longer.
 */
const lookBackMs = 10_000;
const wholeEveryMs = 30_000;
const orphansEveryMs = 10_000;
/** Most dead letters at a time: each may be 15 MB. */
const mostDead = 4;
/** Deliveries that one search for strays reads, in the order of their ids. */
const strayPage = 5_000;
/** Subscriptions that one search for deleted ones looks up, in the order of their ids. */
const orphansPage = 1_000;

const neverAborted = new AbortController().signal;

/**
 * Creates the worker that takes due deliveries out of the queue and starts their attempts. These
 * are retries, deliveries without a slot at the fan-out, and deliveries of a dead process. It takes
 * no more than there are slots for, in turns over users and receivers. The others stay in the
 * database, where they delay nothing.
 */
export function createSweep(options: SweepOptions): Sweep {
  const { attempts, intervalMs, log } = options;
  const walk = createParkedWalk();
  const state: State = {
    options: { ...options, onUrgent: (id, ms) => leaveNextTo(walk, id, ms) },
    alarm: createAlarm(),
    walk,
    passedOn: new Set(),
    strayAfter: undefined,
    deadAfter: "0",
    publishing: undefined,
    orphaned: [],
    orphansAfter: 0,
    tidiedAtMs: -Infinity,
    orphansAtMs: -Infinity,
    wholeAtMs: -Infinity,
    dueAtMs: -Infinity,
  };
  const { alarm } = state;
  return {
    name: "sweep",
    onQueued(ms) {
      if (ms === undefined) walk.mayBeParked = true;
      // The next turn asks the database for later due times.
      else if (ms < intervalMs) setTimeout(() => alarm.wake(), ms).unref();
    },
    onFree() {
      if (walk.mayBeParked) alarm.wake();
    },
    onShares() {
      state.passedOn.clear();
      walk.mayBeParked = true;
      alarm.wake();
    },
    async run(signal) {
      const stop = await consumeMessages(state);
      while (!signal.aborted) {
        let waitMs = intervalMs;
        try {
          waitMs = await turn(state, signal);
        } catch (error) {
          log.error({ err: error }, "sweep failed; trying again");
        }
        await pause(leastGapMs, signal);
        await alarm.wait(waitMs - leastGapMs, signal);
      }
      await stop();
      await state.publishing;
      await attempts.drain();
    },
  };
}

/** Runs one turn. Returns the time in ms until the next delivery is due, as far as known. */
async function turn(state: State, signal: AbortSignal): Promise<number> {
  const { options, walk, alarm } = state;
  const { store, intervalMs } = options;
  await tidy(state);
  // Read the next due time before taking. One of the two queries then sees a delivery which becomes
  // due during this turn.
  const nextMs = (await store.nextDueInMs()) ?? intervalMs;
  const askedAt = performance.now();
  if (await takeDue(state, signal)) alarm.wake();
  const isLookDue = walk.mayBeParked || performance.now() >= walk.rateAtMs;
  if (isLookDue && !signal.aborted && (await takeParked(options, walk))) alarm.wake();
  if (!signal.aborted && (await cancelOrphans(state))) alarm.wake();
  return Math.min(intervalMs, nextMs - (performance.now() - askedAt), walk.rateAtMs - performance.now());
}

/** Takes some batches of due deliveries. Returns whether more may be due. */
async function takeDue(state: State, signal: AbortSignal): Promise<boolean> {
  const { options, passedOn } = state;
  const { store, flightMs, announce, metrics, log } = options;
  const starting = { ...options, onPassedOn: (id: string) => void passedOn.add(id) };
  const startedAtMs = performance.now();
  const isWhole = startedAtMs - state.wholeAtMs > wholeEveryMs;
  const sinceMs = isWhole ? undefined : startedAtMs - state.dueAtMs + lookBackMs;
  let found = 0;
  let started = 0;
  let hasMore = true;
  for (let batch = 0; hasMore && batch < batchesPerTurn && !signal.aborted; batch += 1) {
    const taken = await store.takeDue({ limit: batchSize, flightMs, sinceMs, except: passedOn });
    // When deliveries are due at the same time, both ends may take the same ones.
    hasMore = taken.removed >= batchSize / 2;
    found += taken.deliveries.length;
    started += (await startTaken(starting, taken)).started;
    // More deliveries are due than this dispatcher has slots for.
    if (hasMore && started < found) announce(taken.deliveries, "retry");
  }
  // The next turn reads from the same due time on.
  if (!hasMore) state.dueAtMs = startedAtMs;
  if (!hasMore && isWhole) state.wholeAtMs = startedAtMs;
  if (found === 0) return hasMore;
  metrics.swept(found);
  log.info(
    { event: "sweep.turn", due: found, started, durationMs: Math.round(performance.now() - startedAtMs) },
    "sweep turn",
  );
  return hasMore;
}

/** Does the work that can wait: at most once per `intervalMs`. */
async function tidy(state: State): Promise<void> {
  const { store, broker, intervalMs, flightMs, log } = state.options;
  const now = performance.now();
  if (now - state.tidiedAtMs < intervalMs) return;
  state.tidiedAtMs = now;
  state.passedOn.clear();
  state.walk.mayBeParked = true;
  const overdue = await store.endOverdueFlights({ limit: batchSize, flightMs });
  if (overdue > 0)
    log.warn(
      { event: "sweep.overdue", deliveries: overdue },
      "deliveries of a process that died, or of a commit without an answer, are due again",
    );
  await returnStrays(state);
  await returnFar(state);
  if (broker.isConnected()) startDeadLetters(state);
  if (state.orphaned.length > 0 || now - state.orphansAtMs < orphansEveryMs) return;
  const { ids, last } = await store.findOrphaned({ after: state.orphansAfter, limit: orphansPage });
  state.orphaned = ids;
  state.orphansAfter = last ?? 0;
  if (last === undefined) state.orphansAtMs = now;
}

/**
 * Cancels one portion of the deliveries of a deleted subscription. A million of them must not delay
 * the others. Returns whether more may be left.
 */
async function cancelOrphans(state: State): Promise<boolean> {
  const [subscriptionId] = state.orphaned;
  if (subscriptionId === undefined) return false;
  const count = await state.options.store.cancelOrphans({ subscriptionId, limit: batchSize });
  if (count < batchSize) state.orphaned = state.orphaned.slice(1);
  return state.orphaned.length > 0;
}

/** Makes forgotten deliveries due: a safety net under the queue and the flights. */
async function returnStrays(state: State): Promise<void> {
  const { store, flightMs, log } = state.options;
  const { last, count } = await store.returnStrays({
    after: state.strayAfter,
    limit: strayPage,
    olderThanMs: flightMs,
  });
  state.strayAfter = last;
  if (count > 0)
    log.error(
      { event: "sweep.strays", deliveries: count },
      "unfinished deliveries were neither in the queue nor in flight; they are due again",
    );
}

/** Makes deliveries due whose time is out of reach, because the database's clock was set back. */
async function returnFar({ options }: State): Promise<void> {
  const { store, longestWaitMs, log } = options;
  const count = await store.returnFar({ longestWaitMs, limit: batchSize });
  if (count > 0)
    log.warn(
      { event: "sweep.far", deliveries: count },
      "deliveries waited for longer than any schedule says, as after a clock that was set back; they are due now",
    );
}

/**
 * Publishes dead letters without waiting, because the broker may leave each unconfirmed for 10 s.
 */
function startDeadLetters(state: State): void {
  state.publishing ??= publishDeadLetters(state)
    .catch((error: unknown) =>
      state.options.log.error({ err: error }, "dead letters not published; trying again"),
    )
    .finally(() => {
      state.publishing = undefined;
    });
}

async function publishDeadLetters(state: State): Promise<void> {
  const { store, broker, metrics, requeueAfterMs: olderThanMs } = state.options;
  const dead = await store.findUndeadLettered({ after: state.deadAfter, limit: mostDead, olderThanMs });
  state.deadAfter = (dead.length === mostDead ? dead.at(-1)?.id : undefined) ?? "0";
  if (dead.length === 0) return;
  const whole = dead.flatMap(({ data, ...one }) => (data === null ? [] : [{ ...one, data }]));
  const outcomes = await broker.publish(whole.map(deadDeliveryMessage));
  const confirmed = whole.filter((_, index) => outcomes[index]?.kind === "confirmed");
  metrics.deadLettered("spent", confirmed.length);
  // An erased record has nothing to publish, and its deliveries would delay the others.
  const erased = dead.filter(({ data }) => data === null);
  await store.markDeadLettered([...confirmed, ...erased].map(({ id }) => id));
}

/** Consumes the messages that announce deliveries. Returns the function that stops it. */
async function consumeMessages(state: State): Promise<() => Promise<unknown>> {
  const { broker } = state.options;
  const consumptions = await Promise.all(
    (["first", "retry"] as const).map((lane) =>
      broker.consume({
        queue: queues[lane],
        prefetch: 20,
        onMessage: (message) => void onMessage(state, message),
      }),
    ),
  );
  return () => Promise.all(consumptions.map((consumption) => consumption.stop()));
}

async function onMessage({ options, walk, alarm }: State, message: IncomingMessage): Promise<void> {
  if (!isDeliveryMessage(message))
    return deadLetterForeign(options, [message], { reason: "not a delivery", signal: neverAborted });
  walk.mayBeParked = true;
  alarm.wake();
  message.ack();
}
