import type { Actor } from "../kit/actor.ts";
import { settingIn, type Config } from "../config/load.ts";
import {
  applyDueMigrations,
  openConfiguration,
  type CheckedConfiguration,
  type Configuration,
} from "./configuration.ts";
import { recordConfiguration, recordRefusal } from "./configuration-audit.ts";
import { messageOf, messageWithCause, OperatorError } from "../kit/errors.ts";
import type { Infrastructure } from "./infrastructure.ts";
import type { ReloadOutcome } from "../operations/processes.ts";
import type { Program } from "./generations.ts";
import { fixedSettings } from "../config/settings.ts";

/** Replaces the configuration of a program, or changes nothing. */
export interface Reloader {
  /**
   * Reads all files again. Never rejects. Runs one reload at a time. Requests during a reload share
   * the next one, which starts afterwards, since the files may have changed.
   */
  reload(): Promise<ReloadOutcome>;
  /** Returns the description of the configuration for `/readyz?verbose`. */
  describe(): string;
}

interface ReloadContext {
  readonly program: Pick<Program, "configuration" | "prepare">;
  readonly infrastructure: Infrastructure;
  /** Reads settings, mapping files and code; throws OperatorError with every fault. */
  readonly read: () => Promise<CheckedConfiguration>;
  /** Author of the reload, for the audit trail. */
  readonly actor: Actor;
  /** Cancels a reload that is not applied yet. */
  readonly stopping: AbortSignal;
}

interface Refusal {
  readonly at: Date;
  readonly faults: readonly string[];
}

interface ReloadState {
  /** Undefined when the last reload was applied, and before the first. */
  lastRefusal: Refusal | undefined;
}

export function createReloader(context: ReloadContext): Reloader {
  const { program } = context;
  let running: Promise<ReloadOutcome> | undefined;
  let next: Promise<ReloadOutcome> | undefined;
  const state: ReloadState = { lastRefusal: undefined };

  function start(): Promise<ReloadOutcome> {
    const current = reloadOnce(context, state).finally(() => {
      if (running === current) running = undefined;
    });
    running = current;
    return current;
  }

  return {
    reload() {
      if (running === undefined) return start();
      next ??= running.then(() => {
        next = undefined;
        return start();
      });
      return next;
    },
    describe: () => describe(program.configuration(), state.lastRefusal),
  };
}

function describe({ loadedAt, hash }: Configuration, refusal: Refusal | undefined): string {
  const current = `loaded ${loadedAt.toISOString()}, hash ${hash}`;
  if (refusal === undefined) return current;
  const [first = "", ...more] = refusal.faults;
  const others = more.length === 0 ? "" : ` (and ${more.length} more in the log)`;
  return `${current}; the reload at ${refusal.at.toISOString()} was refused, and this one stays in use: ${first}${others}`;
}

async function reloadOnce(context: ReloadContext, state: ReloadState): Promise<ReloadOutcome> {
  const { log, metrics } = context.infrastructure;
  const startedAt = performance.now();
  const { hash: before } = context.program.configuration();
  try {
    const { config, definitions, hash } = await replace(context);
    log.level = config.log.level;
    state.lastRefusal = undefined;
    metrics.configuration.reloaded(true);
    const durationMs = Math.round(performance.now() - startedAt);
    log.info(
      { event: "reload.applied", hash, before, resources: definitions.size, durationMs },
      "the configuration was reloaded",
    );
    return { kind: "applied", hash };
  } catch (error) {
    const faults = faultsOf(error);
    state.lastRefusal = { at: new Date(), faults };
    metrics.configuration.reloaded(false);
    const cause = error instanceof OperatorError ? {} : { err: error };
    log.error(
      { event: "reload.refused", hash: before, faults, ...cause },
      "the configuration was not reloaded; the previous one stays in use",
    );
    await noteRefusal(context, before, faults);
    return { kind: "refused", hash: before, faults };
  }
}

async function replace({
  program,
  infrastructure,
  read,
  actor,
  stopping,
}: ReloadContext): Promise<Configuration> {
  const { database } = infrastructure;
  const checked = await read();
  assertRestartSettingsUnchanged(program.configuration().config, checked.config);
  const configuration = await openConfiguration(checked, infrastructure);
  try {
    // Everything that can be refused comes before the change of the database.
    const activate = program.prepare(configuration);
    await applyDueMigrations(checked, infrastructure, actor);
    refuseWhileStopping(stopping);
    // Records directly before the change, because neither the row nor the change is undone.
    await recordConfiguration({ database, checked, action: "configuration.reloaded", actor });
    // Checks again, because a stop ends what runs now, but nothing that is activated later.
    refuseWhileStopping(stopping);
    activate();
  } catch (error) {
    await configuration.close();
    throw error;
  }
  return configuration;
}

function refuseWhileStopping(stopping: AbortSignal): void {
  if (stopping.aborted) throw new OperatorError("the process is stopping");
}

/**
 * Records a refused reload. Never rejects: nothing changed, and the row cannot be written while the
 * database is away.
 */
async function noteRefusal(
  { infrastructure: { database, log }, actor }: ReloadContext,
  hash: string,
  faults: readonly string[],
): Promise<void> {
  await recordRefusal({ database, hash, faults, actor }).catch((failure: unknown) =>
    log.warn({ reason: messageOf(failure) }, "the refused reload could not be recorded in the audit trail"),
  );
}

/**
 * Returns the faults of a refused reload. An error that is not an OperatorError is a fault of the
 * service or of a code module.
 */
function faultsOf(error: unknown): readonly string[] {
  if (error instanceof OperatorError) return error.faults;
  return [messageWithCause(error)];
}

function assertRestartSettingsUnchanged(current: Config, given: Config): void {
  const faults = fixedSettings
    .filter((key) => JSON.stringify(settingIn(current, key)) !== JSON.stringify(settingIn(given, key)))
    .map((key) => `${key} was changed, which takes a restart; put it back, or restart the process`);
  if (faults.length > 0) throw new OperatorError(faults.join("\n"), { faults });
}
