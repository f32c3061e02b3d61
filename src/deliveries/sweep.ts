import type { Broker } from "../broker/broker.ts";
import { queues } from "../broker/topology.ts";
import { idsForLog, type Log } from "../log.ts";
import type { DeliveryMetrics } from "../metrics/deliveries.ts";
import { createAlarm, pause, type Worker } from "../worker.ts";
import { deadDeliveryMessage, deliveryMessage } from "./messages.ts";
import type { DeliveryStore } from "./store.ts";

export interface Sweep extends Worker {
  /** Says that a delivery falls due in `ms`; the next turn would find it too, only later. */
  wakeIn(ms: number): void;
}

export interface SweepOptions {
  readonly broker: Broker;
  readonly store: DeliveryStore;
  readonly log: Log;
  readonly metrics: Pick<DeliveryMetrics, "swept" | "deadLettered">;
  readonly intervalMs: number;
  readonly requeueAfterMs: number;
}

const batchSize = 500;
// What waits in PostgreSQL can be listed and cancelled, and costs the broker nothing: the lanes are kept short.
const mostQueued = 2_000;
/** Between two turns, however many deliveries fall due one by one. */
const leastGapMs = 25;

/**
 * The retry clock: publishes deliveries that are due, and those that a lost message or a dead process left behind.
 * With it, losing every message in the broker loses no retry.
 */
export function createSweep({
  broker,
  store,
  log,
  metrics,
  intervalMs,
  requeueAfterMs,
}: SweepOptions): Sweep {
  const alarm = createAlarm();
  let tidiedAt = -intervalMs;

  async function publishDue(): Promise<number> {
    const depths = await Promise.all([broker.depth(queues.first), broker.depth(queues.retry)]);
    // While the lanes are long, a delivery without an answer is most likely still in them.
    const room = mostQueued - Math.max(...depths);
    if (room <= 0) return 0;
    const startedAt = performance.now();
    const due = await store.claimDue({ limit: Math.min(batchSize, room), queuedForMs: requeueAfterMs });
    if (due.length === 0) return 0;
    const outcomes = await broker.publish(
      due.map((delivery) => deliveryMessage(delivery, delivery.attempt === 0 ? "first" : "retry")),
    );
    const unconfirmed = due.filter((_, index) => outcomes[index]?.kind !== "confirmed").map(({ id }) => id);
    if (unconfirmed.length > 0) await store.unqueue(unconfirmed);
    metrics.swept(due.length - unconfirmed.length);
    log.info(
      {
        event: "sweep.turn",
        due: due.length,
        unconfirmed: unconfirmed.length,
        deliveries: idsForLog(due.map(({ uuid }) => uuid)),
        durationMs: Math.round(performance.now() - startedAt),
      },
      "sweep turn",
    );
    return unconfirmed.length > 0 ? 0 : due.length;
  }

  async function publishDead(): Promise<void> {
    const dead = await store.findUndeadLettered({ limit: batchSize, olderThanMs: requeueAfterMs });
    if (dead.length === 0) return;
    const outcomes = await broker.publish(dead.map(deadDeliveryMessage));
    const buried = dead.filter((_, index) => outcomes[index]?.kind === "confirmed");
    metrics.deadLettered("spent", buried.length);
    await store.markDeadLettered(buried.map(({ id }) => id));
  }

  /** What need not be done to the moment. */
  async function tidy(): Promise<void> {
    if (performance.now() - tidiedAt < intervalMs) return;
    tidiedAt = performance.now();
    await store.releaseHeld();
    await publishDead();
  }

  /** One turn; answers how long nothing falls due, as far as is known. */
  async function turn(signal: AbortSignal): Promise<number> {
    if (!broker.isConnected()) return intervalMs;
    await tidy();
    // Asked before, so that what falls due in the course of the turn is not missed by both questions.
    const nextMs = (await store.nextDueInMs()) ?? intervalMs;
    const askedAt = performance.now();
    while ((await publishDue()) === batchSize && !signal.aborted);
    return Math.min(intervalMs, nextMs - (performance.now() - askedAt));
  }

  return {
    name: "sweep",
    wakeIn(ms) {
      // A later one is known to the database by the next turn.
      if (ms < intervalMs) setTimeout(() => alarm.wake(), ms).unref();
    },
    async run(signal) {
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
    },
  };
}
