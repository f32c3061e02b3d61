import { Counter, Gauge, type Registry } from "prom-client";

/** The backlog of the outbox, read from the database. Counts stop at `countLimit`. */
export interface OutboxBacklog {
  /** Row ids assigned so far, including those of rolled back changes. */
  readonly captured: number;
  /** Events that are not fanned out. */
  readonly waiting: number;
  /** Age of the oldest of these events; null without any. */
  readonly oldestMs: number | null;
}

/** The unfinished deliveries, read from the database. Counts stop at `countLimit`. */
export interface DeliveryBacklog {
  /** Deliveries to attempt now, or as soon as a slot is free. */
  readonly due: number;
  /** Deliveries that dispatchers have in flight. */
  readonly inHand: number;
  /** Retries that are due later. */
  readonly scheduled: number;
  /** Deliveries of paused subscriptions and of disabled users. */
  readonly held: number;
  /** Time for which the oldest delivery has been due; null without any. */
  readonly oldestDueMs: number | null;
  /** Failed deliveries whose dead letter the broker has not confirmed. */
  readonly awaitingDeadLetter: number;
}

/**
 * Limit of the rows that a count reads, so that a scrape stays cheap with a backlog of millions.
 */
export const countLimit = 10_001;

const bound = `Counted up to ${countLimit}. The same for every process on the database: take the maximum, not the sum.`;

export function createBacklogMetrics(registry: Registry) {
  const registers = [registry];
  const captured = new Counter({
    name: "svc_events_captured_total",
    help: "Event rows numbered so far, those of changes that were rolled back included. The same for every process on the database: take the maximum, not the sum.",
    registers,
  });
  const outbox = new Gauge({
    name: "svc_outbox_events",
    help: `Events that are not fanned out. ${bound}`,
    registers,
  });
  const oldest = new Gauge({
    name: "svc_outbox_oldest_age_seconds",
    help: "Age of the oldest event that is not fanned out; 0 when there is none.",
    registers,
  });
  const deliveries = new Gauge({
    name: "svc_deliveries_waiting",
    help: `Deliveries not at their end: \`due\` now, \`in_hand\`: in flight, \`scheduled\` retries, \`held\` while the subscription is paused or its user disabled. ${bound}`,
    labelNames: ["state"] as const,
    registers,
  });
  const oldestDue = new Gauge({
    name: "svc_deliveries_oldest_due_age_seconds",
    help: "How long the oldest delivery that is due and not in flight has waited, but for those whose receiver fails or whose webhook has a rate limit; 0 when there is none.",
    registers,
  });
  const awaitingDeadLetter = new Gauge({
    name: "svc_deliveries_awaiting_dead_letter",
    help: `Failed deliveries whose dead letter the broker has not confirmed yet. ${bound}`,
    registers,
  });

  /** Removes the values, because an unknown value is not zero. */
  function forget(): void {
    captured.remove();
    outbox.remove();
    oldest.remove();
    deliveries.reset();
    oldestDue.remove();
    awaitingDeadLetter.remove();
  }
  // The values are unknown until the first read.
  forget();

  return {
    show(backlog: OutboxBacklog & DeliveryBacklog): void {
      captured.reset();
      captured.inc(backlog.captured);
      outbox.set(backlog.waiting);
      oldest.set((backlog.oldestMs ?? 0) / 1_000);
      deliveries.set({ state: "due" }, backlog.due);
      deliveries.set({ state: "in_hand" }, backlog.inHand);
      deliveries.set({ state: "scheduled" }, backlog.scheduled);
      deliveries.set({ state: "held" }, backlog.held);
      oldestDue.set((backlog.oldestDueMs ?? 0) / 1_000);
      awaitingDeadLetter.set(backlog.awaitingDeadLetter);
    },
    forget,
  };
}
