/**
 * `npm run bench`: about twelve minutes on two cores, on private servers, which it starts and
 * removes. Prints the measured part of docs/measurements.md, progress to stderr, and all results to
 * bench/results/<date>.json.
 *
 * `npm run bench -- requests deliveries` runs only those parts: requests, operations, deliveries,
 * byhand, scale, webhooks, retention, holdups, plans. `--write` puts the tables into
 * docs/measurements.md. `--from a.json --from b.json` prints earlier results of all these files
 * together, and measures nothing. BENCH_SCALE=0.2 shortens the run, to check that everything works.
 * BENCH_PLANS=1 adds the plans of 2 million events, which take ten minutes. With
 * BENCH_PROFILE_DIR=<folder>, `svc api` and `svc dispatcher` write CPU profiles there, which
 * Chrome's developer tools open; the figures of such a run are worse.
 */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { purgeQueues } from "../test/support/queues.ts";
import { measureBesideByHand } from "./beside-by-hand.ts";
import { measureDeliveries } from "./delivery-runs.ts";
import { quickSizes, type Sizes } from "./hold-ups/hold-up.ts";
import { measure, type Outcome } from "./hold-ups/measure.ts";
import { startServers } from "./hold-ups/servers.ts";
import { holdUps } from "./hold-ups/table.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { measureOperations } from "./operations.ts";
import { startPeer } from "./peer.ts";
import { measurePlans } from "./plans.ts";
import { reportOf, type Results } from "./report.ts";
import { measureRequests, type BenchContext } from "./requests.ts";
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";
import { measureScaleOut } from "./scale-out.ts";
import { poolSize, prepareSurroundings } from "./surroundings.ts";
import { measureWebhooks } from "./webhooks/measure.ts";
import { measureRetention } from "./webhooks/retention.ts";

const partNames = [
  "requests",
  "operations",
  "deliveries",
  "byhand",
  "scale",
  "webhooks",
  "retention",
  "holdups",
  "plans",
] as const;
type PartName = (typeof partNames)[number];

const page = "docs/measurements.md";
const [firstLine, lastLine] = ["<!-- npm run bench -->", "<!-- end of npm run bench -->"];

function numberOf(variable: string, otherwise: number): number {
  const number = Number(process.env[variable] ?? otherwise);
  if (number > 0 && number <= 10) return number;
  throw new Error(`${variable}: expected a number above 0, at most 10`);
}

function partsOf(given: readonly string[]): ReadonlySet<PartName> {
  const unknown = given.find((name) => !partNames.some((part) => part === name));
  if (unknown !== undefined)
    throw new Error(`There is no part ${unknown}; expected some of ${partNames.join(", ")}.`);
  return new Set(given.length === 0 ? partNames : (given as readonly PartName[]));
}

async function main(atEnd: AtEnd): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      write: { type: "boolean", default: false },
      from: { type: "string", multiple: true, default: [] },
    },
    allowPositionals: true,
  });
  const results =
    values.from.length > 0 ? readResults(values.from) : await measureParts(partsOf(positionals), atEnd);
  const report = reportOf(results);
  console.log(report);
  if (values.write) writeIntoPage(report);
  return 0;
}

/** Merges the results of several runs with different parts. */
function readResults(paths: readonly string[]): Results {
  const all = paths.map((path) => JSON.parse(readFileSync(path, "utf8")) as Results);
  return Object.assign({}, ...all) as Results;
}

