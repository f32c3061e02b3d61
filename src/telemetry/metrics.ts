import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createBacklogMetrics } from "./metrics/backlog-gauges.ts";
import { createBrokerMetrics } from "./metrics/broker-gauges.ts";
import { createConfigurationMetrics } from "./metrics/configuration.ts";
import { createDeliveryMetrics } from "./metrics/deliveries.ts";
import { createEventMetrics } from "./metrics/events.ts";
import { createHttpMetrics } from "./metrics/http.ts";
import { addPoolGauges, type PoolUse } from "./metrics/pool.ts";
import { createQueryingMetrics } from "./metrics/querying.ts";
import { createReceiverMetrics } from "./metrics/receivers.ts";
import { createScraper, type Source } from "./metrics/scrape.ts";

export type Metrics = ReturnType<typeof createMetrics>;

/**
 * Creates all metrics of one process, with a registry of their own, and a part for each folder that
 * counts. Labels have few known values: never an id, a URL or a text of a client or a receiver.
 */
export function createMetrics() {
  const registry = new Registry();
  const build = new Gauge({
    name: "svc_build_info",
    help: "Always 1: which version and which program this is.",
    labelNames: ["version", "program"] as const,
    registers: [registry],
  });
  const scraper = createScraper({ registry });
  const contentType: string = registry.contentType;
  return {
    http: createHttpMetrics(registry),
    events: createEventMetrics(registry),
    deliveries: createDeliveryMetrics(registry),
    receivers: createReceiverMetrics(registry),
    configuration: createConfigurationMetrics(registry),
    backlog: createBacklogMetrics(registry),
    broker: createBrokerMetrics(registry),
    querying: createQueryingMetrics(registry),
    /** Adds the gauges of the database connections: once, when the pool is open. */
    addPool: (use: () => PoolUse) => addPoolGauges(registry, use),
    /** Adds numbers that a scrape must fetch before it can show them. */
    addSource: (source: Source) => scraper.add(source),
    /**
     * Sets the build information and adds the metrics of the process. Call it once, because they
     * cannot be removed.
     */
    describeProcess({ version, program }: { readonly version: string; readonly program: string }): void {
      build.set({ version, program }, 1);
      // Uses the standard names (`process_*`, `nodejs_*`), so that ready-made dashboards find them.
      collectDefaultMetrics({ register: registry });
    },
    /**
     * Returns the metrics in the text format of Prometheus. Takes limited time; rejects only for a
     * fault of the service.
     */
    scrape: () => scraper.scrape(),
    /** The content type of the result of `scrape`. */
    contentType,
  } as const;
}
