import { cpSync, writeFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pool } from "pg";
import { makeFolder, removeFolder } from "../../test/support/private-process.ts";
import { until } from "../../test/support/wait.ts";
import { serviceSettings } from "../mapping-files.ts";
import { medianOf } from "../numbers.ts";
import { startProgram, type Program } from "../program.ts";
import type { BenchContext } from "../requests.ts";
import { makeHistory } from "./history.ts";
import { freshP99, openPair } from "./pair.ts";

export interface RetentionResult {
  readonly deliveries: number;
  /** Removed deliveries a second, beside fresh ones. */
  readonly perSecond: number;
  /** p99 of the fresh deliveries in ms, without retention and during it; medians of the rounds. */
  readonly idle: number;
  readonly working: number;
  readonly ratios: readonly number[];
  /**
   * Bytes of the tables with all deliveries, after their removal, and after as many were added
   * again.
   */
  readonly bytes: { readonly full: number; readonly gone: number; readonly again: number };
}

const rounds = 3;
const limitMs = 900_000;

/** Measures the removal of old deliveries by a dispatcher, while others are made. */
export async function measureRetention(context: BenchContext): Promise<RetentionResult> {
  const { surroundings, scale, progress } = context;
  const databaseUrl = await surroundings.copyDatabase("svc_retention");
  const pool = surroundings.connect(databaseUrl);
  const api = await startProgram(context, "api", { databaseUrl });
  const { crowd, freshId, subscriptionId } = await openPair({ context, pool, port: api.port });
  const deliveries = Math.max(5_000, Math.round(1_000_000 * scale));
  const history = { subscriptionId, userId: surroundings.userId, count: deliveries, age: "40 days" };
  progress(`${deliveries} old deliveries`);
  await makeHistory(pool, history);
  const full = await bytesOf(pool);
  const phase = (durationMs = 15_000 * scale): Promise<number> =>
    freshP99({ pool, crowd, freshId, durationMs });
  const start = (days: number): Promise<Program> =>
    startProgram(context, "dispatcher", {
      databaseUrl,
      env: { SVC_CONFIG_DIR: configurationWith(days, context) },
    });
  const pairs: { readonly idle: number; readonly working: number; readonly perSecond: number }[] = [];
  for (let round = 0; round < rounds; round += 1) {
    progress(`fresh deliveries without and beside retention, round ${round + 1} of ${rounds}`);
    const without = await start(0);
    await phase(2_000);
    const idle = await phase();
    await without.stop();
    const dispatcher = await start(30);
    await phase(2_000);
    const [before, startedAt] = [await oldCount(pool), performance.now()];
    const working = await phase();
    const perSecond = (before - (await oldCount(pool))) / ((performance.now() - startedAt) / 1_000);
    await dispatcher.stop();
    // Without rows to remove there is nothing to measure.
    if (before > 0) pairs.push({ idle, working, perSecond });
  }
  progress("the rest of the old deliveries");
  const last = await start(30);
  const isGone = async (): Promise<boolean> => (await sleep(1_000), (await oldCount(pool)) === 0);
  await until(isGone, { what: "the old deliveries to go", timeoutMs: limitMs });
  await last.stop();
  await vacuum(pool);
  const gone = await bytesOf(pool);
  await makeHistory(pool, history);
  const again = await bytesOf(pool);
  await api.stop();
  crowd.end();
  return {
    deliveries,
    perSecond: medianOf(pairs.map((one) => one.perSecond)),
    idle: medianOf(pairs.map((one) => one.idle)),
    working: medianOf(pairs.map((one) => one.working)),
    ratios: pairs.map(({ idle, working }) => working / idle),
    bytes: { full, gone, again },
  };
}

/** Returns a copy of the benchmark's configuration that keeps events for this many days. */
function configurationWith(days: number, { surroundings, atEnd }: BenchContext): string {
  const folder = makeFolder("bench-retention");
  atEnd(() => removeFolder(folder));
  cpSync(String(surroundings.env["SVC_CONFIG_DIR"]), folder, { recursive: true });
  writeFileSync(`${folder}/service.yaml`, `${serviceSettings}\nretention:\n  days: ${days}\n`);
  return folder;
}

const tables = ["events", "deliveries", "attempts", "event_data"];

async function bytesOf(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ readonly bytes: number }>(
    "SELECT sum(pg_total_relation_size(('svc.' || name)::regclass))::float8 AS bytes FROM unnest($1::text[]) AS given (name)",
    [tables],
  );
  return rows[0]?.bytes ?? Number.NaN;
}

/** Does the work of autovacuum at once. */
async function vacuum(pool: Pool): Promise<void> {
  for (const table of tables) await pool.query(`VACUUM svc.${table}`);
}

async function oldCount(pool: Pool): Promise<number> {
  const text =
    "SELECT count(*)::int AS count FROM svc.deliveries WHERE updated_at < now() - interval '30 days'";
  return (await pool.query<{ readonly count: number }>(text)).rows[0]?.count ?? 0;
}
