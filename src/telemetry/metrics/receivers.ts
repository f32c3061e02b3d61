import type { Registry } from "prom-client";
import { addLiveGauges } from "./live-gauge.ts";

/**
 * Receivers that get no attempts for now (open), and receivers on which one attempt decides (half
 * open).
 */
export interface BreakerCounts {
  readonly open: number;
  readonly halfOpen: number;
}

export function createReceiverMetrics(registry: Registry) {
  let counts: (() => BreakerCounts) | undefined;
  addLiveGauges({
    registry,
    name: "svc_receiver_breakers",
    // The receiver is no label, since the number of receivers has no limit.
    help: "Receivers whose breaker is `open` (no attempts for now) or `half_open` (one attempt decides).",
    read() {
      const { open, halfOpen } = counts?.() ?? { open: 0, halfOpen: 0 };
      return { open, half_open: halfOpen };
    },
  });
  return {
    /** Sets the function that returns the counts at each scrape. A reload replaces it. */
    watchBreakers(ask: () => BreakerCounts): void {
      counts = ask;
    },
  };
}
