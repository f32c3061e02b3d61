import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { until } from "../../test/support/wait.ts";
import { callerOf, subscribe, type CallApi } from "../call-api.ts";
import { openReceivers, writeEvenly, type Receiver } from "../deliveries.ts";
import { medianOf } from "../numbers.ts";
import { startProgram } from "../program.ts";
import type { BenchContext } from "../requests.ts";
import type { Manner } from "../receiver.ts";

/** p99 of the healthy receivers in ms, with some that misbehave and with none directly before. */
export interface CrowdResult {
  readonly manner: string;
  readonly none: number;
  readonly some: number;
  /** Ratio of the two in each round; the median is the result. */
  readonly ratios: readonly number[];
}

const receiverCount = 200;
const badCount = 20;
const ratePerSecond = 60;
const rounds = 3;

/**
 * Measures 200 users with a receiver each. In turn all are well, or a tenth of them hangs, fails,
 * answers 429, or exceeds a rate limit.
 */
export async function measureCrowd(context: BenchContext): Promise<readonly CrowdResult[]> {
  const { surroundings, scale, progress } = context;
  const databaseUrl = await surroundings.copyDatabase("svc_crowd");
  const pool = surroundings.connect(databaseUrl);
  const crowd = await openReceivers(context.atEnd, receiverCount);
  const { ports } = crowd;
  const api = await startProgram(context, "api", { databaseUrl });
  const dispatcher = await startProgram(context, "dispatcher", { databaseUrl });
  const callApi = callerOf({ port: api.port, token: surroundings.token });
  const userIds = await subscribeAll(pool, ports, callApi);
  const phase = { pool, crowd, userIds, durationMs: 20_000 * scale };
  // All receivers are known afterwards, and every connection is open.
  await measurePhase({ ...phase, durationMs: 10_000 });
  const results: CrowdResult[] = [];
  for (const manner of ["hanging", "failing", "rate-limited", "over their rate_limit"] as const) {
    const pairs: { readonly none: number; readonly some: number }[] = [];
    for (let round = 0; round < rounds; round += 1) {
      progress(`a tenth of ${receiverCount} receivers ${manner}, round ${round + 1} of ${rounds}`);
      const none = await measurePhase(phase);
      await misbehave({ pool, crowd }, manner);
      const some = await measurePhase(phase);
      await recover({ pool, crowd }, ports, userIds);
      pairs.push({ none, some });
    }
    const ratios = pairs.map(({ none, some }) => some / none);
    const [none, some] = [medianOf(pairs.map((one) => one.none)), medianOf(pairs.map((one) => one.some))];
    results.push({ manner, none, some, ratios });
  }
  await dispatcher.stop();
  await api.stop();
  crowd.end();
  return results;
}

interface Place {
  readonly pool: Pool;
  readonly crowd: Receiver;
}

const bad = Array.from({ length: badCount }, (_, at) => receiverCount - badCount + at);

/** Copies a subscription of the API to each user, each with a copy of the secret. */
async function subscribeAll(
  pool: Pool,
  ports: readonly number[],
  callApi: CallApi,
): Promise<readonly number[]> {
  const id = await subscribe(callApi, 9);
  const { rows } = await pool.query<{ readonly id: number }>(
    `INSERT INTO svc.users (name, email) SELECT 'User ' || n, 'user-' || n || '@example.com' FROM generate_series(1, $1::int) AS n RETURNING id`,
    [receiverCount],
  );
  const userIds = rows.map((row) => row.id);
  await pool.query(
    `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, updated_at)
     SELECT given.user_id, given.url, resource, events, encrypted_secret, secret_hint, now()
     FROM svc.subscriptions CROSS JOIN unnest($2::int[], $3::text[]) AS given (user_id, url) WHERE id = $1`,
    [id, userIds, ports.map((one) => `http://127.0.0.1:${one}/`)],
  );
  await pool.query("DELETE FROM svc.subscriptions WHERE id = $1", [id]);
  return userIds;
}

/** Measures the p99 of the healthy receivers under a constant load of all users in turn. */
async function measurePhase({
  pool,
  crowd,
  userIds,
  durationMs,
}: Place & { readonly userIds: readonly number[]; readonly durationMs: number }): Promise<number> {
  await crowd.ask({ kind: "begin" });
  await writeEvenly({ pool, userIds, ratePerSecond, durationMs });
  await sleep(1_000);
  const { latencyMs } = await crowd.ask({ kind: "report", below: receiverCount - badCount });
  return latencyMs.p99;
}

type BadManner = Exclude<Manner, "ok"> | "over their rate_limit";

async function misbehave({ pool, crowd }: Place, manner: BadManner): Promise<void> {
  if (manner !== "over their rate_limit")
    return void (await crowd.ask({ kind: "behave", receivers: bad, manner }));
  await pool.query(
    "UPDATE svc.subscriptions SET rate_limit = 0.1 WHERE id IN (SELECT id FROM svc.subscriptions ORDER BY id DESC LIMIT $1)",
    [badCount],
  );
}

/**
 * Gives the bad webhooks new URLs of the same receivers, and drops their waiting deliveries, so
 * that the next phase starts clean.
 */
async function recover(
  { pool, crowd }: Place,
  ports: readonly number[],
  userIds: readonly number[],
): Promise<void> {
  await crowd.ask({ kind: "behave", receivers: bad, manner: "ok" });
  const urls = bad.map((at) => `http://127.0.0.1:${ports[at]}/${Date.now()}`);
  await pool.query(
    `UPDATE svc.subscriptions AS subscription SET url = given.url, rate_limit = NULL
     FROM unnest($1::int[], $2::text[]) AS given (user_id, url) WHERE subscription.user_id = given.user_id`,
    [bad.map((at) => userIds[at]), urls],
  );
  const drop = `
    WITH gone AS (DELETE FROM svc.delivery_queue RETURNING delivery_id)
    UPDATE svc.deliveries SET status = 'cancelled', last_error = 'The phase is over.'
    WHERE id IN (SELECT delivery_id FROM gone) AND status IN ('pending', 'retrying')`;
  const isQuiet = async (): Promise<boolean> => {
    await pool.query(drop);
    const { rows } = await pool.query<{ readonly count: number }>(
      "SELECT count(*)::int AS count FROM svc.flights",
    );
    return rows[0]?.count === 0;
  };
  // Hanging attempts end with the time limit of an attempt.
  await until(isQuiet, { what: "the attempts of a phase to end", timeoutMs: 120_000 });
}
