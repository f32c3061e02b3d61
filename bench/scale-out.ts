import { setTimeout as sleep } from "node:timers/promises";
import { familyCpuMicros, processCpuMicros } from "./cpu.ts";
import {
  measureSteadyApi,
  openSubscribed,
  perItem,
  readMeters,
  usedSince,
  type Amounts,
  type Meters,
} from "./deliveries.ts";
import { sumOf } from "./markdown.ts";
import type { Spread } from "./numbers.ts";
import { startProgram, type Program } from "./program.ts";
import { createRequest } from "./request-specs.ts";
import { walBytes } from "./statements.ts";
import { allPublished, type BenchContext } from "./requests.ts";

/** The load on this many APIs and as many dispatchers, all together. */
interface Load {
  readonly processes: number;
  readonly ratePerSecond: number;
}

export interface ScaleOut extends Load {
  /** CPU per create and delivery, of all processes of a kind together, in µs. */
  readonly cpuMicros: Amounts;
  /** The same of idle processes, in cores. */
  readonly idleCores: Amounts;
  readonly walBytes: number;
  readonly latencyMs: Spread;
  /** Share of the attempts of each dispatcher, in percent, from the least. */
  readonly shares: readonly number[];
}

/**
 * The same load on more processes, then the same on each. A process takes more CPU for a create
 * when it has less to do. Only the last three rows show what processes cost one another.
 */
const loads: readonly Load[] = [
  { processes: 1, ratePerSecond: 200 },
  { processes: 2, ratePerSecond: 200 },
  { processes: 4, ratePerSecond: 200 },
  { processes: 2, ratePerSecond: 100 },
  { processes: 1, ratePerSecond: 50 },
];

/** Measures creates with a delivery each by 1, 2 and 4 APIs and dispatchers. */
export async function measureScaleOut(context: BenchContext): Promise<readonly ScaleOut[]> {
  const results: ScaleOut[] = [];
  for (const load of loads) {
    context.progress(`${load.ratePerSecond}/s by ${load.processes} APIs and as many dispatchers`);
    results.push(await measureWith(load, context));
  }
  return results;
}

async function measureWith({ processes, ratePerSecond }: Load, context: BenchContext): Promise<ScaleOut> {
  const { surroundings, generator, scale } = context;
  const { token, userId, postgresPid, rabbitMqPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase(`svc_scale_${processes}_${ratePerSecond}`);
  const pool = surroundings.connect(databaseUrl);
  const startAll = async (name: "api" | "dispatcher"): Promise<readonly Program[]> => {
    const started: Program[] = [];
    for (let number = 0; number < processes; number += 1)
      started.push(await startProgram(context, name, { databaseUrl }));
    return started;
  };
  const [apis, dispatchers] = [await startAll("api"), await startAll("dispatcher")];
  const ports = apis.map(({ port }) => port);
  const [port = 0, ...otherPorts] = ports;
  const receiver = await openSubscribed(context, port);
  const meters = {
    "svc api": () => cpuOf(apis),
    "svc dispatcher": () => cpuOf(dispatchers),
    postgresql: () => familyCpuMicros(postgresPid),
    rabbitmq: () => processCpuMicros(rabbitMqPid),
  };
  const target = { port, otherPorts, token, request: createRequest };
  const steady = { ...target, pool, receiver, userId, generator, meters };
  // Each process must have compiled its code, which takes some thousands of requests.
  const count = Math.round(4_000 * processes * scale);
  await generator.ask({ ...target, connections: 16, count });
  await receiver.ask({ kind: "wait", count, limitMs: 120_000 });
  await measureSteadyApi({ ...steady, ratePerSecond, durationMs: 3_000 });
  await allPublished(pool);
  const idle = await idleCores(meters, 5_000 * scale);
  const attempts = (): Promise<readonly number[]> =>
    Promise.all(dispatchers.map((one) => one.counter("svc_delivery_attempts_total")));
  const [attemptsBefore, walBefore] = [await attempts(), await walBytes(pool)];
  const measured = await measureSteadyApi({ ...steady, ratePerSecond, durationMs: 10_000 * scale });
  const made = (await attempts()).map((after, index) => after - (attemptsBefore[index] ?? 0));
  const total = made.reduce((sum, one) => sum + one, 0);
  const walAfter = await walBytes(pool);
  for (const program of [...dispatchers, ...apis]) await program.stop();
  receiver.end();
  return {
    processes,
    ratePerSecond,
    cpuMicros: measured.cpuMicros,
    idleCores: idle,
    walBytes: (walAfter - walBefore) / measured.count,
    latencyMs: measured.latencyMs,
    shares: made.map((one) => (100 * one) / total).toSorted((a, b) => a - b),
  };
}

function cpuOf(programs: readonly Program[]): number {
  return sumOf(programs.map(({ pid }) => processCpuMicros(pid)));
}

async function idleCores(meters: Meters, durationMs: number): Promise<Amounts> {
  const before = readMeters(meters);
  await sleep(durationMs);
  return perItem(usedSince(meters, before), durationMs * 1_000);
}
