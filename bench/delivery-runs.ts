import { familyCpuMicros, processCpuMicros, processMemoryMb } from "./cpu.ts";
import {
  measureCapacity,
  measureFullWay,
  measureSteadyApi,
  measureSteadySql,
  type Capacity,
  type FullWay,
  type Steady,
} from "./deliveries.ts";
import { startPeer } from "./peer.ts";
import { startProgram } from "./program.ts";
import type { ReceiverQuestion, ReceiverReport } from "./receiver.ts";
import { createRequest, type BenchContext } from "./requests.ts";

export interface DeliveryResults {
  readonly capacity: Capacity;
  readonly fullWay: FullWay;
  readonly steadyApi: Steady;
  readonly steadySql: Steady;
}

/** `svc api` and `svc dispatcher`, one subscription, and a receiver that answers at once. */
export async function measureDeliveries({
  surroundings,
  generator,
  scale,
  atEnd,
  progress,
}: BenchContext): Promise<DeliveryResults> {
  const { token, userId, postgresPid, rabbitMqPid } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_deliveries");
  const pool = surroundings.connect(databaseUrl);
  const receiver = startPeer<ReceiverQuestion, ReceiverReport>("receiver.ts");
  atEnd(() => receiver.end());
  const api = await startProgram({ name: "api", surroundings, databaseUrl });
  atEnd(() => api.stop());
  const dispatcher = await startProgram({ name: "dispatcher", surroundings, databaseUrl });
  atEnd(() => dispatcher.stop());
  const { port: receiverPort } = await receiver.ask({ kind: "begin" });
  await subscribe({ port: api.port, token, receiverPort });

  const bench = { pool, receiver, userId };
  const meters = {
    "api and relay": () => processCpuMicros(api.pid),
    dispatcher: () => processCpuMicros(dispatcher.pid),
    postgresql: () => familyCpuMicros(postgresPid),
    rabbitmq: () => processCpuMicros(rabbitMqPid),
    receiver: () => processCpuMicros(receiver.pid),
  };
  progress("delivery capacity");
  await measureCapacity({ ...bench, meters, count: 1_000 });
  const capacity = await measureCapacity({ ...bench, meters, count: Math.round(10_000 * scale) });

  const request = createRequest;
  const memories = {
    "api and relay": () => processMemoryMb(api.pid),
    dispatcher: () => processMemoryMb(dispatcher.pid),
  };
  progress("creates by 16 connections");
  const way = { ...bench, generator, request, port: api.port, token, meters };
  const fullWay = await measureFullWay({ ...way, memories, count: Math.round(5_000 * scale) });

  const rate = { ratePerSecond: 100, durationMs: 25_000 * scale };
  progress(`${rate.ratePerSecond} creates/s`);
  const steadyApi = await measureSteadyApi({ ...way, ...rate });
  progress(`${rate.ratePerSecond} rows/s by SQL`);
  const steadySql = await measureSteadySql({ ...bench, ...rate });
  await dispatcher.stop();
  await api.stop();
  return { capacity, fullWay, steadyApi, steadySql };
}

async function subscribe({
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
