import { createHash } from "node:crypto";
import type { Actor } from "../kit/actor.ts";
import { jwtValues } from "../config/jwt-settings.ts";
import { configDirOf, loadConfig, type Config } from "../config/load.ts";
import type { ProgramName } from "../config/contradictions.ts";
import { openModelsClient, type ModelsClient } from "../db/prisma-internals/models-client.ts";
import { databaseFaultOf } from "../db/prisma-errors.ts";
import { OperatorError } from "../kit/errors.ts";
import type { Foundation, Storage } from "./infrastructure.ts";
import { applyMigration, migrationDue } from "./migrate.ts";
import type { Definitions } from "../mapping/definition.ts";
import { loadDefinitions } from "../mapping/load.ts";
import { prismaSchemaOf } from "../mapping/models.ts";

/** Settings and mapping files without a fault. */
export interface CheckedConfiguration {
  readonly config: Config;
  readonly definitions: Definitions;
  /** 12 hex digits, the same for the same mapping files, code modules and settings that can be reloaded. */
  readonly hash: string;
}

/** What a reload replaces as a whole. */
export interface Configuration extends CheckedConfiguration {
  readonly models: ModelsClient;
  readonly loadedAt: Date;
  close(): Promise<void>;
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
}: {
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  readonly program: ProgramName;
}): Promise<CheckedConfiguration> {
  const [settings, mapping] = await Promise.allSettled([
    // In a promise of its own: the faults of the one must not hide those of the other.
    Promise.resolve().then(() => loadConfig({ env, cwd, program })),
    loadDefinitions(configDirOf({ env, cwd })),
  ]);
  if (settings.status === "rejected" || mapping.status === "rejected") throw faultOf(settings, mapping);
  const { value: config } = settings;
  const { value: definitions } = mapping;
  return { config, definitions, hash: hashOf(config, definitions) };
}

function faultOf(...outcomes: readonly PromiseSettledResult<unknown>[]): unknown {
  const reasons = outcomes.flatMap((one) => (one.status === "rejected" ? [one.reason as unknown] : []));
  const known = reasons.filter((reason) => reason instanceof OperatorError);
  // Anything else is a fault of the program, and is not to be dressed up as one of the operator's.
  if (known.length < reasons.length || known.length === 1)
    return reasons.find((reason) => !(reason instanceof OperatorError)) ?? reasons[0];
  return new OperatorError(known.map(({ message }) => message).join("\n"), {
    faults: known.flatMap(({ faults }) => faults),
  });
}

/** Of what a reload can change, so that processes on the same files have the same hash, whatever their ports and folders. */
function hashOf(config: Config, definitions: Definitions): string {
  return createHash("sha256")
    .update(JSON.stringify([reloadableSettings(config), [...definitions.values()]]))
    .digest("hex")
    .slice(0, 12);
}

/** What a reload can change, in the groups of the settings. No secret is among it. */
export function reloadableSettings({
  database: { autoMigrate },
  auth,
  http,
  log,
  relay,
  webhooks: { adminNetworks: _derived, ...webhooks },
}: Config): Readonly<Record<string, Readonly<Record<string, unknown>>>> {
  const {
    host: _host,
    port: _port,
    trustedProxies: _proxies,
    memoryBudgetBytes: _budget,
    listTimeoutMs: _listTimeout,
    maxConnections: _most,
    maxConnectionsPerAddress: _mostPerAddress,
    ...requests
  } = http;
  return { database: { autoMigrate }, "auth.jwt": jwtValues(auth.jwt), http: requests, log, relay, webhooks };
}

/** Makes the client of the tables. Nothing of it is at work yet. */
export async function openConfiguration({
  checked,
  foundation: { database, isEmbedded, tracing },
}: {
  readonly checked: CheckedConfiguration;
  readonly foundation: Foundation;
}): Promise<Configuration> {
  const models = await openModelsClient({
    schemaText: prismaSchemaOf(checked.definitions),
    pool: database.pool,
    lists: database.lists,
    relay: database.relay,
    isEmbedded,
    tracing,
  });
  return { ...checked, models, loadedAt: new Date(), close: () => models.close() };
}

/**
 * Applies the migrations that are due when the settings allow it.
 *
 * @param actor For the audit trail.
 * @throws OperatorError that lists what is due and names `svc-admin migrate` when they do not, or when a migration is refused.
 */
export async function bringUpToDate({
  checked: { config, definitions },
  storage: { database, databaseUrl, log },
  actor,
}: {
  readonly checked: CheckedConfiguration;
  readonly actor: Actor;
  readonly storage: Pick<Storage, "database" | "databaseUrl" | "log">;
}): Promise<void> {
  const due = await migrationDue({ database, definitions });
  if (due.length === 0) return;
  if (!config.database.autoMigrate) {
    const hint =
      "Look at the changes with `svc-admin migrate --plan` and make them with `svc-admin migrate`, or set SVC_AUTO_MIGRATE=true.";
    throw new OperatorError(
      `The database is not up to date with this version and the mapping files:\n${due.map((line) => `  - ${line}`).join("\n")}\n${hint}`,
      { faults: [...due.map((line) => `the database is not up to date: ${line}`), hint] },
    );
  }
  await applyMigration({ url: databaseUrl, definitions, allowDestructive: false, log, actor });
}

/** Whether the database was lost on the way, so that the same may work later. */
export function isDatabaseAway(error: unknown): boolean {
  return databaseFaultOf(error).kind === "unavailable";
}
