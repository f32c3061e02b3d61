import { Gauge, type Registry } from "prom-client";
import { endsWithin } from "../../kit/worker.ts";

/** Names of the sources of a process. It adds them once it has reached its servers. */
const sourceNames = ["database", "broker"] as const;

/** Numbers that a scrape must fetch before it can show them. */
export interface Source {
  readonly name: (typeof sourceNames)[number];
  /** Fetches the numbers and sets the gauges. */
  read(): Promise<void>;
  /** Removes the outdated values of the gauges. */
  forget(): void;
}

/** Collector of the numbers of all sources for a scrape. */
export interface Scraper {
  add(source: Source): void;
  /**
   * Returns the text of all metrics. Leaves out sources that fail or take longer than their limit.
   */
  scrape(): Promise<string>;
}

/**
 * Limit of the share of time that a source spends on scrapes: the numbers of a slow source are
 * shown for longer.
 */
const mostLoad = 1 / 20;

/**
 * Creates a scraper.
 *
 * @param freshForMs Minimum time for which numbers are shown before they are fetched again. Several
 *   scrapers therefore cost no more than one.
 * @param limitMs Limit of the wait of a scrape for a source.
 */
export function createScraper({
  registry,
  freshForMs = 5_000,
  limitMs = 2_000,
  now = () => performance.now(),
}: {
  readonly registry: Registry;
  readonly freshForMs?: number;
  readonly limitMs?: number;
  readonly now?: () => number;
}): Scraper {
  const success = new Gauge({
    name: "svc_scrape_source_success",
    help: "1 when the numbers of a source were read, 0 when they are left out.",
    labelNames: ["source"] as const,
    registers: [registry],
  });
  const duration = new Gauge({
    name: "svc_scrape_source_duration_seconds",
    help: "How long the last answer of a source took.",
    labelNames: ["source"] as const,
    registers: [registry],
  });
  // Sets an initial value, because an alert on 0 does not fire without a value. Otherwise, a
  // process that waits for its servers would have none.
  for (const source of sourceNames) success.set({ source }, 0);
  const refreshers: (() => Promise<void>)[] = [];

  function refresherOf(source: Source): () => Promise<void> {
    const name = { source: source.name };
    let freshUntil = -Infinity;
    let underWay: Promise<void> | undefined;

    /**
     * Runs one read at a time, even if the previous one hangs, because scrapes must not use up the
     * pool.
     */
    async function read(): Promise<void> {
      const startedAt = now();
      try {
        await source.read();
        const tookMs = now() - startedAt;
        freshUntil = now() + Math.max(freshForMs, tookMs / mostLoad);
        duration.set(name, tookMs / 1_000);
        success.set(name, 1);
      } catch {
        // The owner of the source logs the reason; the gauge only shows the failure.
        fail();
      } finally {
        underWay = undefined;
      }
    }
    function fail(): void {
      source.forget();
      success.set(name, 0);
    }

    return async () => {
      if (now() < freshUntil) return;
      underWay ??= read();
      if (!(await endsWithin(limitMs, underWay))) fail();
    };
  }

  return {
    add: (source) => void refreshers.push(refresherOf(source)),
    async scrape() {
      await Promise.all(refreshers.map((refresh) => refresh()));
      return registry.metrics();
    },
  };
}
