import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { until } from "../test/support/wait.ts";
import { callerOf, subscribe } from "./call-api.ts";
import type { Generator } from "./compare.ts";
import type { RequestSpec, LoadResult } from "./load.ts";
import type { Spread } from "./numbers.ts";
import { startPeer, type Peer } from "./peer.ts";
import type { Surrounded } from "./program.ts";
import type { ReceiverQuestion, ReceiverReport } from "./receiver.ts";
import type { AtEnd } from "./run-to-end.ts";
import { countStatements, walBytes, type StatementCount } from "./statements.ts";
import { insertNotes } from "./surroundings.ts";

/** One or several receivers of a separate process. */
export interface Receiver extends Peer<ReceiverQuestion, ReceiverReport> {
  readonly ports: readonly number[];
}

/** Opens receivers, which end with the run at the latest. */
export async function openReceivers(atEnd: AtEnd, receivers = 1): Promise<Receiver> {
  const peer = startPeer<ReceiverQuestion, ReceiverReport>("receiver.ts");
  atEnd(() => peer.end());
  return { ...peer, ports: (await peer.ask({ kind: "open", receivers })).ports };
}

/** Opens a receiver, and subscribes it to the creates of the user. */
export async function openSubscribed({ surroundings, atEnd }: Surrounded, port: number): Promise<Receiver> {
  const receiver = await openReceivers(atEnd);
  await subscribe(callerOf({ port, token: surroundings.token }), receiver.ports[0] ?? 0);
  return receiver;
}

/** CPU time so far in µs, by process; NaN when it cannot be measured. */
export type Meters = Readonly<Record<string, () => number>>;
export type Amounts = Readonly<Record<string, number>>;

export interface Capacity {
  readonly count: number;
  readonly duplicates: number;
  /** Deliveries a second, from before the first row to the record of the last delivery. */
  readonly perSecond: number;
  /** CPU per delivery. */
  readonly cpuMicros: Amounts;
  readonly statements: StatementCount;
}

/** The same for changes through the API, at the highest rate of 16 connections. */
export interface FullWay extends Omit<Capacity, "statements"> {
  /** WAL of PostgreSQL per delivery, in bytes. */
  readonly walBytes: number;
}

export interface Steady {
  readonly ratePerSecond: number;
  /** CPU of one change and its delivery. */
  readonly cpuMicros: Amounts;
  /** Share of one core. */
  readonly coresBusy: Amounts;
  readonly count: number;
  readonly duplicates: number;
  /** Time from the change to the arrival at the receiver. */
  readonly latencyMs: Spread;
  /** Time of the requests that made the changes; undefined for plain SQL. */
  readonly requestMs: Spread | undefined;
}

export interface DeliveryBench {
  readonly pool: Pool;
  readonly receiver: Receiver;
  readonly userId: number;
}

const limitMs = 180_000;
/** Has no common factor with the number of users. */
const stride = 37;

/**
 * Inserts rows by SQL at the highest rate of the database, in batches of 500, until the last
 * delivery is recorded.
 */
export async function measureCapacity({
  pool,
  receiver,
  userId,
  meters,
  count,
}: DeliveryBench & { readonly meters: Meters; readonly count: number }): Promise<Capacity> {
  const deliveredBefore = await deliveredCount(pool);
  await receiver.ask({ kind: "begin" });
  const before = readMeters(meters);
  const startedAt = Date.now();
  const statements = await countStatements(pool, async () => {
    for (let left = count; left > 0; left -= 500)
      await insertNotes(pool, { userId, count: Math.min(left, 500) });
    await receiver.ask({ kind: "wait", count, limitMs });
    await untilRecorded(pool, deliveredBefore + count);
    return count;
  });
  const used = usedSince(meters, before);
  const last = await pool.query<{ readonly at: Date }>("SELECT max(updated_at) AS at FROM svc.deliveries");
  const { duplicates } = await receiver.ask({ kind: "report" });
  const endedAt = last.rows[0]?.at.getTime() ?? Number.NaN;
  return {
    count,
    duplicates,
    perSecond: count / ((endedAt - startedAt) / 1_000),
    cpuMicros: perItem(used, count),
    statements,
  };
}

/**
 * Creates records through the API at the highest rate of the connections, until the last delivery
 * is recorded.
 */
