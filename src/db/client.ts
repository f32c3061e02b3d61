import { randomBytes } from "node:crypto";
import { Client, type ClientBase, Pool, type PoolClient } from "pg";
import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { trustHint } from "../kit/untrusted.ts";
import { pause } from "../kit/worker.ts";
import { refuseReplicaRole } from "./missing-right.ts";
import { askForNotices, createNotices, type Notices } from "./notices.ts";
import { readInPortions } from "./read-portions.ts";
import { limitResults, type ResultLimits } from "./result-limit.ts";

/** The connection pools of a process. */
export interface Database {
  readonly pool: Pool;
  /**
   * Pool for lists of records, which take longest and have the largest answers. It has its own
   * limits, and never all connections.
   */
  readonly lists: Pool;
  /** Pool of the relay, which must not wait for requests. */
  readonly relay: Pool;
  /** Pool of the fan-out, the sweep and the outcomes of attempts. */
  readonly dispatcher: Pool;
  /**
   * Name of every connection of this process, and of no other. pg_stat_activity shows the name, and
   * the outbox distinguishes events by it.
   */
  readonly name: string;
  /** Messages of the connections of `pool`, of the events that they make. */
  readonly notices: Notices;
  /**
   * Waits for the connections in use, then ends all connections. After 5 s it cuts those that do
   * not answer.
   */
  close(): Promise<void>;
}

/**
 * Settings of every connection for the form of values, whatever its role and its database have set.
 * The last one makes the capture triggers fire, which they do not in the role `replica`. It fails
 * for a role that may not set it, whose changes would make no events: see `refuseReplicaRole`.
 */
export const valueSettings = `
    SET TIME ZONE 'UTC'; SET datestyle = 'ISO'; SET intervalstyle = 'iso_8601';
    SET bytea_output = 'hex'; SET extra_float_digits = 1; SET array_nulls = on;
    SET standard_conforming_strings = on; SET quote_all_identifiers = off;
    SET default_transaction_isolation = 'read committed';
    SELECT set_config('session_replication_role', 'origin', false) WHERE current_setting('session_replication_role') = 'replica';`;

const connectTimeoutMs = 10_000;
const closeLimitMs = 5000;

/**
 * Limits the wait for a server's answer. A server that is reached answers earlier, at the latest
 * with its own `statement_timeout`. A server that vanished, or is behind a proxy that drops
 * packets, never answers. TCP gives up after a quarter of an hour, and its keep-alive checks only
 * idle connections.
 */
const answerTimeoutMs = 35_000;
/** Margin by which the answer timeout exceeds the server's own limit. */
const answerMarginMs = 5_000;
/** Node.js fires a timer at once when it is set further ahead. */
const longestTimerMs = 2 ** 31 - 1;

/**
 * Time limit of every statement. A migration that needs longer sets `SET LOCAL statement_timeout =
 * 0`.
 */
const statementTimeoutMs = 30_000;

/**
 * Time limit of the relay's statements. They take milliseconds; a longer one is waiting for a lock.
 */
const relayTimeoutMs = 2_000;
/**
 * Reads of the outbox have one, while new events and a retry wait for a lock on the others. With
 * two connections, a locked table delayed events of all resources by 1 s in the p99.
 */
const relayConnections = 3;
/** Fan-out, sweep and the outcomes of attempts: each has one statement under way. */
const dispatcherConnections = 4;

/** Limits for the connections for lists. */
export interface ListLimits extends ResultLimits {
  /** Number of connections out of `poolSize`. */
  readonly connections: number;
  readonly statementTimeoutMs: number;
}

/**
 * Opens the pools. Connects on first use, so that an unavailable database is no fault here (see
 * `waitForDatabase`).
 *
 * @param poolSize Most connections, without those of the relay and the dispatcher.
 * @param lists Limits for lists. Without it, lists run like any other statement.
 * @param maxResultBytes Limit of the result of a statement, on the connections for records and of
 *   the relay. The relations of a record may have any number of rows.
 * @param relays Whether the relay gets additional connections.
 * @param dispatches Whether the dispatcher gets additional connections.
 * @param program Part of the name of the connections.
 * @param isEmbedded The embedded database has one backend behind many sockets: prepared statements
 *   are not named there. It is on this machine and has no timeouts, so a statement may take any
 *   time.
 * @param queryTimeoutMs Time after which a statement fails and its connection is cut.
 */
