import { expect } from "chai";
import { Gauge, Registry } from "prom-client";
import { createScraper, type Scraper } from "../../../src/telemetry/metrics/scrape.ts";
import { parseMetrics, valueOf } from "../../support/exposition.ts";

describe("createScraper", () => {
  let registry: Registry;
  let scraper: Scraper;
  let nowMs: number;
  let reads: number;
  /** Answers a query to the source. */
  let answer: () => Promise<number>;

  beforeEach(() => {
    registry = new Registry();
    nowMs = 0;
    reads = 0;
    answer = () => Promise.resolve(7);
    const gauge = new Gauge({ name: "waiting", help: "How many wait.", registers: [registry] });
    scraper = createScraper({ registry, freshForMs: 5_000, limitMs: 30, now: () => nowMs });
    scraper.add({
      name: "database",
      async read() {
        reads += 1;
        gauge.set(await answer());
      },
      forget: () => gauge.remove(),
    });
  });

  async function scrape(): Promise<{
    readonly waiting: number | undefined;
    readonly success: number | undefined;
  }> {
    const metrics = parseMetrics(await scraper.scrape());
    return {
      waiting: valueOf(metrics, "waiting"),
      success: valueOf(metrics, "svc_scrape_source_success", { source: "database" }),
    };
  }

  it("queries its sources and shows their answers", async () => {
    expect(await scrape()).to.deep.equal({ waiting: 7, success: 1 });
  });

  it("shows 0 for each source that a process has not added yet", async () => {
    const metrics = parseMetrics(await scraper.scrape());

    expect(valueOf(metrics, "svc_scrape_source_success", { source: "broker" })).to.equal(0);
  });

  it("leaves out missing values, old ones too, and logs that", async () => {
    await scrape();
    nowMs += 5_000;
    answer = () => Promise.reject(new Error("away"));

    expect(await scrape()).to.deep.equal({ waiting: undefined, success: 0 });
  });

  it("answers within its limit while a source hangs, and queries it once", async () => {
    let release: ((value: number) => void) | undefined;
    answer = () => new Promise((settle) => (release = settle));

    expect(await scrape()).to.deep.equal({ waiting: undefined, success: 0 });
    expect(await scrape()).to.deep.equal({ waiting: undefined, success: 0 });
    expect(reads).to.equal(1);

    release?.(8);
    await new Promise((settle) => setImmediate(settle));
    expect(await scrape()).to.deep.equal({ waiting: 8, success: 1 });
    expect(reads).to.equal(1);
  });

  it("shows numbers for a while before it reads them again", async () => {
    await scrape();
    nowMs += 4_999;
    await scrape();
    expect(reads).to.equal(1);

    nowMs += 1;
    await scrape();
    expect(reads).to.equal(2);
  });

  it("queries a slow source less often: it runs for a twentieth of the time", async () => {
    answer = async () => {
      nowMs += 1_000;
      return 7;
    };
    await scrape();

    nowMs += 19_999;
    await scrape();
    expect(reads).to.equal(1);

    nowMs += 1;
    await scrape();
    expect(reads).to.equal(2);
  });
});
