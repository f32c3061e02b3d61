import type { ByHandQuestion } from "./baseline/sender-queue.ts";
import { tables } from "./baseline/sender-queue.ts";
import { callerOf, subscribe } from "./call-api.ts";
import { familyCpuMicros, processCpuMicros } from "./cpu.ts";
import { measureSteadyApi, openReceivers, type Meters, type Receiver, type Steady } from "./deliveries.ts";
import { startPeer } from "./peer.ts";
import { startProgram } from "./program.ts";
import { createRequest } from "./request-specs.ts";
import type { BenchContext } from "./requests.ts";
import { poolSize } from "./surroundings.ts";

/** 100 creates a second with one delivery each, by the service and by a sender written by hand. */
export interface BesideByHand {
  readonly service: readonly Steady[];
  readonly byHand: readonly Steady[];
}

/** The two processes of a side. */
interface Sender {
  readonly port: number;
  readonly apiPid: number;
  readonly dispatcherPid: number;
  stop(): Promise<void>;
}

const turns = 2;

/**
 * Measures both senders in turns, on the same servers. The one by hand does the least that a sender
 * must, so its cost is what Node.js, PostgreSQL and RabbitMQ take on this machine.
 */
export async function measureBesideByHand(context: BenchContext): Promise<BesideByHand> {
  const { surroundings, atEnd, progress } = context;
  const databaseUrl = await surroundings.copyDatabase("svc_by_hand");
  const pool = surroundings.connect(databaseUrl);
  await pool.query(tables);
  const receiver = await openReceivers(atEnd);
  const [receiverPort = 0] = receiver.ports;
  const question = { databaseUrl, amqpUrl: surroundings.amqpUrl, poolSize, receiverPort };

  const service: Steady[] = [];
  const byHand: Steady[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    progress("100 creates/s by the service");
    const own = await startService(context, databaseUrl);
    if (turn === 0) {
      await subscribe(callerOf({ port: own.port, token: surroundings.token }), receiverPort);
    }
    service.push(await measure(context, { sender: own, receiver, pool }));
    progress("100 creates/s by a sender written by hand");
    byHand.push(await measure(context, { sender: await startByHand(context, question), receiver, pool }));
  }
  return { service, byHand };
}

async function startService(context: BenchContext, databaseUrl: string): Promise<Sender> {
  const api = await startProgram(context, "api", { databaseUrl });
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  return {
    port: api.port,
    apiPid: api.pid,
    dispatcherPid: dispatcher.pid,
    async stop() {
      await dispatcher.stop();
      await api.stop();
    },
  };
}

async function startByHand({ atEnd }: BenchContext, question: ByHandQuestion): Promise<Sender> {
  const dispatcher = startPeer<ByHandQuestion, object>("baseline/sender-dispatcher.ts");
  atEnd(() => dispatcher.end());
  await dispatcher.ask(question);
  const api = startPeer<ByHandQuestion, { readonly port: number }>("baseline/sender-api.ts");
  atEnd(() => api.end());
  const { port } = await api.ask(question);
  return {
    port,
    apiPid: api.pid,
    dispatcherPid: dispatcher.pid,
    async stop() {
      api.end();
      dispatcher.end();
    },
  };
}

async function measure(
  { surroundings, generator, scale }: BenchContext,
  {
    sender,
    receiver,
    pool,
  }: {
    readonly sender: Sender;
    readonly receiver: Receiver;
    readonly pool: Parameters<typeof measureSteadyApi>[0]["pool"];
  },
): Promise<Steady> {
  const { token, userId, postgresPid, rabbitMqPid } = surroundings;
  const { port } = sender;
  const meters: Meters = {
    api: () => processCpuMicros(sender.apiPid),
    dispatcher: () => processCpuMicros(sender.dispatcherPid),
    postgresql: () => familyCpuMicros(postgresPid),
    rabbitmq: () => processCpuMicros(rabbitMqPid),
  };
  const request = createRequest;
  // V8 compiles the code of a create only after some thousands of them.
  const count = Math.round(5_000 * scale);
  await receiver.ask({ kind: "begin" });
  await generator.ask({ port, token, request, connections: 16, count });
  await receiver.ask({ kind: "wait", count, limitMs: 120_000 });
  const steady = { pool, receiver, userId, generator, request, port, token, meters };
  const measured = await measureSteadyApi({ ...steady, ratePerSecond: 100, durationMs: 25_000 * scale });
  await sender.stop();
  return measured;
}