export async function openDatabase({
  url,
  poolSize,
  lists: limits,
  maxResultBytes = Infinity,
  relays = false,
  dispatches = false,
  program = "",
  isEmbedded,
  log,
  queryTimeoutMs = answerTimeoutMs,
}: {
  readonly url: string;
  readonly poolSize: number;
  readonly lists?: ListLimits | undefined;
  readonly maxResultBytes?: number;
  readonly relays?: boolean;
  readonly dispatches?: boolean;
  readonly program?: string;
  readonly isEmbedded: boolean;
  readonly log?: Log;
  readonly queryTimeoutMs?: number;
}): Promise<Database> {
  const clients = new Set<PoolClient>();
  const name = ["svc", program, randomBytes(4).toString("hex")].filter((part) => part !== "").join(" ");
  const open = (max: number, timeoutMs: number, own: Partial<PoolOptions> = {}): Pool => {
    const pool = openPool({ url, name, isEmbedded, log, queryTimeoutMs, max, timeoutMs, ...own });
    pool.on("connect", (client) => clients.add(client));
    pool.on("remove", (client) => clients.delete(client));
    readInPortions(pool);
    return pool;
  };
  const pool = open(Math.max(1, poolSize - (limits?.connections ?? 0)), statementTimeoutMs, {
    settings: relays ? askForNotices : "",
  });
  const notices = createNotices(pool);
  const lists =
    limits === undefined
      ? pool
      : open(limits.connections, limits.statementTimeoutMs, {
          queryTimeoutMs: listAnswerMs(limits, queryTimeoutMs),
        });
  if (limits !== undefined) limitResults(lists, limits);
  // A turn waits for one answer: without its own limit, a vanished server would hold it for 35 s.
  const relayAnswerMs = Math.min(queryTimeoutMs, relayTimeoutMs + answerMarginMs);
  // These connections are never idle for long. The relay searches for missed events whenever it
  // gets a new one.
  const working = isEmbedded ? {} : { settings: byIndex, idleMs: 0 };
  const relay = relays
    ? open(relayConnections, relayTimeoutMs, { ...working, queryTimeoutMs: relayAnswerMs })
    : pool;
  for (const one of new Set([pool, relay]))
    limitResults(one, { maxResultBytes, maxRowBytes: maxResultBytes });
  const dispatcher = dispatches ? open(dispatcherConnections, statementTimeoutMs, working) : pool;
  return {
    pool,
    lists,
    relay,
    dispatcher,
    name,
    notices,
    async close() {
      // The timer is never cleared, because the pool does not wait for idle connections to end, and
      // some may not.
      setTimeout(() => {
        for (const { connection } of clients) connection.stream.destroy();
      }, closeLimitMs).unref();
      await Promise.all([...new Set([pool, lists, relay, dispatcher])].map((one) => one.end()));
    },
  };
}

/**
 * Returns how long a list may wait for its answer: longer than the server lets it run. Otherwise
 * the server would go on running it, beside the next lists.
 */
function listAnswerMs({ statementTimeoutMs: ownMs }: ListLimits, queryTimeoutMs: number): number {
  return Math.min(Math.max(queryTimeoutMs, ownMs + answerMarginMs), longestTimerMs);
}

/**
 * Settings for statements that each read only the rows they return, by an index. A plan
 * that was made while a table was empty reads the whole table. PostgreSQL keeps that plan until the
 * next ANALYZE. At 6,000 rows the relay's read then took 9 ms instead of 0.2. Without them,
 * PostgreSQL also plans the write of an outcome at each execution: 0.38 ms, beside 0.23 ms for the
 * write. It assumes ten items for a list of unknown length, so a plan for one item seems cheaper.
 * The embedded database is one session, whose settings would apply to all.
 */
const byIndex =
  // With an incremental sort, PostgreSQL read all held deliveries of a subscription for each one
  // that was taken.
  "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_incremental_sort = off; SET plan_cache_mode = force_generic_plan;";

const serverSettings =
  "SET idle_in_transaction_session_timeout = '60s'; SET jit = off; SET max_parallel_workers_per_gather = 0;";

/**
 * Makes PostgreSQL compress large values with LZ4, when the server supports it and the operator has
 * not chosen. For a record of 1 MB, the server takes 8 ms of CPU instead of 12. The service's own
 * columns name LZ4 themselves.
 */
const compression = `
    SELECT set_config(name, 'lz4', false) FROM pg_settings
    WHERE name = 'default_toast_compression' AND source = 'default' AND 'lz4' = ANY (enumvals);`;

interface PoolOptions {
  readonly url: string;
  readonly name: string;
  readonly max: number;
  readonly timeoutMs: number;
  readonly isEmbedded: boolean;
  readonly log: Log | undefined;
  readonly queryTimeoutMs: number;
  /** Statements that set what its connections have of their own. Default: none. */
  readonly settings?: string;
  /** Time after which an idle connection ends; 0 for never. */
  readonly idleMs?: number;
}

