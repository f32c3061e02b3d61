import type { Broker } from "../broker/broker.ts";
import { createInProcessBroker } from "../broker/in-process.ts";
import { connectRabbitMq } from "../broker/rabbitmq.ts";
import type { Config } from "../config/load.ts";
import type { ProgramName } from "../config/contradictions.ts";
import { openDatabase, waitForDatabase, type Database, type ListLimits } from "../db/client.ts";
import { openEmbedded } from "../embedded/embedded.ts";
import { createCursors, type Cursors } from "../querying/cursor.ts";
import { createSeal, type Seal } from "../broker/seal.ts";
import { createSql, type Sql } from "../db/sql.ts";
import { defaultMemoryBudget } from "../http/memory-budget.ts";
import type { Readiness } from "./readiness.ts";
import type { Log } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { addScrapeSources } from "./scrape-sources.ts";
import { loadSecretKey } from "../config/secret-key.ts";
import { createSecretBox, type SecretBox } from "../subscriptions/secret.ts";
import { startTracing, type Tracing } from "../telemetry/tracing.ts";

/** Longer than a command of svc-admin on a new data dir, and than another service takes to stop. */
const ownTimeoutMs = 15_000;

/** What lives as long as the process, whatever its configuration. One of it serves API and dispatcher in `svc all`. */
export interface Foundation {
  readonly log: Log;
  readonly metrics: Metrics;
  readonly database: Database;
  readonly sql: Sql;
  /** Over the connections of the dispatcher. */
  readonly dispatcherSql: Sql;
  readonly broker: Broker;
  readonly tracing: Tracing;
  /** Seals with the secret key, and opens with the previous ones too. */
  readonly secretBox: SecretBox;
  /** Marks what goes through the broker. */
  readonly seal: Seal;
  /** Seals the cursors of lists. */
  readonly cursors: Cursors;
  /** Of the database, the embedded one included. */
  readonly databaseUrl: string;
  readonly isEmbedded: boolean;
  /** Closes everything, last opened first. */
  close(): Promise<void>;
}

/** The part of it that needs no broker. */
export type Storage = Pick<
  Foundation,
  | "log"
  | "database"
  | "sql"
  | "dispatcherSql"
  | "secretBox"
  | "seal"
  | "cursors"
  | "databaseUrl"
  | "isEmbedded"
>;

/**
 * Opens the database and the broker, and waits for both for as long as it takes.
 *
 * @param readiness Learns what is waited for, and then how each part is.
 * @param prepare Called when the database is there, be the broker or not; a rejection ends the start.
 * @param signal Gives up waiting for a server that does not answer.
 * @throws OperatorError for faults that waiting does not mend.
 */
export async function openFoundation({
  config,
  program,
  log,
  metrics = createMetrics(),
  readiness,
  prepare,
  signal,
}: {
  readonly config: Config;
  /** Decides what the connections are for, and names them. */
  readonly program: ProgramName;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly readiness: Readiness;
  readonly prepare: (storage: Storage) => Promise<void>;
  readonly signal: AbortSignal;
}): Promise<Foundation> {
  const releasers: (() => Promise<void>)[] = [];
  const close = async (): Promise<void> => {
    while (releasers.length > 0) await releasers.pop()?.();
  };
  // A fault of the one that lasts also ends the wait for the other.
  const giveUp = new AbortController();
  const waiting = AbortSignal.any([signal, giveUp.signal]);
  const orGiveUp = async <T>(opening: Promise<T>): Promise<T> => {
    try {
      return await opening;
    } catch (error) {
      giveUp.abort(error);
      throw error;
    }
  };
  try {
    const tracing = await startTracing({ settings: config.tracing, log });
    // Closed last, so that nothing that ends before it is missing.
    releasers.push(() => tracing.close());
    const secretKey = await loadSecretKey({ configured: config.secretKey, dataDir: config.dataDir });
    const secretBox = createSecretBox(secretKey, config.previousSecretKeys);
    const seal = createSeal(secretKey, config.previousSecretKeys);
    const cursors = createCursors(secretKey);
    const isEmbedded = config.database.url === undefined;

    async function openStorage(): Promise<Storage> {
      let databaseUrl = config.database.url;
      if (databaseUrl === undefined) {
        const embedded = await openEmbedded({
          dataDir: config.dataDir,
          log,
          // A service on another process's database would end with that process, be it only a command of svc-admin.
          mustOwn: true,
          openTimeoutMs: ownTimeoutMs,
          signal: waiting,
        });
        releasers.push(() => embedded.close());
        databaseUrl = embedded.url;
      }
      await waitForDatabase({
        url: databaseUrl,
        log,
        signal: waiting,
        onWait: (reason) => readiness.waitsFor("database", reason),
      });
      const database = await openDatabase({
        url: databaseUrl,
        poolSize: config.database.poolSize,
        lists: program === "dispatcher" ? undefined : listLimitsOf(config),
        relays: program !== "dispatcher",
        dispatches: program !== "api",
        program,
        isEmbedded,
        log,
      });
      releasers.push(() => database.close());
      const sql = createSql({ pool: database.pool, isEmbedded });
      const dispatcherSql = createSql({ pool: database.dispatcher, isEmbedded });
      readiness.watch("database", async () => {
        await sql("SELECT 1");
      });
      const opened = { log, database, sql, dispatcherSql, secretBox, seal, cursors, databaseUrl, isEmbedded };
      await prepare(opened);
      return opened;
    }

    async function openBroker(): Promise<Broker> {
      const { url } = config.broker;
      const broker =
        url === undefined
          ? createInProcessBroker({ log })
          : await connectRabbitMq({ url, log, signal: waiting });
      releasers.push(() => broker.close());
      readiness.watch("broker", async () => {
        const fault = broker.fault();
        if (fault !== undefined) throw new Error(fault);
      });
      return broker;
    }

    const [storage, broker] = await settled([orGiveUp(openStorage()), orGiveUp(openBroker())]);
    addScrapeSources({ metrics, broker, ...storage });
    return { ...storage, metrics, broker, tracing, close };
  } catch (error) {
    await close();
    // The fault that came first: the wait for the other part was given up because of it.
    throw giveUp.signal.aborted ? giveUp.signal.reason : error;
  }
}

/** Four in ten connections, and results of a part of the memory, of which several are in it in different shapes; at least two bodies. */
function listLimitsOf({ database, http }: Config): ListLimits {
  const budget = http.memoryBudgetBytes ?? defaultMemoryBudget(http.bodyLimitBytes);
  return {
    connections: Math.max(1, Math.floor(database.poolSize * 0.4)),
    statementTimeoutMs: http.listTimeoutMs,
    maxResultBytes: Math.max(2 * http.bodyLimitBytes, Math.floor(budget / 32)),
  };
}

/** Like Promise.all, but rejects only when both are done, so that what was opened can be closed. */
async function settled<A, B>([one, other]: [Promise<A>, Promise<B>]): Promise<[A, B]> {
  await Promise.allSettled([one, other]);
  return Promise.all([one, other]);
}
