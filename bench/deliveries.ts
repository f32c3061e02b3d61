import type { Pool } from "pg";
import { until } from "../test/support/wait.ts";
import type { Generator } from "./compare.ts";
import type { RequestSpec, LoadResult } from "./load.ts";
import type { Spread } from "./numbers.ts";
import type { Peer } from "./peer.ts";
import type { ReceiverQuestion, ReceiverReport } from "./receiver.ts";
import { countStatements, type StatementCount } from "./statements.ts";
import { insertNotes } from "./surroundings.ts";

export type Receiver = Peer<ReceiverQuestion, ReceiverReport>;

/** CPU time used so far, in µs, by process; undefined where it cannot be told. */
export type Meters = Readonly<Record<string, () => number | undefined>>;

export interface Capacity {
  readonly count: number;
  readonly duplicates: number;
  /** From before the first row to the record of the last delivery. */
  readonly perSecond: number;
  /** CPU per delivery. */
  readonly cpuMicros: Readonly<Record<string, number | undefined>>;
  readonly statements: StatementCount;
}

export interface Steady {
  readonly ratePerSecond: number;
  readonly count: number;
  readonly duplicates: number;
  /** From the change to the arrival at the receiver. */
  readonly latencyMs: Spread;
  /** Of the requests that made the changes; undefined when plain SQL did. */
  readonly requestMs: Spread | undefined;
}

export interface DeliveryBench {
  readonly pool: Pool;
  readonly receiver: Receiver;
  readonly userId: number;
}

const limitMs = 180_000;

/** Rows by SQL as fast as the database takes them, in batches of 500, until the last delivery is recorded. */
export async function measureCapacity({
  pool,
  receiver,
  userId,
  meters,
  count,
}: DeliveryBench & { readonly meters: Meters; readonly count: number }): Promise<Capacity> {
  const deliveredBefore = await deliveredCount(pool);
  await receiver.ask({ kind: "begin" });
  const readMeters = (): Record<string, number | undefined> =>
    Object.fromEntries(Object.entries(meters).map(([name, read]) => [name, read()]));
  const before = readMeters();
  const startedAt = Date.now();
  const statements = await countStatements(pool, async () => {
    for (let left = count; left > 0; left -= 500)
      await insertNotes(pool, { userId, count: Math.min(left, 500) });
    await receiver.ask({ kind: "wait", count, limitMs });
    const isRecorded = async (): Promise<boolean> => (await deliveredCount(pool)) === deliveredBefore + count;
    await until(isRecorded, { what: "the last delivery to be recorded", timeoutMs: limitMs });
    return count;
  });
  const after = readMeters();
  const last = await pool.query<{ readonly at: Date }>("SELECT max(updated_at) AS at FROM svc.deliveries");
  const { duplicates } = await receiver.ask({ kind: "report" });
  const endedAt = last.rows[0]?.at.getTime() ?? Number.NaN;
  return {
    count,
    duplicates,
    perSecond: count / ((endedAt - startedAt) / 1_000),
    cpuMicros: Object.fromEntries(
      Object.entries(after).map(([name, micros]) => {
        const was = before[name];
        return [name, micros === undefined || was === undefined ? undefined : (micros - was) / count];
      }),
    ),
    statements,
  };
}

/** Changes at an even rate, through the API. */
export async function measureSteadyApi({
  receiver,
  generator,
  request,
  port,
  token,
  ratePerSecond,
  durationMs,
}: DeliveryBench & {
  readonly generator: Generator;
  readonly request: RequestSpec;
  readonly port: number;
  readonly token: string;
  readonly ratePerSecond: number;
  readonly durationMs: number;
}): Promise<Steady> {
  await receiver.ask({ kind: "begin" });
  const job = { port, token, request, connections: 64, ratePerSecond, durationMs };
  const sent: LoadResult = await generator.ask(job);
  const report = await receiver.ask({ kind: "wait", count: sent.count, limitMs });
  return { ratePerSecond, ...steadyPart(report), requestMs: sent.latencyMs };
}

/** The same by a writer that knows nothing of the service: the relay finds the events by looking for them. */
export async function measureSteadySql({
  pool,
  receiver,
  userId,
  ratePerSecond,
  durationMs,
}: DeliveryBench & { readonly ratePerSecond: number; readonly durationMs: number }): Promise<Steady> {
  await receiver.ask({ kind: "begin" });
  const total = Math.round((durationMs / 1_000) * ratePerSecond);
  const writes: Promise<void>[] = [];
  await new Promise<void>((resolve) => {
    const start = performance.now();
    const timer = setInterval(() => {
      const due = Math.min(total, ((performance.now() - start) / 1_000) * ratePerSecond);
      while (writes.length < due) writes.push(insertNotes(pool, { userId, count: 1 }));
      if (writes.length < total) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
  await Promise.all(writes);
  const report = await receiver.ask({ kind: "wait", count: total, limitMs });
  return { ratePerSecond, ...steadyPart(report), requestMs: undefined };
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
