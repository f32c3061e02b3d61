import { setTimeout as sleep } from "node:timers/promises";
import { medianOf } from "../numbers.ts";
import { startProgram } from "../program.ts";
import type { BenchContext } from "../requests.ts";
import { writeEvenly } from "./crowd.ts";
import { makeHistory } from "./history.ts";
import { openPair } from "./pair.ts";

/** A replay, and the fresh deliveries of another user beside it. */
export interface ReplayResult {
  readonly events: number;
  readonly perSecond: number;
  /**
   * p99 of the fresh deliveries in ms, while the replay is paused and while it runs; medians of the
   * rounds.
   */
  readonly paused: number;
  readonly running: number;
  readonly ratios: readonly number[];
}

const rounds = 3;
const ratePerSecond = 60;

export async function measureReplay(context: BenchContext): Promise<ReplayResult> {
  const { surroundings, scale, atEnd, progress } = context;
  const { token, userId } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_replay");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram({ name: "api", surroundings, databaseUrl });
  atEnd(() => api.stop());
  const { crowd, freshId, subscriptionId } = await openPair({ context, pool, port: api.port });
  const events = Math.max(2_000, Math.round(100_000 * Math.min(1, 2 * scale)));
  progress(`${events} events to replay`);
  await makeHistory(pool, { subscriptionId, userId, count: events, age: "1 hour" });
  const dispatcher = await startProgram({ name: "dispatcher", surroundings, databaseUrl });
  atEnd(() => dispatcher.stop());
  const ask = async (path: string, body: object = {}): Promise<Readonly<Record<string, unknown>>> => {
    const response = await fetch(`http://127.0.0.1:${api.port}/svc-api${path}`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`POST ${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as Readonly<Record<string, unknown>>;
  };
  const durationMs = 15_000 * scale;
  const phase = async (): Promise<number> => {
    await crowd.ask({ kind: "begin" });
    await writeEvenly({ pool, userIds: [freshId], ratePerSecond, durationMs });
    await sleep(1_000);
    return (await crowd.ask({ kind: "report", below: 1 })).latencyMs.p99;
  };
  const sent = async (): Promise<number> => {
    const text =
      "SELECT count(*)::int AS count FROM svc.deliveries WHERE replay_id IS NOT NULL AND status = 'delivered'";
    return (await pool.query<{ readonly count: number }>(text)).rows[0]?.count ?? 0;
  };
  await phase();
  const since = new Date(Date.now() - 2 * 3_600_000).toISOString();
  const { id } = await ask(`/webhooks/${subscriptionId}/replay`, { since, status: ["delivered"] });
  const path = `/webhook-replays/${Number(id)}`;
  const pairs: { readonly paused: number; readonly running: number; readonly perSecond: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`fresh deliveries beside a replay, round ${round + 1} of ${rounds}`);
    await ask(`${path}/pause`);
    // Deliveries that are already made still go out.
    await sleep(5_000 * scale);
    const paused = await phase();
    await ask(`${path}/resume`);
    await sleep(1_000);
    const [before, startedAt] = [await sent(), performance.now()];
    const running = await phase();
    const perSecond = ((await sent()) - before) / ((performance.now() - startedAt) / 1_000);
    pairs.push({ paused, running, perSecond });
  }
  await ask(`${path}/cancel`);
  await dispatcher.stop();
  await api.stop();
  crowd.end();
  return {
    events,
    perSecond: medianOf(pairs.map((one) => one.perSecond)),
    paused: medianOf(pairs.map((one) => one.paused)),
    running: medianOf(pairs.map((one) => one.running)),
    ratios: pairs.map(({ paused, running }) => running / paused),
  };
}
