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
import { type AtEnd, progress, runToEnd } from "./run-to-end.ts";
import { poolSize, prepareSurroundings } from "./surroundings.ts";

function scaleOf(text: string | undefined): number {
  const scale = Number(text ?? 1);
  if (scale > 0 && scale <= 10) return scale;
  throw new Error("BENCH_SCALE: expected a number above 0, at most 10");
}

async function main(atEnd: AtEnd): Promise<number> {
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
    return 0;
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
  return 0;
}

await runToEnd(main);
