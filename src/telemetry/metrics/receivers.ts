import type { Registry } from "prom-client";
import { addLiveGauges } from "./live-gauge.ts";

/** Receivers that get no attempts for now, and those that one attempt decides on. */
export interface BreakerCounts {
  readonly open: number;
  readonly halfOpen: number;
}

export interface ReceiverMetrics {
  /** Where the numbers are asked for, at each scrape. */
  watchBreakers(counts: () => BreakerCounts): void;
}

export function createReceiverMetrics(registry: Registry): ReceiverMetrics {
  let counts: (() => BreakerCounts) | undefined;
  addLiveGauges({
    registry,
    name: "svc_receiver_breakers",
    // Receivers themselves are no label: there is no bound to their number.
    help: "Receivers whose breaker is `open` (no attempts for now) or `half_open` (one attempt decides).",
    label: "state",
    read() {
      const { open, halfOpen } = counts?.() ?? { open: 0, halfOpen: 0 };
      return { open, half_open: halfOpen };
    },
  });
  return {
    watchBreakers(ask) {
      counts = ask;
    },
  };
}