function openPool({
  url,
  name,
  max,
  timeoutMs,
  isEmbedded,
  log,
  queryTimeoutMs,
  settings = "",
  idleMs = 30_000,
}: PoolOptions): Pool {
  // Sent as statements instead of start-up parameters, because PgBouncer refuses parameters that it
  // does not know. `options` in the user's URL would also replace them. JIT takes 50 to 250 ms when
  // old statistics make a statement look expensive, and no statement is worth that. With parallel
  // workers, a list of one user would take several cores of the server. The limit of idle
  // transactions makes PGlite 0.5.14 loop forever at the next statement; `listenEmbedded` has its
  // own limit.
  const sessionSettings = `${valueSettings}
    SET statement_timeout = ${timeoutMs};
    ${isEmbedded ? "" : serverSettings + compression}
    ${settings}`;
  const pool = new Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: idleMs,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    ...(isEmbedded ? {} : { query_timeout: queryTimeoutMs }),
    application_name: name,
    // oxlint-disable-next-line typescript/no-misused-promises -- typed as giving nothing, but the pool waits for the promise
    onConnect: async (client: ClientBase) => {
      await client.query(sessionSettings).catch(refuseReplicaRole);
    },
  });
  // Without a listener, a server restart that cuts an idle connection ends the process.
  pool.on("error", (error) => log?.warn({ reason: reasonOf(error) }, "an idle database connection was lost"));
  // The same holds for a connection between two statements of a transaction. The next statement
  // then fails.
  pool.on("connect", (client) => client.on("error", () => undefined));
  return pool;
}

/**
 * Codes of faults that waiting does not repair: wrong password, unknown role, unknown database, no
 * right to connect.
 */
const lastingFaults = new Set(["28P01", "28000", "3D000", "42501"]);

/**
 * Starts of messages of PgBouncer for the same faults. Up to version 1.18 at least, it has one code
 * (08P01) for them and for a server that is away.
 */
const lastingFaultsOfPooler = [
  "SASL authentication failed",
  "password authentication failed",
  "no such database",
];

/** Returns whether a message of PostgreSQL may mean that it takes connections by TLS only. */
const wantsTls = (message: string): boolean =>
  message.includes("no pg_hba.conf entry") && /(?:no encryption|SSL off)$/.test(message);
/** Message of pg, without a code, for a server that has TLS off. */
const noTls = "The server does not support SSL connections";
/** Part of a message of pg, without a code, for a server that asks for a password. */
const noPassword = "client password must be a";

/**
 * Resolves when the server answers a query. Tries again after 0.25 s, then twice as long each time,
 * up to 5 s. Throws OperatorError when the server answers with a fault that lasts, or when `signal`
 * aborts first.
 *
 * @param onWait Gets the reason before each wait.
 */
export async function waitForDatabase({
  url,
  log,
  signal,
  onWait,
}: {
  readonly url: string;
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly onWait?: (reason: string) => void;
}): Promise<void> {
  let waitMs = 250;
  for (;;) {
    const error = await probe(url);
    if (error === undefined) return;
    const reason = reasonOf(error);
    if (
      lastingFaults.has(codeOf(error) ?? "") ||
      lastingFaultsOfPooler.some((start) => reason.startsWith(start))
    )
      throw new OperatorError(
        `The database refuses the connection: ${reason}. Check the user, the password and the database of database.url (DATABASE_URL)${wantsTls(reason) ? ", and add sslmode=verify-full to it where the server asks for TLS" : ""}.`,
        { cause: error },
      );
    if (reason.includes(noPassword))
      throw new OperatorError(
        "The database asks for a password, and its URL (database.url, DATABASE_URL) has none",
        { cause: error },
      );
    if (reason === noTls)
      throw new OperatorError(
        "The database takes connections without TLS only: set sslmode=disable in its URL, or turn ssl on there",
        { cause: error },
      );
    if (signal.aborted) throw new OperatorError(`The database does not answer: ${reason}`, { cause: error });
    log.warn({ reason, retryInMs: waitMs }, "the database does not answer yet");
    onWait?.(reason);
    await pause(waitMs, signal);
    waitMs = Math.min(waitMs * 2, 5000);
  }
}

/** Connects once. Returns the fault; undefined when the server answered. */
async function probe(url: string): Promise<unknown> {
  let client: Client;
  try {
    client = new Client({
      connectionString: url,
      connectionTimeoutMillis: connectTimeoutMs,
      query_timeout: connectTimeoutMs,
    });
  } catch (error) {
    const advice = error instanceof URIError ? "; a % in its user or password is written as %25" : "";
    throw new OperatorError(`The database URL cannot be used: ${messageOf(error)}${advice}`);
  }
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return undefined;
  } catch (error) {
    return error;
  } finally {
    // The answer is known; a connection that fails while it ends changes nothing.
    await client.end().catch(() => undefined);
  }
}

// Only the message is logged, because an error object of pg contains the client, and with it the
// password.
function reasonOf(error: unknown): string {
  return `${messageOf(error)}${trustHint(error, "NODE_EXTRA_CA_CERTS, or sslrootcert in the URL")}`;
}