export async function measureFullWay({
  pool,
  receiver,
  generator,
  request,
  port,
  token,
  meters,
  count,
}: DeliveryBench & {
  readonly generator: Generator;
  readonly request: RequestSpec;
  readonly port: number;
  readonly token: string;
  readonly meters: Meters;
  readonly count: number;
}): Promise<FullWay> {
  const deliveredBefore = await deliveredCount(pool);
  const walBefore = await walBytes(pool);
  await receiver.ask({ kind: "begin" });
  const before = readMeters(meters);
  const startedAt = performance.now();
  await generator.ask({ port, token, request, connections: 16, count });
  const report = await receiver.ask({ kind: "wait", count, limitMs });
  await untilRecorded(pool, deliveredBefore + count);
  const seconds = (performance.now() - startedAt) / 1_000;
  return {
    count,
    duplicates: report.duplicates,
    perSecond: count / seconds,
    cpuMicros: perItem(usedSince(meters, before), count),
    walBytes: ((await walBytes(pool)) - walBefore) / count,
  };
}

export function readMeters(meters: Meters): Amounts {
  return Object.fromEntries(Object.entries(meters).map(([name, read]) => [name, read()]));
}

export function usedSince(meters: Meters, before: Amounts): Amounts {
  const used = Object.entries(readMeters(meters));
  return Object.fromEntries(used.map(([name, value]) => [name, value - (before[name] ?? Number.NaN)]));
}

export function perItem(amounts: Amounts, count: number): Amounts {
  return Object.fromEntries(Object.entries(amounts).map(([name, value]) => [name, value / count]));
}

async function untilRecorded(pool: Pool, count: number): Promise<void> {
  const isRecorded = async (): Promise<boolean> => (await deliveredCount(pool)) === count;
  await until(isRecorded, { what: "the last delivery to be recorded", timeoutMs: limitMs });
}

/** Makes changes at a constant rate, through the API. */
export async function measureSteadyApi({
  receiver,
  generator,
  request,
  port,
  token,
  ratePerSecond,
  durationMs,
  meters,
  otherPorts = [],
}: DeliveryBench & {
  readonly generator: Generator;
  readonly request: RequestSpec;
  readonly port: number;
  readonly token: string;
  readonly ratePerSecond: number;
  readonly durationMs: number;
  readonly meters: Meters;
  readonly otherPorts?: readonly number[];
}): Promise<Steady> {
  await receiver.ask({ kind: "begin" });
  const before = readMeters(meters);
  const job = { port, otherPorts, token, request, connections: 64, ratePerSecond, durationMs };
  const sent: LoadResult = await generator.ask(job);
  const report = await receiver.ask({ kind: "wait", count: sent.count, limitMs });
  const used = usedSince(meters, before);
  return {
    ratePerSecond,
    ...steadyPart(report),
    requestMs: sent.latencyMs,
    cpuMicros: perItem(used, sent.count),
    coresBusy: perItem(used, sent.elapsedMs * 1_000),
  };
}

/**
 * Makes the same changes by SQL, without notice to the service: the relay finds the events by
 * polling.
 */
export async function measureSteadySql({
  pool,
  receiver,
  userId,
  ratePerSecond,
  durationMs,
}: DeliveryBench & { readonly ratePerSecond: number; readonly durationMs: number }): Promise<Steady> {
  await receiver.ask({ kind: "begin" });
  const count = await writeEvenly({ pool, userIds: [userId], ratePerSecond, durationMs });
  const report = await receiver.ask({ kind: "wait", count, limitMs });
  return { ratePerSecond, ...steadyPart(report), requestMs: undefined, cpuMicros: {}, coresBusy: {} };
}

/** Inserts records by SQL at a constant rate, of each user in turn. Returns their number. */
export async function writeEvenly({
  pool,
  userIds,
  ratePerSecond,
  durationMs,
}: {
  readonly pool: Pool;
  readonly userIds: readonly number[];
  readonly ratePerSecond: number;
  readonly durationMs: number;
}): Promise<number> {
  const startedAt = performance.now();
  const writes: Promise<void>[] = [];
  while (performance.now() - startedAt < durationMs) {
    const due = ((performance.now() - startedAt) / 1_000) * ratePerSecond;
    while (writes.length < due) {
      // Uses a stride, so that even a short phase contains some of the last users.
      const userId = userIds[(writes.length * stride) % userIds.length] ?? 0;
      writes.push(insertNotes(pool, { userId, count: 1 }));
    }
    await sleep(5);
  }
  await Promise.all(writes);
  return writes.length;
}

function steadyPart({
  count,
  duplicates,
  latencyMs,
}: ReceiverReport): Pick<Steady, "count" | "duplicates" | "latencyMs"> {
  return { count, duplicates, latencyMs };
}

async function deliveredCount(pool: Pool): Promise<number> {
  const text = "SELECT count(*)::int AS count FROM svc.deliveries WHERE status = 'delivered'";
  const { rows } = await pool.query<{ readonly count: number }>(text);
  return rows[0]?.count ?? 0;
}
