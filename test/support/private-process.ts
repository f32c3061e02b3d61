import { type ChildProcess, spawn } from "node:child_process";
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, statfsSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "../../src/kit/errors.ts";
import { until } from "./wait.ts";

/** A user of the machine. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** A server process of the test run, which never outlives the run. */
export interface PrivateProcess {
  /** Undefined when it could not be started. */
  readonly pid: number | undefined;
  isRunning(): boolean;
  /** Sends a signal to the process alone. */
  signal(name: NodeJS.Signals): void;
  /** Sends a signal and resolves when the process has ended; after `limitMs` it is killed. */
  end(name: NodeJS.Signals, limitMs?: number): Promise<void>;
  /** Null when a signal ended it; undefined while it runs. */
  exitCode(): number | null | undefined;
  /** State for people: `runs`, `exit code 1` or `signal SIGKILL`. */
  state(): string;
  /** Returns the last lines of its output. */
  output(): string;
}

/** A server that fault tests may stop and kill. Its address stays the same across restarts. */
export interface PrivateServer {
  /** URL with user name and password. */
  readonly url: string;
  start(): Promise<void>;
  /** Shuts down in an orderly way. */
  stop(): Promise<void>;
  /** Sends SIGKILL: data that was not on disk is lost. */
  kill(): Promise<void>;
  restart(): Promise<void>;
  /** Sends SIGSTOP: the server keeps its connections and does not answer. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
  /**
   * Kills it and removes its files. The test that started it calls this; a remaining server fails
   * the run.
   */
  dispose(): Promise<void>;
}

/**
 * Ends a process group and removes a folder when its standard input closes. The kernel closes the
 * pipe whenever the test run ends, even by SIGKILL, so nothing remains.
 */
const keeperScript = 'read -r _; kill -s KILL -- "-$1" 2>/dev/null; sleep 0.2; rm -rf -- "$2"';

/**
 * Starts a server with all its files and its output in `folder`.
 *
 * @param account User of the process; undefined for the user of the test run.
 */
export function startProcess({
  command,
  args,
  env,
  folder,
  account,
}: {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly folder: string;
  readonly account?: Account | undefined;
}): PrivateProcess {
  const logFile = join(folder, `${command.split("/").at(-1)}.log`);
  const log = openSync(logFile, "a");
  const child = spawn(command, args, {
    cwd: folder,
    env,
    detached: true,
    stdio: ["ignore", log, log],
    ...account,
  });
  closeSync(log);
  child.unref();
  let failure: string | undefined;
  const exited = new Promise<void>((resolve) => {
    child.once("exit", () => resolve());
    child.once("error", (error) => {
      failure = messageOf(error);
      resolve();
    });
  });
  if (child.pid !== undefined) keep(child, child.pid, folder);

  const isRunning = (): boolean =>
    child.pid !== undefined && child.exitCode === null && child.signalCode === null;
  return {
    pid: child.pid,
    isRunning,
    exitCode: () => (isRunning() ? undefined : child.exitCode),
    state() {
      if (isRunning()) return "runs";
      return child.signalCode === null ? `exit code ${child.exitCode}` : `signal ${child.signalCode}`;
    },
    signal(name) {
      if (isRunning()) child.kill(name);
    },
    async end(name, limitMs = 20_000) {
      if (!isRunning()) return;
      const timer = setTimeout(() => child.kill("SIGKILL"), limitMs);
      child.kill(name);
      await exited;
      clearTimeout(timer);
    },
    output() {
      return failure ?? readFileSync(logFile, "utf8").split("\n").slice(-100).join("\n");
    },
  };
}

function keep(child: ChildProcess, pid: number, folder: string): void {
  const keeper = spawn("/bin/sh", ["-c", keeperScript, "keeper", String(pid), folder], {
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
  });
  keeper.unref();
  // A pipe of a child process is a socket, which can be unreferenced; its type does not show this.
  (keeper.stdin as unknown as { unref(): void }).unref();
  // The process id may belong to another process afterwards.
  child.once("exit", () => keeper.kill("SIGKILL"));
}

/** Space for the files of a whole run, with a margin. */
const neededBytes = 6 * 1024 ** 3;

/**
 * Folder for the files of the tests' servers: in memory when the system has enough of it. A SIGKILL
 * does not lose them. There, PostgreSQL takes 0.03 s of CPU to create and drop a database, instead
 * of 0.18 s on ext4, and RabbitMQ waits for no disk.
 */
export const memoryFolder = hasRoom("/dev/shm") ? "/dev/shm" : tmpdir();

/** A folder in memory may be as large as the memory, regardless of its use. */
function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return Math.min(bavail * bsize, process.availableMemory()) > neededBytes;
  } catch {
    return false;
  }
}

const folders = new Set<string>();

/** Returns folders of servers that no test disposed of. */
export function leftFolders(): readonly string[] {
  return [...folders];
}

/** Creates a folder for a server's files, owned by `account`. */
export function makeFolder(
  name: string,
  {
    parent = tmpdir(),
    account,
  }: { readonly parent?: string | undefined; readonly account?: Account | undefined } = {},
): string {
  const folder = mkdtempSync(join(parent, `svc-test-${name}-`));
  if (account !== undefined) chownSync(folder, account.uid, account.gid);
  folders.add(folder);
  return folder;
}

export function removeFolder(folder: string): void {
  folders.delete(folder);
  rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 });
}

const givenPorts = new Set<number>();

/**
 * Returns a free port of 127.0.0.1. It is below the range of outgoing ports, so that it stays free
 * while a server is stopped. Each port is returned once.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 15_000 + Math.floor(Math.random() * 17_000);
    if (givenPorts.has(port)) continue;
    const isFree = await new Promise<boolean>((resolve) => {
      const server = createServer();
      server.once("error", () => resolve(false));
      server.listen({ port, host: "127.0.0.1" }, () => server.close(() => resolve(true)));
    });
    if (!isFree) continue;
    givenPorts.add(port);
    return port;
  }
}

/** Returns whether a server on `port` of 127.0.0.1 answers `greeting` within a second. */
export function answers(port: number, greeting: Buffer): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = createConnection({ port, host: "127.0.0.1" });
    const settle = (hasAnswered: boolean) => (): void => {
      socket.destroy();
      resolve(hasAnswered);
    };
    socket.setTimeout(1_000, settle(false));
    socket.once("connect", () => socket.write(greeting));
    socket.once("data", settle(true));
    socket.once("error", settle(false));
    socket.once("close", settle(false));
  });
}

/**
 * Waits until a starting process serves. Throws with its output when it ends instead, or after a
 * minute.
 */
export async function untilServing(
  process: PrivateProcess,
  { what, isServing }: { readonly what: string; readonly isServing: () => Promise<boolean> },
): Promise<void> {
  const isServingOrGone = async (): Promise<boolean> => !process.isRunning() || (await isServing());
  try {
    await until(isServingOrGone, { what: `${what} to start`, timeoutMs: 60_000 });
  } catch (error) {
    await process.end("SIGKILL");
    throw new Error(`${messageOf(error)}\n${process.output()}`, { cause: error });
  }
  if (!process.isRunning()) throw new Error(`${what} did not start\n${process.output()}`);
}
