import { setTimeout as sleep } from "node:timers/promises";
import { familyCpuMicros, processCpuMicros, processMemoryMb } from "./cpu.ts";
import {
  measureCapacity,
  measureFullWay,
  measureSteadyApi,
  measureSteadySql,
  readMeters,
  type Amounts,
  type Capacity,
  type FullWay,
  type Steady,
} from "./deliveries.ts";
import { measureLatencyParts, type LatencyParts } from "./latency-parts.ts";
import { startPeer } from "./peer.ts";
import { startProgram } from "./program.ts";
import type { ReceiverQuestion, ReceiverReport } from "./receiver.ts";
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
  const { surroundings, generator, scale, atEnd, progress } = context;
  const { token, userId, postgresPid, rabbitMqPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_deliveries");
  const pool = surroundings.connect(databaseUrl);
  const receiver = startPeer<ReceiverQuestion, ReceiverReport>("receiver.ts");
  atEnd(() => receiver.end());
  const api = await startProgram({ name: "api", surroundings, databaseUrl });
  atEnd(() => api.stop());
  const dispatcher = await startProgram({
    name: "dispatcher",
    surroundings,
    databaseUrl: surroundings.urlOfDispatcher(databaseUrl),
  });
  atEnd(() => dispatcher.stop());
  const { port: receiverPort } = await receiver.ask({ kind: "begin" });
  await subscribe({ port: api.port, token, receiverPort });

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

export async function subscribe({
  port,
  token,
  receiverPort,
}: {
  readonly port: number;
  readonly token: string;
  readonly receiverPort: number;
}): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/svc-api/webhooks`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify({
      url: `http://127.0.0.1:${receiverPort}/`,
      resource: "notes",
      events: ["on_create"],
    }),
  });
  if (response.status !== 201)
    throw new Error(`The subscription was refused: ${response.status} ${await response.text()}`);
}
