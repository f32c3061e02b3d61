import { applyCoreMigrations } from "../app/apply-migration.ts";
import { createEligibilityOf } from "../app/eligibility.ts";
import { dueCoreSteps } from "../app/plan-migration.ts";
import { operatorActor } from "../kit/actor.ts";
import { loadConfig, type Config, type Environment } from "../config/load.ts";
import type { CommandContext } from "../db/command-context.ts";
import { openDatabase, waitForDatabase, type Database } from "../db/client.ts";
import { openEmbedded } from "../embedded/embedded.ts";
import { findInstalled } from "../migration/installed.ts";
import { inMigrationTransaction } from "../migration/core-migrations.ts";
import { createIndexSql, createSql, createTransact } from "../db/sql.ts";
import { refuseTransactionPooling } from "../db/transaction-pooling.ts";
import { OperatorError } from "../kit/errors.ts";
import { loadDefinitions } from "../mapping/load.ts";
import type { Eligibility } from "../subscriptions/eligibility.ts";
import type { Log } from "../telemetry/log.ts";

/**
 * The database that `svc-admin` works on. It is the one of `DATABASE_URL`, or the embedded
 * database, which `svc all` may be running.
 */
export interface AdminContext extends CommandContext {
  readonly config: Config;
  readonly database: Database;
  readonly url: string;
  readonly log: Log;
  /**
   * Reads the rules of access from the mapping files.
   *
   * @throws OperatorError with the faults of the files.
   */
  readonly loadEligibility: () => Promise<Eligibility>;
}

/** Sources of the settings of a command, and its log. */
interface AdminOptions extends Environment {
  readonly log: Log;
}

/**
 * Opens the database, in any state.
 *
 * @throws OperatorError for a bad setting, or a database that does not answer. Does not retry,
 *   since a person waits.
 */
export async function openAdmin({ env, cwd, log }: AdminOptions): Promise<AdminContext> {
  const config = loadConfig({ env, cwd, program: "admin" });
  const isEmbedded = config.database.url === undefined;
  const embedded = isEmbedded ? await openEmbedded({ dataDir: config.dataDir, log }) : undefined;
  const url = embedded?.url ?? config.database.url ?? "";
  try {
    await waitForDatabase({ url, log, signal: AbortSignal.abort() });
    if (!isEmbedded) await refuseTransactionPooling(url);
    const database = await openDatabase({ url, poolSize: 2, isEmbedded, log });
    const sql = createSql({ pool: database.pool, isEmbedded });
    return {
      config,
      database,
      sql,
      listSql: createIndexSql(database.pool),
      transact: createTransact(database.pool),
      url,
      log,
      actor: operatorActor(),
      loadEligibility: async () =>
        createEligibilityOf({ database, isEmbedded, log }, await loadDefinitions(config.configDir)),
      async close() {
        await database.close();
        await embedded?.close();
      },
    };
  } catch (error) {
    await embedded?.close();
    throw error;
  }
}

/**
 * Opens a database with the service's own tables. Creates missing tables where migrations are
 * automatic, the default of the embedded database. The managed tables wait for the next start.
 *
 * @throws OperatorError like `openAdmin`, and naming `svc-admin migrate` when tables are missing
 *   and migrations are not automatic.
 */
export async function openMigratedAdmin(options: AdminOptions): Promise<AdminContext> {
  const context = await openAdmin(options);
  try {
    await ensureCoreTables(context);
    return context;
  } catch (error) {
    await context.close();
    throw error;
  }
}

async function ensureCoreTables({ config, database, url, log, actor }: AdminContext): Promise<void> {
  const due = await dueCoreSteps(await findInstalled(database.pool));
  if (due.length === 0) return;
  if (!config.database.autoMigrate) {
    throw new OperatorError(
      "The database does not have the service's tables of this version. Make them with: svc-admin migrate",
    );
  }
  await inMigrationTransaction({
    url,
    isReadOnly: false,
    log,
    // Checks again what is due: a service that starts now creates the same tables.
    work: (client) => applyCoreMigrations(client, actor),
  });
}
