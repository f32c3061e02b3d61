import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chownSync, readdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { findExecutable, install } from "./apt.ts";
import {
  type Account,
  freePort,
  makeFolder,
  type PrivateProcess,
  type PrivateServer,
  removeFolder,
  startProcess,
  untilServing,
} from "./private-process.ts";

const run = promisify(execFile);

export interface PrivatePostgres extends PrivateServer {
  /**
   * Stops immediately (`pg_ctl stop -m immediate`): every session is cut off, and the next start
   * recovers from the log.
   */
  crash(): Promise<void>;
}

interface PrivatePostgresOptions {
  /**
   * Without fsync, the server is faster. Only the loss of the machine could lose commits, not
   * SIGKILL. Default: false.
   */
  readonly fsync?: boolean;
  /** Parent of its folder; default: the system's temporary folder. */
  readonly parent?: string;
  /** Server settings in addition to those that a private server needs. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** Returns the folder of PostgreSQL's programs; undefined when it is not installed. */
export function findPostgres(): string | undefined {
  const debian = "/usr/lib/postgresql";
  let versions: string[] = [];
  try {
    versions = readdirSync(debian).toSorted((a, b) => Number(b) - Number(a));
  } catch {
    // Not Debian: PATH decides.
  }
  const initdb = findExecutable(
    "initdb",
    versions.map((version) => join(debian, version, "bin/initdb")),
  );
  return initdb === undefined ? undefined : dirname(initdb);
}

/**
 * Ensures that PostgreSQL's programs are installed, and returns their folder. Throws with the
 * missing packages.
 */
export async function ensurePostgres(): Promise<string> {
  if (findPostgres() === undefined) await install(["postgresql"]);
  const bin = findPostgres();
  if (bin === undefined) throw new Error("initdb was not found although postgresql was installed");
  return bin;
}

/** Starts a private PostgreSQL on a new data folder, in about 2 s. */
export async function startPrivatePostgres({
  fsync = false,
  parent,
  settings: extraSettings = {},
}: PrivatePostgresOptions = {}): Promise<PrivatePostgres> {
  const bin = await ensurePostgres();
  const account = await unprivilegedAccount();
  const folder = makeFolder("postgres", { parent, account });
  const dataDir = join(folder, "data");
  const port = await freePort();
  const password = randomBytes(12).toString("hex");
  const env = { PATH: process.env["PATH"], LC_ALL: "C", TZ: "UTC" };

  const passwordFile = join(folder, "password");
  writeFileSync(passwordFile, password, { mode: 0o600 });
  if (account !== undefined) chownSync(passwordFile, account.uid, account.gid);
  // The letters of all languages need a UTF-8 locale; otherwise ILIKE matches ASCII only.
  const locale = process.platform === "linux" ? "C.UTF-8" : "en_US.UTF-8";
  await run(
    join(bin, "initdb"),
    [
      "-D",
      dataDir,
      "-U",
      "postgres",
      `--pwfile=${passwordFile}`,
      // A SCRAM hash takes 5 ms of the server's CPU for each connection.
      "--auth=md5",
      "--encoding=UTF8",
      `--locale=${locale}`,
      "--no-sync",
    ],
    { cwd: folder, env, ...account },
  ).catch((error: unknown) => {
    removeFolder(folder);
    throw error;
  });

  const url = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  const settings = {
    port,
    listen_addresses: "127.0.0.1",
    unix_socket_directories: folder,
    max_connections: 300,
    fsync: fsync ? "on" : "off",
    synchronous_commit: fsync ? "on" : "off",
    full_page_writes: fsync ? "on" : "off",
    shared_buffers: "64MB",
    // Keeps shared memory in its folder: segments of a killed server would stay in /dev/shm.
    dynamic_shared_memory_type: "mmap",
    timezone: "UTC",
    ...extraSettings,
  };
  const args = [
    "-D",
    dataDir,
    ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
  ];

  let server: PrivateProcess | undefined;
  async function start(): Promise<void> {
    // After a SIGKILL, old backends may hold the shared memory for a moment, and the new server
    // refuses to start.
    for (let attempt = 1; ; attempt += 1) {
      server = startProcess({ command: join(bin, "postgres"), args, env, folder, account });
      try {
        return await untilServing(server, { what: "PostgreSQL", isServing: () => accepts(url) });
      } catch (error) {
        if (attempt >= 20 || !server.output().includes("shared memory block")) throw error;
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
    }
  }

  await start();
  return {
    url,
    start,
    // SIGINT is PostgreSQL's fast shutdown: sessions are ended, everything is written.
    stop: async () => server?.end("SIGINT"),
    kill: async () => server?.end("SIGKILL"),
    crash: async () => server?.end("SIGQUIT"),
    async restart() {
      await server?.end("SIGINT");
      await start();
    },
    pause: () => server?.signal("SIGSTOP"),
    resume: () => server?.signal("SIGCONT"),
    async dispose() {
      await server?.end("SIGKILL");
      removeFolder(folder);
    },
  };
}

async function accepts(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2_000 });
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.end();
    return true;
  } catch {
    return false;
  }
}

/**
 * Returns an account without privileges, because PostgreSQL refuses to run as root. Undefined: the
 * user of the test run is suitable.
 */
async function unprivilegedAccount(): Promise<Account | undefined> {
  if (process.getuid?.() !== 0) return undefined;
  for (const name of ["postgres", "nobody"]) {
    try {
      const [uid, gid] = await Promise.all([run("id", ["-u", name]), run("id", ["-g", name])]);
      return { uid: Number(uid.stdout), gid: Number(gid.stdout) };
    } catch {
      // No such user: tries the next one.
    }
  }
  throw new Error("PostgreSQL does not run as root, and there is neither a user postgres nor nobody");
}
