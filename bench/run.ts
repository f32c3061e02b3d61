/**
 * `npm run bench`: about five minutes on two cores, on servers of its own, which it starts and removes. Tables go to
 * stdout, progress to stderr, everything measured to bench/results/<date>.json.
 *
 * BENCH_SCALE=0.2 shortens it, for a look whether all works. BENCH_ONLY=deliveries leaves the requests out. BENCH_PROFILE_DIR=<folder> has `svc api` and `svc dispatcher` write
 * CPU profiles there, which Chrome's developer tools open; the figures of such a run are worse.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { purgeQueues } from "../test/support/queues.ts";
import { measureRequests } from "./requests.ts";
import { measureDeliveries } from "./delivery-runs.ts";
import { describeMachine, describeVersions } from "./machine.ts";
import { startPeer } from "./peer.ts";
import { deliveryReport, reportOf, type Results } from "./report.ts";
import type { LoadJob, LoadResult } from "./load.ts";
import { poolSize, prepareSurroundings } from "./surroundings.ts";

const releases: (() => Promise<void> | void)[] = [];

async function release(): Promise<void> {
  while (releases.length > 0) {
    try {
      await releases.pop()?.();
    } catch (error) {
      // The others are released all the same.
      console.error(error);
    }
  }
}

function atEnd(work: () => Promise<void> | void): void {
  releases.push(work);
}

function progress(text: string): void {
  console.error(`${new Date().toISOString().slice(11, 19)} ${text}`);
}

function scaleOf(text: string | undefined): number {
  const scale = Number(text ?? 1);
  if (scale > 0 && scale <= 10) return scale;
  throw new Error("BENCH_SCALE: expected a number above 0, at most 10");
}

async function main(): Promise<void> {
  const scale = scaleOf(process.env["BENCH_SCALE"]);
  const startedAt = new Date().toISOString();
  progress("starting PostgreSQL and RabbitMQ");
  const machine = describeMachine();
  const surroundings = await prepareSurroundings({ records: 10_000, atEnd });
  const generator = startPeer<LoadJob, LoadResult>("load.ts");
  atEnd(() => generator.end());
  const context = { surroundings, generator, scale, atEnd, progress };
  if (process.env["BENCH_ONLY"] === "deliveries") {
    console.log(deliveryReport(await measureDeliveries(context)));
    return;
  }
  const requests = await measureRequests(context);
  await purgeQueues(surroundings.amqpUrl);
  const deliveries = await measureDeliveries(context);

  const results: Results = {
    startedAt,
    scale,
    machine,
    versions: { ...describeVersions(), ...surroundings.versions },
    settings: { poolSize, fsync: "on", synchronousCommit: "on", logLevel: "warn", connections: 16 },
    ...requests,
    ...deliveries,
  };
  const path = `bench/results/${startedAt.replaceAll(":", "-")}.json`;
  mkdirSync("bench/results", { recursive: true });
  writeFileSync(path, `${JSON.stringify(results, null, 2)}\n`);
  console.log(reportOf(results));
  progress(`written to ${path}`);
}

for (const [signal, status] of [
  ["SIGINT", 130],
  ["SIGTERM", 143],
] as const) {
  process.once(signal, () => void release().finally(() => process.exit(status)));
}

main()
  .then(
    () => 0,
    (error: unknown) => {
      // After Ctrl-C, whatever was under way fails: the signal's own release is at work.
      if (process.listenerCount("SIGINT") > 0) console.error(error);
      return 1;
    },
  )
  .then(async (code) => {
    if (process.listenerCount("SIGINT") === 0) return;
    await release();
    process.exit(code);
  })
  .catch((error: unknown) => {
    console.error(error);
    process.exit(1);
  });
