import { createHash } from "node:crypto";
import { lstat, mkdir, realpath, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { PGlite } from "@electric-sql/pglite";
import { pg_trgm } from "@electric-sql/pglite/contrib/pg_trgm";
import { Client } from "pg";
import { prepareDataDir } from "../config/data-dir.ts";
import { messageOf, OperatorError } from "../kit/errors.ts";
import type { Log } from "../telemetry/log.ts";
import { pause } from "../kit/worker.ts";
import { listenEmbedded } from "./embedded-server.ts";
import { acquireLock, readHolder } from "./process-lock.ts";

/** An open embedded database, of this process or of another. */
export interface EmbeddedDatabase {
  /** The URL for any number of connections, of any process of the same user. */
  readonly url: string;
  /** False when another live process runs the database; `close` then does nothing. */
  readonly isOwner: boolean;
  close(): Promise<void>;
}

/** Socket name that clients of PostgreSQL derive from a folder and the port 5432. */
const socketName = ".s.PGSQL.5432";
/** `sun_path` holds 107 bytes and a NUL on Linux, 103 on macOS. */
const maxSocketPathBytes = 103;
const retryMs = 100;
/** Free space for a new database, which takes 40 MB. */
const newDatabaseBytes = 64 * 1024 ** 2;

/**
 * Opens the embedded database of a data dir: the database that a live process runs, otherwise one
 * in this process. Fills a new data dir first, which takes seconds.
 *
 * Commits survive the death of the process, but not a power cut: PGlite never calls fsync. PGlite
 * has no timers, so `statement_timeout` has no effect.
 *
 * @param mustOwn Whether to wait for the end of another process that runs the database, instead of
 *   using its database.
 * @param openTimeoutMs How long to wait for that, or for a process that holds the lock and does not
 *   answer.
 * @param signal Aborts the wait.
 * @throws OperatorError when the database can neither be used nor opened.
 */
export async function openEmbedded({
  dataDir,
  log,
  mustOwn = false,
  openTimeoutMs = 60_000,
  signal = new AbortController().signal,
}: {
  readonly dataDir: string;
  readonly log: Log;
  readonly mustOwn?: boolean;
  readonly openTimeoutMs?: number;
  readonly signal?: AbortSignal;
}): Promise<EmbeddedDatabase> {
  const root = path.resolve(dataDir);
  const lockFile = path.join(root, "postgres.lock");
  const deadline = performance.now() + openTimeoutMs;
  const isTimeUp = (): boolean => performance.now() > deadline || signal.aborted;
  let hasWarned = false;
  let hasTriedOut = false;
  for (;;) {
    // Try the holder first, even with a dead pid: it may run in another container on the same
    // volume.
    const holder = await readHolder(lockFile);
    if (
      holder !== undefined &&
      (await isSocketOf(root, holder.note)) &&
      (await answers(urlOf(holder.note), openTimeoutMs))
    ) {
      if (!mustOwn) return { url: urlOf(holder.note), isOwner: false, close: async () => undefined };
      if (isTimeUp())
        throw new OperatorError(
          `The embedded database in ${root} is run by process ${holder.pid}, svc or svc-admin. Stop that one, or give this one ` +
            "a data dir of its own (SVC_DATA_DIR); any number of processes can share a PostgreSQL (DATABASE_URL) and a RabbitMQ (AMQP_URL).",
        );
      if (!hasWarned)
        log.warn({ pid: holder.pid }, "another process runs the embedded database; waiting until it ends");
      hasWarned = true;
      await pause(retryMs, signal);
      continue;
    }

    // Runs only once, and not when another process runs the database and writes the data dir.
    if (!hasTriedOut) {
      const isNew = !(await isThere(folderIn(root)));
      await prepareDataDir(root, { neededBytes: isNew ? newDatabaseBytes : 0 });
      // Without a warning, a command in the wrong folder would seem to work on the service's
      // database.
      if (isNew && !mustOwn)
        log.warn(
          { dataDir: root },
          "there was no embedded database here: making a new one; DATABASE_URL or SVC_DATA_DIR names another",
        );
    }
    hasTriedOut = true;
    const ownSocketDir = await prepareSocketDir(root);
    const lock = await acquireLock(lockFile, ownSocketDir);
    if (lock.kind === "acquired") {
      try {
        return await start({ root, socketDir: ownSocketDir, release: () => lock.release(), log });
      } catch (error) {
        await lock.release();
        throw error;
      }
    }
    if (isTimeUp())
      throw new OperatorError(
        `The embedded database in ${root} is held by process ${lock.holder?.pid ?? "unknown"}, which does not answer. ` +
          `Stop that process; if it works on another folder, of which this one is a copy, remove ${lockFile}.`,
      );
    await pause(retryMs, signal);
  }
}

async function start({
  root,
  socketDir,
  release,
  log,
}: {
  readonly root: string;
  readonly socketDir: string;
  readonly release: () => Promise<void>;
  readonly log: Log;
}): Promise<EmbeddedDatabase> {
  const startedAt = performance.now();
  const socketPath = path.join(socketDir, socketName);
  // Removes the socket of a killed process. The lock shows that no process uses it.
  await rm(socketPath, { force: true });
  // Listens before the database is open, so that a process that starts now waits for it instead of
  // polling.
  const server = await listenEmbedded({ socketPath, log });
  let db: PGlite;
  try {
    db = await openPGlite(root);
  } catch (error) {
    await server.close();
    throw error;
  }
  server.serve(db);
  log.info({ durationMs: Math.round(performance.now() - startedAt) }, "the embedded database is up");
  return {
    url: urlOf(socketDir),
    isOwner: true,
    async close() {
      await server.close();
      await db.close();
      await release();
    },
  };
}

async function openPGlite(root: string): Promise<PGlite> {
  const folder = folderIn(root);
  // This file exists until the first start is done. A folder that a killed start left half filled
  // is filled again.
  const unfinished = path.join(root, "postgres.unfinished");
  if (await isThere(unfinished)) await rm(folder, { recursive: true, force: true });
  const isNew = !(await isThere(folder));
  if (isNew) {
    await writeFile(unfinished, "");
    await mkdir(folder, { mode: 0o700 });
  }
  const db = await PGlite.create(folder, { relaxedDurability: false, extensions: { pg_trgm } }).catch(
    (error: unknown) => {
      // PGlite also throws values that are not errors.
      const reason = error instanceof Error ? messageOf(error) : JSON.stringify(error);
      throw new OperatorError(
        `The embedded database in ${folder} does not start: ${reason}. It is a folder of another version or damaged, or its disk is full.`,
        { cause: error },
      );
    },
  );
  if (isNew) await rm(unfinished, { force: true });
  return db;
}

function folderIn(root: string): string {
  return path.join(root, "postgres");
}

/**
 * Returns the name of the socket's folder outside of the data dir. Every path to the data dir gives
 * the same name.
 */
async function farNameOf(root: string): Promise<string> {
  const real = await realpath(root).catch(() => root);
  return `svc-${createHash("sha256").update(real).digest("hex").slice(0, 16)}`;
}

/**
 * Returns whether a lock's socket belongs to this data dir, for every path to it. The lock of a
 * copy names the socket of the original, which may be running.
 */
async function isSocketOf(root: string, socketDir: string): Promise<boolean> {
  if (path.basename(socketDir) === (await farNameOf(root))) return true;
  const [own, found] = await Promise.all(
    [path.join(root, "socket"), socketDir].map((folder) => stat(folder).catch(() => undefined)),
  );
  return own !== undefined && own.dev === found?.dev && own.ino === found.ino;
}

/**
 * Creates the folder of the socket in the data dir. When that path is too long for a socket, uses
 * the system's temporary folder.
 */
async function prepareSocketDir(root: string): Promise<string> {
  const near = path.join(root, "socket");
  const name = await farNameOf(root);
  const folder = [near, path.join(tmpdir(), name), path.join("/tmp", name)].find(
    (candidate) => Buffer.byteLength(path.join(candidate, socketName)) <= maxSocketPathBytes,
  );
  if (folder === undefined) throw new OperatorError(`No path is short enough for a socket: ${near}`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // The owner of a folder could replace the socket in it.
  const { uid, mode } = await lstat(folder).then((found) => {
    if (!found.isDirectory()) throw new OperatorError(`${folder} is not a folder.`);
    return found;
  });
  if (process.getuid !== undefined && (uid !== process.getuid() || (mode & 0o077) !== 0))
    throw new OperatorError(`${folder} must belong to the user that runs svc, with mode 0700.`);
  return folder;
}

function urlOf(socketDir: string): string {
  return `postgresql://postgres@localhost:5432/postgres?host=${encodeURIComponent(socketDir)}`;
}

/**
 * Returns whether a database answers, and waits for one that is starting. False at once when no
 * process listens.
 */
async function answers(url: string, timeoutMs: number): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: timeoutMs });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("SELECT 1");
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function isThere(file: string): Promise<boolean> {
  return stat(file).then(
    () => true,
    () => false,
  );
}
