import { maxMessageBytes } from "../broker/message-limit.ts";
import { createSeal, type Seal } from "../broker/seal.ts";
import type { ProgramName } from "../config/programs.ts";
import type { Config } from "../config/load.ts";
import { loadSecretKey } from "../config/secret-key.ts";
import { openDatabase, waitForDatabase, type Database, type ListLimits } from "../db/client.ts";
import { createSql, createTransact, type Sql, type Transact } from "../db/sql.ts";
import { refuseTransactionPooling } from "../db/transaction-pooling.ts";
import { createCursors, type Cursors } from "../querying/cursor.ts";
import { defaultMemoryBudget } from "../http/memory-budget.ts";
import { createSecretBox, type SecretBox } from "../subscriptions/secret.ts";
import type { Log } from "../telemetry/log.ts";
import type { Readiness } from "./readiness.ts";

/**
 * Exceeds the time of a svc-admin command on a new data dir, and of the stop of another service.
 */
const ownTimeoutMs = 15_000;

/** A standby reports this too. */
const readOnlyText = `SELECT current_setting('transaction_read_only')::boolean AS "isReadOnly"`;

/** The database and the keys of a process: the part of its infrastructure that needs no broker. */
export interface Storage {
  readonly log: Log;
  readonly database: Database;
  readonly sql: Sql;
  readonly transact: Transact;
  /** SQL over the connections of the dispatcher. */
  readonly dispatcherSql: Sql;
  /** Encrypts with the secret key, and decrypts with the previous keys too. */
  readonly secretBox: SecretBox;
  /** Signs the messages that go through the broker. */
  readonly seal: Seal;
  /** Encrypts the cursors of lists. */
  readonly cursors: Cursors;
  /** URL of the database, the embedded one included. */
  readonly databaseUrl: string;
  readonly isEmbedded: boolean;
}

/** Input of every step of opening the infrastructure. */
export interface Opening {
  readonly config: Config;
  /** Program, which decides the purpose of the connections and names them. */
  readonly program: ProgramName;
  readonly log: Log;
  readonly readiness: Readiness;
  /** Aborts the wait for a server that does not answer. */
  readonly signal: AbortSignal;
  /** Closers of opened parts, to which each step adds its own. */
  readonly closers: (() => Promise<void>)[];
}

/** Loads the secret key and opens the database. Waits for the database without a limit. */
export async function openStorage(opening: Opening): Promise<Storage> {
  const { config, log, program, readiness, signal, closers } = opening;
  const secretKey = await loadSecretKey({ configured: config.secretKey, dataDir: config.dataDir });
  const databaseUrl = config.database.url ?? (await openEmbeddedUrl(opening));
  await waitForDatabase({
    url: databaseUrl,
    log,
    signal,
    onWait: (reason) => readiness.waitsFor("database", reason),
  });
  const isEmbedded = config.database.url === undefined;
  // All sockets of the embedded database share one session.
  if (!isEmbedded) await refuseTransactionPooling(databaseUrl);
  const database = await openDatabase({
    url: databaseUrl,
    poolSize: config.database.poolSize,
    lists: program === "dispatcher" ? undefined : listLimitsOf(config),
    // One user's answers have half of the budget. The relay reads rows of 1 MiB as JSONB, and then
    // one of up to 32 MiB as text (src/events/outbox.ts).
    maxResultBytes: Math.max(4 * maxMessageBytes, Math.floor(memoryBudgetOf(config) / 2)),
    relays: program !== "dispatcher",
    dispatches: program !== "api",
    program,
    isEmbedded,
    log,
  });
  closers.push(() => database.close());
  const sql = createSql({ pool: database.pool, isEmbedded });
  readiness.watch("database", async () => {
    const [row] = await sql<{ isReadOnly: boolean }>(readOnlyText);
    if (row?.isReadOnly === true) throw new Error("the server only lets read");
  });
  return {
    log,
    database,
    sql,
    transact: createTransact(database.pool),
    dispatcherSql: createSql({ pool: database.dispatcher, isEmbedded }),
    secretBox: createSecretBox(secretKey, config.previousSecretKeys),
    seal: createSeal(secretKey, config.previousSecretKeys),
    cursors: createCursors(secretKey, config.previousSecretKeys),
    databaseUrl,
    isEmbedded,
  };
}

async function openEmbeddedUrl({ config, log, signal, closers }: Opening): Promise<string> {
  // Imports lazily, because PGlite takes 7 MB when it is loaded, and servers do not need it.
  const { openEmbedded } = await import("../embedded/embedded.ts");
  const embedded = await openEmbedded({
    dataDir: config.dataDir,
    log,
    // A service on another process's database would end with that process, even a short svc-admin
    // command.
    mustOwn: true,
    openTimeoutMs: ownTimeoutMs,
    signal,
  });
  closers.push(() => embedded.close());
  return embedded.url;
}

function memoryBudgetOf({ http }: Config): number {
  return http.memoryBudgetBytes ?? defaultMemoryBudget(http.bodyLimitBytes);
}

/**
 * Limits the lists to four in ten connections, and each result to 1/32 of the memory budget.
 * Several results are in memory at once, in several forms. Each may hold at least two bodies. One
 * record may be as large as an event.
 */
function listLimitsOf(config: Config): ListLimits {
  const { database, http } = config;
  return {
    connections: Math.max(1, Math.floor(database.poolSize * 0.4)),
    statementTimeoutMs: http.listTimeoutMs,
    maxResultBytes: Math.max(2 * http.bodyLimitBytes, Math.floor(memoryBudgetOf(config) / 32)),
    maxRowBytes: maxMessageBytes,
  };
}
