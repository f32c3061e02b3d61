import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createBacklogMetrics, type BacklogMetrics } from "./metrics/backlog.ts";
import { createBrokerMetrics, type BrokerMetrics } from "./metrics/broker.ts";
import { createConfigurationMetrics, type ConfigurationMetrics } from "./metrics/configuration.ts";
import { createDeliveryMetrics, type DeliveryMetrics } from "./metrics/deliveries.ts";
import { createEventMetrics, type EventMetrics } from "./metrics/events.ts";
import { createHttpMetrics, type HttpMetrics } from "./metrics/http.ts";
import { createPoolMetrics, type PoolMetrics } from "./metrics/pool.ts";
import { createQueryingMetrics, type QueryingMetrics } from "./metrics/querying.ts";
import { createReceiverMetrics, type ReceiverMetrics } from "./metrics/receivers.ts";
import { createScraper, type Source } from "./metrics/scrape.ts";

/**
 * Everything that one process counts, each part for whoever does the counting. Labels come from closed sets: never an id, a URL or
 * a text that a client or a receiver chose.
 */
export interface Metrics {
  readonly http: HttpMetrics;
  readonly events: EventMetrics;
  readonly deliveries: DeliveryMetrics;
  readonly receivers: ReceiverMetrics;
  readonly configuration: ConfigurationMetrics;
  readonly backlog: BacklogMetrics;
  readonly broker: BrokerMetrics;
  readonly pool: PoolMetrics;
  readonly querying: QueryingMetrics;
  /** Numbers that must be fetched before a scrape can show them. */
  addSource(source: Source): void;
  /** Says what runs, and adds the numbers of the process: once in a process, for they cannot be taken back. */
  describeProcess(build: { readonly version: string; readonly program: string }): void;
  /** In the text format of Prometheus. Bounded in time; rejects only for a fault of the service. */
  scrape(): Promise<string>;
  /** Of what `scrape` gives. */
  readonly contentType: string;
}

/** Makes the metrics of one process, on a registry of their own. */
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
    pool: createPoolMetrics(registry),
    querying: createQueryingMetrics(registry),
    addSource: (source) => scraper.add(source),
    describeProcess({ version, program }) {
      build.set({ version, program }, 1);
      // Under their usual names (`process_*`, `nodejs_*`), so that ready-made dashboards find them.
      collectDefaultMetrics({ register: registry });
    },
    scrape: () => scraper.scrape(),
    contentType: registry.contentType,
  };
}
