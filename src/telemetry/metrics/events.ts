import { Counter, type Registry } from "prom-client";

/** Metrics of events from the outbox to the deliveries. */
export type EventMetrics = ReturnType<typeof createEventMetrics>;

export function createEventMetrics(registry: Registry) {
  const registers = [registry];
  const published = new Counter({
    name: "svc_events_published_total",
    help: "Events that the broker has confirmed; one published again counts again.",
    labelNames: ["resource", "trigger"] as const,
    registers,
  });
  const postponed = new Counter({
    name: "svc_events_postponed_total",
    help: "Times that an event stayed in the outbox: `refused` by the resource's transform, or `unconfirmed` by the broker.",
    labelNames: ["reason"] as const,
    registers,
  });
  const republished = new Counter({
    name: "svc_events_republished_total",
    help: "Events taken out of the outbox again, since the broker had confirmed them and they were not fanned out in time.",
    registers,
  });
  const fannedOut = new Counter({
    name: "svc_events_fanned_out_total",
    help: "Events whose deliveries were written, those without a subscriber included.",
    registers,
  });
  const created = new Counter({
    name: "svc_deliveries_created_total",
    help: "Deliveries that the fan-out has written.",
    registers,
  });
  for (const reason of ["refused", "unconfirmed"]) postponed.inc({ reason }, 0);
  return {
    /**
     * Counts an event that the broker confirmed. Its resource is in the mapping files, because
     * others cannot be presented.
     */
    published: ({ resource, trigger }: { readonly resource: string; readonly trigger: string }) =>
      published.inc({ resource, trigger }),
    /**
     * Counts events that stay in the outbox for now: `refused` by the transform, or `unconfirmed`
     * by the broker.
     */
    postponed: (reason: "refused" | "unconfirmed", count: number) => postponed.inc({ reason }, count),
    /** Counts events that the broker confirmed and that no dispatcher fanned out in time. */
    republished: (count: number) => republished.inc(count),
    fannedOut({ events, deliveries }: { readonly events: number; readonly deliveries: number }): void {
      fannedOut.inc(events);
      created.inc(deliveries);
    },
  };
}
