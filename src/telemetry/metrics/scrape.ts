import { Gauge, type Registry } from "prom-client";
import { endsWithin } from "../../kit/worker.ts";

/** A part whose numbers must be fetched from elsewhere before they can be shown. */
export interface Source {
  readonly name: string;
  /** Fetches the numbers and sets the gauges. */
  read(): Promise<void>;
  /** Takes the gauges' values away, since they can no longer be believed. */
  forget(): void;
}

export interface Scraper {
  add(source: Source): void;
  /** The text of all metrics. Sources that fail or take too long are left out of it; it never waits longer than their limit. */
  scrape(): Promise<string>;
}

/** Share of the time that a source may be at work for scrapes: slow answers are shown for longer. */
const mostLoad = 1 / 20;

/**
 * @param freshForMs How long numbers are shown at least before they are fetched again: several scrapers cost no more than one.
 * @param limitMs How long a scrape waits for a source.
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
    help: "Whether the numbers of a source could be had: 1, or 0 and they are left out.",
    labelNames: ["source"] as const,
    registers: [registry],
  });
  const duration = new Gauge({
    name: "svc_scrape_source_duration_seconds",
    help: "How long the last answer of a source took.",
    labelNames: ["source"] as const,
    registers: [registry],
  });
  const refreshers: (() => Promise<void>)[] = [];

  function refresherOf(source: Source): () => Promise<void> {
    const name = { source: source.name };
    let freshUntil = -Infinity;
    let underWay: Promise<void> | undefined;

    /** One question at a time, also when the one before it hangs: scrapes must not use up the pool. */
    async function read(): Promise<void> {
      const startedAt = now();
      try {
        await source.read();
        const tookMs = now() - startedAt;
        freshUntil = now() + Math.max(freshForMs, tookMs / mostLoad);
        duration.set(name, tookMs / 1_000);
        success.set(name, 1);
      } catch {
        // The part at work with the source logs what is wrong with it; here it is shown.
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
