import { setTimeout as sleep } from "node:timers/promises";
import { callerOf } from "../call-api.ts";
import { medianOf } from "../numbers.ts";
import { startProgram } from "../program.ts";
import type { BenchContext } from "../requests.ts";
import { makeHistory } from "./history.ts";
import { freshP99, openPair } from "./pair.ts";

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

export async function measureReplay(context: BenchContext): Promise<ReplayResult> {
  const { surroundings, scale, progress } = context;
  const { token, userId } = surroundings;
  const databaseUrl = await surroundings.copyDatabase("svc_replay");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram(context, "api", { databaseUrl });
  const { crowd, freshId, subscriptionId } = await openPair({ context, pool, port: api.port });
  const events = Math.max(2_000, Math.round(100_000 * Math.min(1, 2 * scale)));
  progress(`${events} events to replay`);
  await makeHistory(pool, { subscriptionId, userId, count: events, age: "1 hour" });
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  const callApi = callerOf({ port: api.port, token });
  const phase = (): Promise<number> => freshP99({ pool, crowd, freshId, durationMs: 15_000 * scale });
  const sent = async (): Promise<number> => {
    const text =
      "SELECT count(*)::int AS count FROM svc.deliveries WHERE replay_id IS NOT NULL AND status = 'delivered'";
    return (await pool.query<{ readonly count: number }>(text)).rows[0]?.count ?? 0;
  };
  await phase();
  const asked = { since: new Date(Date.now() - 2 * 3_600_000).toISOString(), status: ["delivered"] };
  const { id } = await callApi("POST", `/svc-api/webhooks/${subscriptionId}/replay`, asked);
  const move = (to: string): Promise<unknown> =>
    callApi("POST", `/svc-api/webhook-replays/${Number(id)}/${to}`, {});
  const pairs: { readonly paused: number; readonly running: number; readonly perSecond: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`fresh deliveries beside a replay, round ${round + 1} of ${rounds}`);
    await move("pause");
    // Deliveries that are already made still go out.
    await sleep(5_000 * scale);
    const paused = await phase();
    await move("resume");
    await sleep(1_000);
    const [before, startedAt] = [await sent(), performance.now()];
    const running = await phase();
    const perSecond = ((await sent()) - before) / ((performance.now() - startedAt) / 1_000);
    pairs.push({ paused, running, perSecond });
  }
  await move("cancel");
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
