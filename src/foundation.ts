import { createInProcessBroker } from "./broker/in-process.ts";
import { connectRabbitMq } from "./broker/rabbitmq.ts";
import type { Broker } from "./broker/broker.ts";
import type { Config } from "./config.ts";
import { openDatabase, waitForDatabase, type Database } from "./db/client.ts";
import { openEmbedded } from "./db/embedded.ts";
import { openModelsClient, type ModelsClient } from "./db/models-client.ts";
import { createSql, type Sql } from "./db/sql.ts";
import { OperatorError } from "./errors.ts";
import type { Log } from "./log.ts";
import { applyMigration, migrationDue } from "./migration.ts";
import type { Definitions } from "./resources/definition.ts";
import { loadDefinitions } from "./resources/load.ts";
import { prismaSchemaOf } from "./resources/models.ts";
import { loadSecretKey } from "./secret-key.ts";

/** Longer than a command of svc-admin on a new data dir, and than another service takes to stop. */
const ownTimeoutMs = 15_000;

/** What the API and the dispatcher stand on. One of it serves both in `svc all`. */
export interface Foundation {
  readonly config: Config;
  readonly log: Log;
  readonly definitions: Definitions;
  readonly database: Database;
  readonly sql: Sql;
  readonly models: ModelsClient;
  readonly broker: Broker;
  readonly secretKey: Buffer;
  /** Closes everything, last opened first. */
  close(): Promise<void>;
}

/**
 * Opens the database, the mapping files and the broker, in the order in which they need one another.
 *
 * @param signal Gives up waiting for a server that does not answer.
 * @throws OperatorError for faults that an operator can mend.
 */
export async function openFoundation({
  config,
  log,
  signal,
}: {
  readonly config: Config;
  readonly log: Log;
  readonly signal: AbortSignal;
}): Promise<Foundation> {
  const releasers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    while (releasers.length > 0) await releasers.pop()?.();
  };
  try {
    const definitions = await loadDefinitions(config.configDir);
    const secretKey = await loadSecretKey({ configured: config.secretKey, dataDir: config.dataDir });

    const isEmbedded = config.database.url === undefined;
    let url = config.database.url;
    if (url === undefined) {
      const embedded = await openEmbedded({
        dataDir: config.dataDir,
        log,
        // A service on another process's database would end with that process, be it only a command of svc-admin.
        mustOwn: true,
        openTimeoutMs: ownTimeoutMs,
        signal,
      });
      releasers.push(() => embedded.close());
      url = embedded.url;
    }
    await waitForDatabase({ url, log, signal });
    const database = await openDatabase({ url, poolSize: config.database.poolSize, isEmbedded, log });
    releasers.push(() => database.close());

    await bringUpToDate({ config, log, definitions, database, url });

    const models = await openModelsClient({
      schemaText: prismaSchemaOf(definitions),
      dataDir: config.dataDir,
      pool: database.pool,
      isEmbedded,
      log,
    });
    releasers.push(() => models.close());

    const broker =
      config.broker.url === undefined
        ? createInProcessBroker({ log })
        : await connectRabbitMq({ url: config.broker.url, log, signal });
    releasers.push(() => broker.close());

    const sql = createSql({ pool: database.pool, isEmbedded });
    return { config, log, definitions, database, sql, models, broker, secretKey, close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function bringUpToDate({
  config,
  log,
  definitions,
  database,
  url,
}: {
  readonly config: Config;
  readonly log: Log;
  readonly definitions: Definitions;
  readonly database: Database;
  readonly url: string;
}): Promise<void> {
  const due = await migrationDue({ database, definitions });
  if (due.length === 0) return;
  if (!config.database.autoMigrate) {
    throw new OperatorError(
      `The database is not up to date with this version and the mapping files:\n${due.map((line) => `  - ${line}`).join("\n")}\n` +
        "Look at the changes with `svc-admin migrate --plan` and make them with `svc-admin migrate`, or set SVC_AUTO_MIGRATE=true.",
    );
  }
  await applyMigration({ url, definitions, allowDestructive: false, log });
}
