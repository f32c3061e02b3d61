import { waitForDatabase } from "../db/client.ts";
import { withMissingRight } from "../db/missing-right.ts";
import type { HealthCheck } from "../http/health.ts";
import type { Actor } from "../kit/actor.ts";
import { messageOf } from "../kit/errors.ts";
import { pause } from "../kit/worker.ts";
import type { Sql } from "../db/sql.ts";
import { titleOf, type HandMigration } from "../migration/hand-migrations.ts";
import { loadCoreMigrations } from "../migration/core-migrations.ts";
import { refuseUnknownKeys } from "../subscriptions/stored-secrets.ts";
import { recordConfiguration } from "./configuration-audit.ts";
import { applyDueMigrations, isDatabaseAway, type CheckedConfiguration } from "./configuration.ts";
import type { Readiness } from "./readiness.ts";
import type { Storage } from "./storage.ts";

/** A database may answer and still refuse, such as a standby, or one with a full disk. */
const againMs = 1_000;

/**
 * Migrates the database where the settings allow it, checks its secrets, and records the
 * configuration. Waits again when the connection to the database is lost meanwhile.
 *
 * @throws OperatorError when a migration is due and not allowed, or a secret has an unknown key.
 */
export async function prepareDatabase({
  checked,
  storage,
  actor,
  readiness,
  signal,
}: {
  readonly checked: CheckedConfiguration;
  readonly storage: Storage;
  readonly actor: Actor;
  readonly readiness: Readiness;
  readonly signal: AbortSignal;
}): Promise<void> {
  const { databaseUrl: url, log } = storage;
  for (;;) {
    try {
      readiness.waitsFor("migrations", "they are being checked");
      await applyDueMigrations(checked, storage, actor);
      await refuseUnknownKeys(storage);
      await recordConfiguration({ ...storage, checked, action: "configuration.loaded", actor });
      return readiness.watch("migrations", await migrationsCheck(storage, checked));
    } catch (error) {
      if (!isDatabaseAway(error) || signal.aborted) throw withMissingRight(error);
      log.warn({ reason: messageOf(error) }, "the database went away during the start");
      readiness.waitsFor("migrations", "the database went away");
      await waitForDatabase({ url, log, signal });
      await pause(againMs, signal);
    }
  }
}

/**
 * Returns a check that the database has the core migrations of this version. A database with more
 * migrations passes, because processes of the previous version must stay ready during a rolling
 * upgrade. The managed tables are checked only when a configuration is loaded.
 */
async function migrationsCheck(
  { sql }: Storage,
  { byHand }: Pick<CheckedConfiguration, "byHand">,
): Promise<HealthCheck> {
  const known = await loadCoreMigrations();
  return async () => {
    if (byHand.length > 0) await checkByHand(sql, byHand);
    const applied = new Set(
      (await sql<{ name: string }>("SELECT name FROM svc.migrations")).map(({ name }) => name),
    );
    const missing = known.map(({ name }) => name).filter((name) => !applied.has(name));
    if (missing.length > 0) throw new Error(`the database lacks ${missing.join(", ")}`);
  };
}

/**
 * Throws for migrations by hand that were not applied. Those of a reload were applied by the
 * reload.
 */
async function checkByHand(sql: Sql, byHand: readonly HandMigration[]): Promise<void> {
  const rows = await sql<{ name: string }>("SELECT name FROM svc.hand_migrations");
  const missing = byHand.filter(({ name }) => !rows.some((row) => row.name === name));
  if (missing.length > 0) throw new Error(`the database lacks ${missing.map(titleOf).join(", ")}`);
}
