import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createBacklogMetrics, type BacklogMetrics } from "./metrics/backlog-gauges.ts";
import { createBrokerMetrics, type BrokerMetrics } from "./metrics/broker-gauges.ts";
import { createConfigurationMetrics, type ConfigurationMetrics } from "./metrics/configuration.ts";
import { createDeliveryMetrics, type DeliveryMetrics } from "./metrics/deliveries.ts";
import { createEventMetrics, type EventMetrics } from "./metrics/events.ts";
import { createHttpMetrics, type HttpMetrics } from "./metrics/http.ts";
import { addPoolGauges, type PoolUse } from "./metrics/pool.ts";
import { createQueryingMetrics, type QueryingMetrics } from "./metrics/querying.ts";
import { createReceiverMetrics, type ReceiverMetrics } from "./metrics/receivers.ts";
import { createScraper, type Source } from "./metrics/scrape.ts";

/**
 * All metrics of one process, with a part for each folder that counts. Labels have few known
 * values: never an id, a URL or a text of a client or a receiver.
 */
export interface Metrics {
  readonly http: HttpMetrics;
  readonly events: EventMetrics;
  readonly deliveries: DeliveryMetrics;
  readonly receivers: ReceiverMetrics;
  readonly configuration: ConfigurationMetrics;
  readonly backlog: BacklogMetrics;
  readonly broker: BrokerMetrics;
  readonly querying: QueryingMetrics;
  /** Adds the gauges of the database connections: once, when the pool is open. */
  addPool(use: () => PoolUse): void;
  /** Adds numbers that a scrape must fetch before it can show them. */
  addSource(source: Source): void;
  /**
   * Sets the build information and adds the metrics of the process. Call it once, because they
   * cannot be removed.
   */
  describeProcess(build: { readonly version: string; readonly program: string }): void;
  /**
   * Returns the metrics in the text format of Prometheus. Takes limited time; rejects only for a
   * fault of the service.
   */
  scrape(): Promise<string>;
  /** The content type of the result of `scrape`. */
  readonly contentType: string;
}

/** Creates the metrics of one process, with a registry of their own. */
export function createMetrics(): Metrics {
  const registry = new Registry();
  const build = new Gauge({
    name: "svc_build_info",
    help: "Always 1: which version and which program this is.",
    labelNames: ["version", "program"] as const,
    registers: [registry],
  });
  const scraper = createScraper({ registry });
  return {
    http: createHttpMetrics(registry),
    events: createEventMetrics(registry),
    deliveries: createDeliveryMetrics(registry),
    receivers: createReceiverMetrics(registry),
    configuration: createConfigurationMetrics(registry),
    backlog: createBacklogMetrics(registry),
    broker: createBrokerMetrics(registry),
    querying: createQueryingMetrics(registry),
    addPool: (use) => addPoolGauges(registry, use),
    addSource: (source) => scraper.add(source),
    describeProcess({ version, program }) {
      build.set({ version, program }, 1);
      // Uses the standard names (`process_*`, `nodejs_*`), so that ready-made dashboards find them.
      collectDefaultMetrics({ register: registry });
    },
    scrape: () => scraper.scrape(),
    contentType: registry.contentType,
  };
}
