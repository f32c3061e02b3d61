import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout } from "node:timers/promises";
import { Client, type ClientBase } from "pg";
import { valueSettings } from "../db/client.ts";
import { ownerHint, refuseReplicaRole } from "../db/missing-right.ts";
import { codeOf, messageOf, OperatorError } from "../kit/errors.ts";
import { root } from "../kit/root.ts";
import type { Log } from "../telemetry/log.ts";
import { lockHolders } from "./lock-holders.ts";

/** One or more SQL statements, and their purpose. */
export interface Step {
  /** Title for messages: `orders: capture trigger`. */
  readonly title: string;
  readonly sql: string;
}

/** One folder of prisma/migrations. */
export interface CoreMigration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** The checksum of each core migration of a database, by its name. */
export type AppliedMigrations = Readonly<Record<string, string>>;

const coreFolder = new URL("prisma/migrations/", root);

/** Key of the advisory lock of all processes that migrate: a number that no other lock uses. */
const lockKey = 7_382_914_405;

/**
 * Longest wait for a lock. A change of a table waits for the transactions that use it, and all
 * later ones wait behind the change.
 */
export const lockTimeoutMs = 30_000;

const lockNotAvailable = "55P03";

/** Reads every core migration of this version, in the order in which they are applied. */
export async function loadCoreMigrations(): Promise<readonly CoreMigration[]> {
  const entries = await readdir(coreFolder, { withFileTypes: true });
  const names = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return Promise.all(
    names.toSorted().map(async (name) => {
      const sql = await readFile(new URL(`${name}/migration.sql`, coreFolder), "utf8");
      // Normalises line ends, because a checkout with other line ends has the same migration.
      const checksum = createHash("sha256").update(sql.replaceAll("\r\n", "\n")).digest("hex");
      return { name, sql, checksum };
    }),
  );
}

/**
 * Returns the migrations that a database lacks.
 *
 * @throws OperatorError when the database has an unknown migration, or another text under a known
 *   name.
 */
export function pendingMigrations(
  known: readonly CoreMigration[],
  applied: AppliedMigrations,
): readonly CoreMigration[] {
  const names = new Set(known.map(({ name }) => name));
  const unknown = Object.keys(applied).filter((name) => !names.has(name));
  if (unknown.length > 0) {
    throw new OperatorError(
      `The database is newer than this version of svc: it has the migration ${unknown.join(", ")}. Start the version that made it, or a later one.`,
    );
  }
  const changed = known.filter(({ name, checksum }) => (applied[name] ?? checksum) !== checksum);
  if (changed.length > 0) {
    throw new OperatorError(
      `The migration ${changed.map(({ name }) => name).join(", ")} was changed after it was applied to this database. Restore its text and put the change into a new migration.`,
    );
  }
  return known.filter(({ name }) => applied[name] === undefined);
}

/** Returns the steps that apply and record core migrations. */
export function coreSteps(pending: readonly CoreMigration[]): readonly Step[] {
  // Does not use the Prisma engine's applyMigrations, which records in `public._prisma_migrations`.
  // An application that uses Prisma has its own records there.
  return pending.map(({ name, sql, checksum }) => ({
    title: `core migration ${name}`,
    sql: `${sql.trim()}\nINSERT INTO svc.migrations (name, checksum) VALUES ('${name}', '${checksum}')`,
  }));
}

/**
 * Settings of every connection that migrates. Its transactions have no time limit. The server ends
 * them two minutes after the client's machine is gone, instead of two hours.
 */
export const clientSettings = `${valueSettings}
  SET tcp_keepalives_idle = 60; SET tcp_keepalives_interval = 10; SET tcp_keepalives_count = 6; SET tcp_user_timeout = '2min';`;

/**
 * Returns the settings of a transaction that migrates. The role or the database may set limits for
 * requests, and another search path. When the process is gone, the server also ends a running
 * statement, and releases the locks. PostgreSQL 13 and servers on Windows cannot do that.
 */
export function transactionSettings(lockMs = lockTimeoutMs): string {
  return `
    SET LOCAL statement_timeout = 0;
    SET LOCAL idle_in_transaction_session_timeout = 0;
    SET LOCAL lock_timeout = ${lockMs};
    SET LOCAL search_path = public;
    ${noTransactionTimeout(true)};
    DO $$ BEGIN SET LOCAL client_connection_check_interval = '2s'; EXCEPTION WHEN undefined_object OR invalid_parameter_value THEN END $$`;
}

/** A connection of its own, and the work on it. */
interface Migrating<T> {
  readonly url: string;
  /** Gets the processes that it waits for. */
  readonly log?: Log;
  readonly work: (client: Client) => Promise<T>;
}