async function measureParts(parts: ReadonlySet<PartName>, atEnd: AtEnd): Promise<Results> {
  const scale = numberOf("BENCH_SCALE", 1);
  const startedAt = new Date().toISOString();
  const machine = describeMachine();
  const served = partNames.slice(0, 7).some((part) => parts.has(part));
  const measured = {
    ...(served ? await measureServed(parts, scale, atEnd) : { versions: {} }),
    ...(parts.has("holdups") ? { holdUps: await measureHoldUps(scale, atEnd) } : {}),
    ...(parts.has("plans") ? { plans: await measureAllPlans(scale) } : {}),
  };
  const results: Results = {
    startedAt,
    scale,
    machine,
    settings: { poolSize, fsync: "on", synchronousCommit: "on", logLevel: "warn", connections: 16 },
    ...measured,
    versions: { ...describeVersions(), ...measured.versions },
  };
  const path = `bench/results/${startedAt.replaceAll(":", "-")}.json`;
  mkdirSync("bench/results", { recursive: true });
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  progress(`written to ${path}`);
  return results;
}

type Served = Pick<
  Results,
  | "versions"
  | "requests"
  | "operations"
  | "deliveries"
  | "besideByHand"
  | "scaleOut"
  | "webhooks"
  | "retention"
>;

/** Measures all parts that run on one pair of servers. */
async function measureServed(parts: ReadonlySet<PartName>, scale: number, atEnd: AtEnd): Promise<Served> {
  progress("starting PostgreSQL and RabbitMQ");
  const surroundings = await prepareSurroundings({ records: 10_000, atEnd });
  const generator = startPeer<LoadJob, LoadResult>("load.ts");
  atEnd(() => generator.end());
  const context: BenchContext = { surroundings, generator, scale, atEnd, progress };
  const part = async <T>(
    name: PartName,
    work: (given: BenchContext) => Promise<T>,
  ): Promise<T | undefined> => {
    if (!parts.has(name)) return undefined;
    await purgeQueues(surroundings.amqpUrl);
    return work(context);
  };
  const [requests, operations, deliveries, besideByHand, scaleOut, webhooks, retention] = [
    await part("requests", measureRequests),
    await part("operations", measureOperations),
    await part("deliveries", measureDeliveries),
    await part("byhand", measureBesideByHand),
    await part("scale", measureScaleOut),
    await part("webhooks", measureWebhooks),
    await part("retention", measureRetention),
  ];
  return {
    versions: surroundings.versions,
    ...(requests && { requests }),
    ...(operations && { operations }),
    ...(deliveries && { deliveries }),
    ...(besideByHand && { besideByHand }),
    ...(scaleOut && { scaleOut }),
    ...(webhooks && { webhooks }),
    ...(retention && { retention }),
  };
}

/** Does the same as `npm run holdups`, but shorter. */
async function measureHoldUps(scale: number, atEnd: AtEnd): Promise<readonly Outcome[]> {
  progress("starting PostgreSQL and RabbitMQ for the hold-ups");
  const makePlace = await startServers(atEnd);
  const sizes = Object.fromEntries(
    Object.entries(quickSizes).map(([name, size]) => [name, Math.round((size / 4) * scale)]),
  ) as unknown as Sizes;
  const outcomes: Outcome[] = [];
  for (const [index, holdUp] of holdUps.entries()) {
    progress(holdUp.name);
    const place = await makePlace(`held_up_${index}`);
    const durations = { calmMs: 3_000, holdMs: 6_000 * scale };
    outcomes.push(await measure(holdUp, { place, sizes, durations, atEnd }));
  }
  return outcomes;
}

async function measureAllPlans(scale: number): Promise<NonNullable<Results["plans"]>> {
  const events = Math.round(1_000_000 * numberOf("BENCH_PLANS", 0.1 * scale)) * 2;
  return { events, results: await measurePlans({ history: { events, waiting: 50_000 }, progress }) };
}

function writeIntoPage(report: string): void {
  const text = readFileSync(page, "utf8");
  const [start, end] = [text.indexOf(firstLine), text.indexOf(lastLine)];
  if (start < 0 || end < start) throw new Error(`${page}: expected the lines ${firstLine} and ${lastLine}`);
  writeFileSync(page, `${text.slice(0, start + firstLine.length)}\n\n${report}\n\n${text.slice(end)}`);
}

await runToEnd(main);
