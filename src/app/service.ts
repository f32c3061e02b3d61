import { serviceActor, type Actor } from "../kit/actor.ts";
import { recordConfiguration } from "./configuration-audit.ts";
import type { ProgramName } from "../config/contradictions.ts";
import {
  bringUpToDate,
  isDatabaseAway,
  openConfiguration,
  type CheckedConfiguration,
} from "./configuration.ts";
import { waitForDatabase } from "../db/client.ts";
import { loadCoreMigrations } from "../migration/core-migrations.ts";
import { messageOf } from "../kit/errors.ts";
import { openInfrastructure, type Infrastructure, type Storage } from "./infrastructure.ts";
import type { Readiness } from "./readiness.ts";
import type { HealthCheck } from "../http/health.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRegistration } from "./processes.ts";
import { startProgram, type Program } from "./generations.ts";
import { createReloader } from "./reload.ts";
import { runWorkers } from "./workers.ts";
import { refuseUnknownKeys } from "../subscriptions/stored-secrets.ts";

/** A program at work with what it stands on. */
export interface Service {
  readonly infrastructure: Infrastructure;
  readonly program: Program;
  /** Rejects when a part of it cannot go on. */
  readonly failed: Promise<never>;
  /** Listens for requests to reload no more, and takes the process off the list. */
  readonly leave: () => Promise<void>;
}

/**
 * Waits for the database and the broker, brings the database up to date where it may, and starts the program.
 *
 * @param read Reads the configuration anew, for a reload.
 * @param stopping Gives the start up.
 * @throws OperatorError for a fault that waiting does not mend.
 */
export async function startService({
  name,
  checked,
  read,
  log,
  metrics,
  readiness,
  stopping,
  onReload,
}: {
  readonly name: Exclude<ProgramName, "admin">;
  readonly checked: CheckedConfiguration;
  readonly read: () => Promise<CheckedConfiguration>;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly stopping: AbortSignal;
  readonly onReload: (listener: () => void) => void;
}): Promise<Service> {
  const actor = serviceActor(name);
  const infrastructure = await openInfrastructure({
    config: checked.config,
    program: name,
    log,
    metrics,
    readiness,
    prepare: (storage) => prepareDatabase({ checked, storage, actor, readiness, stopping }),
    signal: stopping,
  });
  try {
    const configuration = await openConfiguration({ checked, infrastructure });
    stopping.throwIfAborted();
    const program = await startProgram({ name, infrastructure, configuration });
    const reloader = createReloader({ program, infrastructure, read, actor, stopping });
    const registration = createRegistration({
      sql: infrastructure.sql,
      log,
      program: name,
      hash: () => program.configuration().hash,
      reload: () => reloader.reload(),
    });
    const registered = runWorkers({ workers: [registration], log });
    onReload(() => {
      void reloader
        .reload()
        .then((outcome) => registration.note(outcome))
        .catch((error: unknown) =>
          log.warn({ reason: messageOf(error) }, "the outcome of a reload was not written down"),
        );
    });
    readiness.watch("configuration", () => Promise.resolve(reloader.describe()));
    const failed = Promise.race([program.failed, registered.failed]);
    failed.catch(() => undefined);
    return {
      infrastructure,
      program,
      failed,
      async leave() {
        await registered.stop();
        await registration.remove();
      },
    };
  } catch (error) {
    await infrastructure.close();
    throw error;
  }
}

/** Migrates it where that may be, and looks at what is in it. A database that goes away on the way is waited for once more. */
async function prepareDatabase({
  checked,
  storage,
  actor,
  readiness,
  stopping,
}: {
  readonly checked: CheckedConfiguration;
  readonly storage: Storage;
  readonly actor: Actor;
  readonly readiness: Readiness;
  readonly stopping: AbortSignal;
}): Promise<void> {
  const { databaseUrl: url, log } = storage;
  for (;;) {
    try {
      readiness.waitsFor("migrations", "they are being looked at");
      await bringUpToDate({ checked, storage, actor });
      await refuseUnknownKeys(storage);
      await recordConfiguration({ ...storage, checked, action: "configuration.loaded", actor });
      return readiness.watch("migrations", await migrationsCheck(storage));
    } catch (error) {
      if (!isDatabaseAway(error) || stopping.aborted) throw error;
      log.warn({ reason: messageOf(error) }, "the database went away during the start");
      readiness.waitsFor("migrations", "the database went away");
      await waitForDatabase({ url, log, signal: stopping });
    }
  }
}

/**
 * Whether the database still has the tables of this version. One that has more is fine, or a migration ahead of a rolling upgrade
 * would take every process of the version before out of service. The managed tables are looked at when a configuration is
 * loaded: one that is migrated for the next configuration must not stop the present one.
 */
async function migrationsCheck({ sql }: Storage): Promise<HealthCheck> {
  const known = await loadCoreMigrations();
  return async () => {
    const applied = new Set(
      (await sql<{ name: string }>("SELECT name FROM svc.migrations")).map(({ name }) => name),
    );
    const missing = known.map(({ name }) => name).filter((name) => !applied.has(name));
    if (missing.length > 0) throw new Error(`the database lacks ${missing.join(", ")}`);
  };
}
