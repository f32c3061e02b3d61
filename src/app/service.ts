import { serviceActor } from "../kit/actor.ts";
import type { ServiceName } from "../config/programs.ts";
import { openConfiguration, type CheckedConfiguration, type ConfigurationSource } from "./configuration.ts";
import { messageOf } from "../kit/errors.ts";
import { openInfrastructure, type Infrastructure } from "./infrastructure.ts";
import type { Readiness } from "./readiness.ts";
import type { Log } from "../telemetry/log.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { createRegistration, type Registration } from "../operations/processes.ts";
import { startProgram, type Program } from "./generations.ts";
import { createReloader, type Reloader } from "./reload.ts";
import { runWorkers } from "./workers.ts";
import { ensureFirstUser } from "../users/first-user.ts";
import { createTokenProvider } from "../users/provider.ts";
import { createUserStore } from "../users/store.ts";

/** A running program and its infrastructure. */
export interface Service {
  readonly infrastructure: Infrastructure;
  readonly program: Program;
  /** File with the token of the first user, on the embedded database. */
  readonly tokenFile: string | undefined;
  /** Rejects when a part of the service cannot continue. */
  readonly failed: Promise<never>;
  /** Stops listening for reloads, and deletes the row of the process. */
  readonly leave: () => Promise<void>;
}

/**
 * Opens the infrastructure, prepares the database, and starts the program.
 *
 * @param source Source of the configuration, for reloads.
 * @param stopping Signal that aborts the start.
 * @throws OperatorError for a fault that waiting does not repair.
 */
export async function startService(options: {
  readonly name: ServiceName;
  readonly checked: CheckedConfiguration;
  readonly source: ConfigurationSource;
  readonly log: Log;
  readonly metrics: Metrics;
  readonly readiness: Readiness;
  readonly stopping: AbortSignal;
  readonly onReload: (listener: () => void) => void;
}): Promise<Service> {
  const { name, checked, source, log, readiness, stopping, onReload } = options;
  const actor = serviceActor(name);
  const infrastructure = await openInfrastructure({ ...options, program: name, actor, signal: stopping });
  try {
    const configuration = await openConfiguration(checked, infrastructure);
    stopping.throwIfAborted();
    // Creates the file before the service is ready, because a script that waits for readiness reads
    // it next.
    const tokenFile = await firstTokenFile(infrastructure, checked);
    const program = await startProgram({ name, infrastructure, configuration, source });
    const reloader = createReloader({ program, infrastructure, read: source.read, actor, stopping });
    const { processId, sql, isEmbedded, sharedSlots } = infrastructure;
    const registration: Registration = createRegistration({
      id: processId,
      sql,
      log,
      program: name,
      hash: () => program.configuration().hash,
      reload: () => reloader.reload(),
      onDispatchers(ids) {
        // On the embedded database, a second row belongs to a process that died.
        if (!isEmbedded) sharedSlots.see(ids);
      },
      onRegistered: () => void reloadIfStale(source, program, reload),
    });
    const reload = (): Promise<void> => reloadAndNote(reloader, registration, log);
    const registered = runWorkers([registration], log);
    onReload(() => void reload());
    readiness.watch("configuration", () => Promise.resolve(reloader.describe()));
    const failed = Promise.race([program.failed, registered.failed]);
    failed.catch(() => undefined);
    return {
      infrastructure,
      program,
      tokenFile,
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

/** Creates the first user, and returns the file with its token; undefined where there is none. */
async function firstTokenFile(
  { sql, transact, log, isEmbedded }: Infrastructure,
  { config }: CheckedConfiguration,
): Promise<string | undefined> {
  if (!isEmbedded) return undefined;
  // Only `svc all` runs on the embedded database.
  const given = { sql, transact, actor: serviceActor("all") };
  const tokens = createTokenProvider({ ...given, log });
  return ensureFirstUser(createUserStore(given), tokens, config.dataDir);
}

/**
 * Reloads when the files have changed since they were read: a start may wait hours for its servers.
 * Reloads faulty files too, because the reload reports the faults. Never rejects.
 */
async function reloadIfStale(
  { read }: ConfigurationSource,
  program: Program,
  reload: () => Promise<void>,
): Promise<void> {
  const found = await read().catch(() => undefined);
  if (found?.hash !== program.configuration().hash) await reload();
}

/** Reloads for a signal, and records the outcome. Never rejects. */
async function reloadAndNote(reloader: Reloader, registration: Registration, log: Log): Promise<void> {
  try {
    await registration.note(await reloader.reload());
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "the outcome of a reload could not be recorded");
  }
}