/**
 * Runs `work` in one transaction on its own connection, and commits unless it throws.
 *
 * Only one such transaction runs at a time. On PostgreSQL, an advisory lock of the transaction
 * ensures this; a lock of the session would be lost behind a pooler such as PgBouncer. On the
 * embedded database, all sockets are one session, where an advisory lock excludes nothing. Its
 * transactions run one after another.
 *
 * @param isReadOnly Whether the transaction is for a plan. It then waits for no other one, and
 *   cannot change anything.
 */
export async function inMigrationTransaction<T>({
  url,
  isReadOnly,
  log,
  work,
}: Migrating<T> & { readonly isReadOnly: boolean }): Promise<T> {
  return withClient(url, async (client) => {
    await client.query(isReadOnly ? "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY" : "BEGIN");
    await client.query(transactionSettings(isReadOnly ? 0 : lockTimeoutMs));
    if (!isReadOnly) await takeLock(client, "pg_try_advisory_xact_lock", log);
    const result = await work(client);
    await client.query("COMMIT");
    return result;
  });
}

/**
 * Runs `work` on its own connection without a transaction, while no other migration runs. This is
 * for statements that cannot run in a transaction. When the process is gone, the server completes
 * them, and the next try waits. It would otherwise mistake an invalid index for the wanted one.
 */
export async function inMigrationSession<T>({ url, log, work }: Migrating<T>): Promise<T> {
  return withClient(url, async (client) => {
    await client.query(
      `SET statement_timeout = 0; SET lock_timeout = 0; SET search_path = public; ${noTransactionTimeout(false)}`,
    );
    await takeLock(client, "pg_try_advisory_lock", log);
    return work(client);
  });
}

/** Lifts a limit that only PostgreSQL 17 and later know. */
function noTransactionTimeout(isLocal: boolean): string {
  return `SELECT set_config('transaction_timeout', '0', ${isLocal}) WHERE current_setting('transaction_timeout', true) IS NOT NULL`;
}

/** The end of the connection rolls back uncommitted work, and releases the lock. */
async function withClient<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new Client({ connectionString: url, application_name: "svc migrate", keepAlive: true });
  // A lost connection fails the current query; without a listener it would also end the process.
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(clientSettings).catch(refuseReplicaRole);
    return await work(client);
  } finally {
    // A lost connection has already failed the query.
    await client.end().catch(() => undefined);
  }
}

const lockWaitMs = 100;
/** Exceeds most migrations of processes that start together. */
const silentWaitMs = 2000;
const holdsLock = `locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = ${lockKey}`;

/**
 * Waits for other migrations. Polls, because `CREATE INDEX CONCURRENTLY` waits for every running
 * statement, including one that waits for this lock.
 */
async function takeLock(
  client: Client,
  take: "pg_try_advisory_xact_lock" | "pg_try_advisory_lock",
  log: Log | undefined,
): Promise<void> {
  const saysAt = performance.now() + silentWaitMs;
  for (let isSaid = false; ;) {
    // Uses no parameters, because the portal of an extended query would keep its snapshot.
    const { rows } = await client.query<{ isTaken: boolean }>(`SELECT ${take}(${lockKey}) AS "isTaken"`);
    if (rows[0]?.isTaken === true) return;
    if (!isSaid && performance.now() >= saysAt) {
      isSaid = true;
      log?.warn({ holders: await lockHolders(client, holdsLock) }, "waits for another migration to end");
    }
    await setTimeout(lockWaitMs);
  }
}

/**
 * Runs the steps in order.
 *
 * @param showsValues Whether the error shows the values of the row that prevents the step.
 * @throws OperatorError naming the step that failed; the caller's transaction is then lost.
 */
export async function runSteps(
  client: ClientBase,
  steps: readonly Step[],
  showsValues = false,
): Promise<void> {
  for (const { title, sql } of steps) {
    try {
      await client.query(sql);
    } catch (error) {
      throw new OperatorError(
        `The migration failed and changed nothing. Step: ${title}. ${reasonOf(error, showsValues)}`,
        { cause: error },
      );
    }
  }
}

function reasonOf(error: unknown, showsValues: boolean): string {
  if (codeOf(error) === lockNotAvailable)
    return `Another transaction kept a table busy for ${lockTimeoutMs / 1000} s. Try again when it is done.`;
  if (!showsValues || !(error instanceof Error))
    return `PostgreSQL says: ${messageOf(error)}${ownerHint(error)}`;
  const detail = "detail" in error && typeof error.detail === "string" ? ` (${error.detail})` : "";
  return `PostgreSQL says: ${error.message}${detail}${ownerHint(error)}`;
}
