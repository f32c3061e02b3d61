import { createHash } from "node:crypto";
import type { Actor } from "../kit/actor.ts";
import { configDirOf, loadConfig, settingIn, type Config, type Environment } from "../config/load.ts";
import { fixedSettings, placeOf, settingKeys } from "../config/settings.ts";
import type { ProgramName } from "../config/programs.ts";
import { createLazyModels, type LazyModels } from "../db/models-client.ts";
import { databaseFaultOf } from "../db/database-fault.ts";
import { codeOf, OperatorError } from "../kit/errors.ts";
import type { Storage } from "./storage.ts";
import { applyMigration, listed } from "./apply-migration.ts";
import { migrationDue } from "./migration-due.ts";
import type { Definitions } from "../mapping/definition.ts";
import { loadHandMigrations, type HandMigration } from "../migration/hand-migrations.ts";
import { loadDefinitions } from "../mapping/load.ts";
import { prismaSchemaOf } from "../mapping/models.ts";
import type { Tracing } from "../telemetry/tracing.ts";

/** Settings and mapping files without a fault. */
export interface CheckedConfiguration {
  readonly config: Config;
  readonly definitions: Definitions;
  readonly byHand: readonly HandMigration[];
  /** 12 hex digits. Equal for equal mapping files, code modules and reloadable settings. */
  readonly hash: string;
}

/** A checked configuration with its client of the tables. A reload replaces it as a whole. */
export interface Configuration extends CheckedConfiguration {
  readonly models: LazyModels;
  readonly loadedAt: Date;
  close(): Promise<void>;
}

export interface ConfigurationSource {
  /** Reads the configuration again; throws OperatorError with every fault. */
  readonly read: () => Promise<CheckedConfiguration>;
  /** Folder to which the paths in faults are relative. */
  readonly cwd: string;
}

/**
 * Reads the settings, the mapping files and their code modules.
 *
 * @throws OperatorError that lists every fault of all of them.
 */
export async function readConfiguration({
  env,
  cwd,
  program,
}: Environment & { readonly program: ProgramName }): Promise<CheckedConfiguration> {
  const configDir = configDirOf({ env, cwd });
  const [settings, mapping, migrations] = await Promise.allSettled([
    // Runs in a promise of its own, so that faults of one part do not hide those of the other.
    Promise.resolve().then(() => loadConfig({ env, cwd, program })),
    loadDefinitions(configDir),
    loadHandMigrations(configDir),
  ]);
  if (settings.status === "rejected" || mapping.status === "rejected" || migrations.status === "rejected")
    throw faultOf(settings, mapping, migrations);
  const { value: config } = settings;
  const { value: definitions } = mapping;
  const { value: byHand } = migrations;
  return { config, definitions, byHand, hash: hashOf(config, definitions, byHand) };
}

function faultOf(...outcomes: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const known = reasons.filter((reason) => reason instanceof OperatorError);
  // Any other error is a fault of the program, not of the operator.
  if (known.length < reasons.length || known.length === 1)
    return reasons.find((reason) => !(reason instanceof OperatorError)) ?? reasons[0];
  return new OperatorError(known.map(({ message }) => message).join("\n"), {
    faults: known.flatMap(({ faults }) => faults),
  });
}

/**
 * Hashes everything that a reload can change. Processes on the same files have the same hash, at
 * any ports and folders.
 */
function hashOf(config: Config, definitions: Definitions, byHand: readonly HandMigration[]): string {
  return fingerprint([
    reloadableSettings(config),
    [...definitions.values()],
    ...(byHand.length === 0 ? [] : [byHand]),
  ]);
}

/** Returns 12 hex digits of the SHA-256 of a value as JSON. */
export function fingerprint(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 12);
}

/** Returns the settings that a reload can change, in their groups. No secret is among them. */
export function reloadableSettings(
  config: Config,
): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const groups: Record<string, Record<string, unknown>> = {};
  for (const key of settingKeys) {
    if (fixedSettings.includes(key)) continue;
    const { group = "", name } = placeOf(key);
    (groups[group] ??= {})[name] = settingIn(config, key);
  }
  return groups;
}

/**
 * Opens the client of the tables: at once for code modules, else at its first use. Starts nothing.
 */
export async function openConfiguration(
  checked: CheckedConfiguration,
  { database, isEmbedded, tracing }: Pick<Storage, "database" | "isEmbedded"> & { readonly tracing: Tracing },
): Promise<Configuration> {
  const models = createLazyModels(async () => {
    const { openModelsClient } = await import("../db/prisma-internals/models-client.ts");
    return openModelsClient({
      schemaText: prismaSchemaOf(checked.definitions),
      pool: database.pool,
      lists: database.lists,
      relay: database.relay,
      isEmbedded,
      tracing,
    });
  });
  // Opens at once for code modules: a fault of the models shows at the start, and no first request
  // waits.
  const hasCode = [...checked.definitions.values()].some(({ codeHash }) => codeHash !== undefined);
  if (hasCode) await models.get();
  return { ...checked, models, loadedAt: new Date(), close: () => models.close() };
}

/**
 * Applies due migrations, if the settings allow it.
 *
 * @param actor For the audit trail.
 * @throws OperatorError when a migration is refused, or when the settings do not allow one that is
 *   due. The message then lists the due migrations and names `svc-admin migrate`.
 */
export async function applyDueMigrations(
  { config, definitions, byHand }: CheckedConfiguration,
  { database, databaseUrl, log }: Pick<Storage, "database" | "databaseUrl" | "log">,
  actor: Actor,
): Promise<void> {
  const due = await migrationDue({ database, definitions, byHand });
  if (due.length === 0) return;
  if (!config.database.autoMigrate) {
    const hint =
      "Look at the changes with `svc-admin migrate --plan` and make them with `svc-admin migrate`, or set SVC_AUTO_MIGRATE=true.";
    throw new OperatorError(
      `The database is not up to date with this version and the mapping files:\n${listed(due)}\n${hint}`,
      { faults: [...due.map((line) => `the database is not up to date: ${line}`), hint] },
    );
  }
  await applyMigration({ url: databaseUrl, definitions, byHand, allowDestructive: false, log, actor });
}

/** Returns whether the database connection was lost, so that a retry may succeed. */
export function isDatabaseAway(error: unknown): boolean {
  if (error instanceof OperatorError) return isConnectionLost(error.cause);
  return databaseFaultOf(error).kind === "unavailable";
}

/**
 * Prefixes of the error codes of a lost connection, and of a server that only lets read. Class 08
 * is missing, because a step can get those codes from other servers that it reads from.
 */
const lostCodes = ["57P", "25006", "ECONN", "EPIPE", "ETIMEDOUT", "EHOST", "ENET"];

/**
 * Returns whether the cause of an OperatorError is a lost primary. A busy table or a full disk
 * is for the operator.
 */
function isConnectionLost(cause: unknown): boolean {
  if (cause instanceof OperatorError) return isConnectionLost(cause.cause);
  const code = codeOf(cause);
  const isLost = code === undefined || lostCodes.some((start) => code.startsWith(start));
  return isLost && databaseFaultOf(cause).kind === "unavailable";
}
