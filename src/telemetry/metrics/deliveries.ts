import { Counter, Histogram, type Registry } from "prom-client";
import { addLiveGauge } from "./live-gauge.ts";

/**
 * The end of an attempt: its outcome for the delivery, and the kind of error (`none` without one).
 */
interface EndedAttempt {
  readonly outcome: "delivered" | "retry" | "failed";
  readonly error: string;
  readonly durationMs: number;
  /** Number of the attempt; 1 for the first POST. */
  readonly attempt: number;
  /**
   * Time from the event to the end of the attempt. Undefined for a delivery whose delay depends on
   * its user.
   */
  readonly lagMs: number | undefined;
}

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>;

/** Buckets in seconds, from a receiver nearby to one that was down for days. */
const lagBuckets = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3_600, 14_400, 43_200, 86_400,
  259_200, 604_800,
];

export function createDeliveryMetrics(registry: Registry) {
  const registers = [registry];
  const attempts = new Counter({
    name: "svc_delivery_attempts_total",
    help: "POSTs by the delivery's next status and by their error; `none` is a 2xx answer, `http` any other.",
    labelNames: ["outcome", "error"] as const,
    registers,
  });
  const durations = new Histogram({
    name: "svc_delivery_attempt_duration_seconds",
    help: "One POST: DNS, connect, TLS, response head and body.",
    labelNames: ["outcome"] as const,
    buckets: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60],
    registers,
  });
  const lags = new Histogram({
    name: "svc_delivery_lag_seconds",
    help: "From the record's change to the 2xx answer of the receiver, by whether it was the first attempt. Left out is what its user delays: manual retries, replays, what was held, and webhooks with a rate limit.",
    labelNames: ["attempt"] as const,
    buckets: lagBuckets,
    registers,
  });
  const attemptStarted = countInFlight(registry);
  const failed = new Counter({
    name: "svc_deliveries_failed_total",
    help: "Deliveries whose attempts are spent.",
    registers,
  });
  const deadLettered = new Counter({
    name: "svc_dead_letters_total",
    help: "Messages published to svc.dead: `spent` deliveries, and those `foreign` to every consumer.",
    labelNames: ["reason"] as const,
    registers,
  });
  const swept = new Counter({
    name: "svc_deliveries_swept_total",
    help: "Deliveries that the sweep took out of the queue because they were due: retries, and those that a dead process left behind.",
    registers,
  });
  const postponed = new Counter({
    name: "svc_deliveries_postponed_total",
    help: "Times that a due delivery had to wait: its receiver was `busy` with as many attempts as it may have, or `silent`, a `rate` limit let no more begin, or it was `unsigned`, since the process has no key that opens the secret of its webhook.",
    labelNames: ["reason"] as const,
    registers,
  });
  attempts.inc({ outcome: "delivered", error: "none" }, 0);
  for (const reason of ["busy", "silent", "rate", "unsigned"]) postponed.inc({ reason }, 0);
  for (const reason of ["spent", "foreign"]) deadLettered.inc({ reason }, 0);
  for (const attempt of ["first", "later"]) lags.zero({ attempt });
  return {
    /** Counts a POST that starts. Returns the function to call at its end. */
    attemptStarted,
    attempted({ outcome, error, durationMs, attempt, lagMs }: EndedAttempt): void {
      attempts.inc({ outcome, error });
      durations.observe({ outcome }, durationMs / 1_000);
      if (outcome === "delivered" && lagMs !== undefined)
        lags.observe({ attempt: attempt === 1 ? "first" : "later" }, Math.max(0, lagMs) / 1_000);
    },
    /**
     * Counts a due delivery that has to wait. Its receiver is `busy` with others, or `silent`, or
     * the subscription has reached its `rate`. An `unsigned` one has no key in this process.
     */
    postponed: (reason: "busy" | "silent" | "rate" | "unsigned") => postponed.inc({ reason }),
    /** Counts a delivery without further attempts, once that is stored. */
    failed: () => failed.inc(),
    /**
     * Counts dead letters that the broker confirmed: `spent` deliveries, or messages `foreign` to
     * the consumers.
     */
    deadLettered: (reason: "spent" | "foreign", count: number) => deadLettered.inc({ reason }, count),
    /** Counts due deliveries that the sweep took from the queue. */
    swept: (count: number) => swept.inc(count),
  };
}

function countInFlight(registry: Registry): () => () => void {
  let inFlight = 0;
  addLiveGauge({
    registry,
    name: "svc_delivery_attempts_in_flight",
    help: "POSTs begun and not ended yet.",
    read: () => inFlight,
  });
  const end = (): void => {
    inFlight -= 1;
  };
  return () => {
    inFlight += 1;
    return end;
  };
}
