import { setTimeout as sleep } from "node:timers/promises";
import { familyCpuMicros, processCpuMicros, processMemoryMb } from "./cpu.ts";
import {
  measureCapacity,
  measureFullWay,
  measureSteadyApi,
  measureSteadySql,
  openSubscribed,
  readMeters,
  type Amounts,
  type Capacity,
  type FullWay,
  type Steady,
} from "./deliveries.ts";
import { measureLatencyParts, type LatencyParts } from "./latency-parts.ts";
import { startProgram } from "./program.ts";
import { createRequest } from "./request-specs.ts";
import type { BenchContext } from "./requests.ts";

export interface DeliveryResults {
  readonly capacity: Capacity;
  readonly fullWay: FullWay;
  readonly steadyApi: Steady;
  readonly steadySql: Steady;
  readonly parts: LatencyParts;
  /** Memory of the processes in MB: after the start, after all creates, and a while later. */
  readonly memoryMb: Readonly<Record<"at rest" | "after the load" | "a minute later", Amounts>>;
}

/**
 * Measures `svc api` and `svc dispatcher`, with one subscription and a receiver that answers at
 * once.
 */
export async function measureDeliveries(context: BenchContext): Promise<DeliveryResults> {
  const { surroundings, generator, scale, progress } = context;
  const { token, userId, postgresPid, rabbitMqPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_deliveries");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram(context, "api", { databaseUrl });
  const dispatcher = await startProgram(context, "dispatcher", {
    databaseUrl: surroundings.urlOfDispatcher(databaseUrl),
  });
  const receiver = await openSubscribed(context, api.port);

  const bench = { pool, receiver, userId };
  const meters = {
    "svc api": () => processCpuMicros(api.pid),
    dispatcher: () => processCpuMicros(dispatcher.pid),
    postgresql: () => familyCpuMicros(postgresPid),
    rabbitmq: () => processCpuMicros(rabbitMqPid),
    receiver: () => processCpuMicros(receiver.pid),
  };
  const memories = {
    "svc api": () => processMemoryMb(api.pid),
    "svc dispatcher": () => processMemoryMb(dispatcher.pid),
  };
  const atRest = readMeters(memories);
  progress("delivery capacity");
  await measureCapacity({ ...bench, meters, count: 1_000 });
  const capacity = await measureCapacity({ ...bench, meters, count: Math.round(10_000 * scale) });

  const request = createRequest;
  progress("creates by 16 connections");
  const way = { ...bench, generator, request, port: api.port, token, meters };
  // V8 compiles the code of a create only after some thousands of them.
  await measureFullWay({ ...way, count: Math.round(5_000 * scale) });
  const fullWay = await measureFullWay({ ...way, count: Math.round(5_000 * scale) });

  const afterLoad = readMeters(memories);
  const rate = { ratePerSecond: 100, durationMs: 25_000 * scale };
  progress(`${rate.ratePerSecond} creates/s`);
  const steadyApi = await measureSteadyApi({ ...way, ...rate });
  progress(`${rate.ratePerSecond} rows/s by SQL`);
  const steadySql = await measureSteadySql({ ...bench, ...rate });
  await sleep(60_000 * scale);
  const memoryMb = { "at rest": atRest, "after the load": afterLoad, "a minute later": readMeters(memories) };
  await dispatcher.stop();
  await api.stop();
  progress("parts of the latency");
  const parts = await measureLatencyParts({ context, pool, receiver, userId, databaseUrl, request });
  return { capacity, fullWay, steadyApi, steadySql, parts, memoryMb };
}
