import { execFile } from "node:child_process";
import { createReadStream, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { runAdmin } from "../../src/cli/program.ts";
import { createMemoryTerminal } from "./memory-terminal.ts";
import {
  freePort,
  makeFolder,
  memoryFolder,
  type PrivateProcess,
  removeFolder,
  startProcess,
  untilServing,
} from "./private-process.ts";
import { until } from "./wait.ts";

export type ProgramName = "api" | "dispatcher" | "all";
type LogLine = Readonly<Record<string, unknown>>;

interface Ending {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly durationMs: number;
}

/**
 * `svc <name>` in its usual form: the built program, in a separate process. Its ports stay the same
 * across restarts.
 */
export interface Program {
  /** Origin of the REST API. */
  readonly origin: string;
  /** Origin of `/livez` and `/readyz`. */
  readonly healthOrigin: string;
  /** Starts it and waits until it is ready. */
  start(): Promise<void>;
  /** Starts it without waiting. */
  launch(): void;
  untilReady(): Promise<void>;
  isRunning(): boolean;
  /** Undefined before the first start. */
  pid(): number | undefined;
  /** Undefined before the first start and while it runs; null when a signal ended it. */
  exitCode(): number | null | undefined;
  /** State for people: `runs`, `exit code 1` or `signal SIGKILL`. */
  state(): string;
  /** Returns the last lines of its output. */
  output(): string;
  signal(name: NodeJS.Signals): void;
  /** Sends a signal and waits until the process has ended; after `limitMs` it is killed. */
  end(name: NodeJS.Signals, limitMs?: number): Promise<Ending>;
  /** Returns its whole output on stdout and stderr so far. */
  written(): string;
  /** Resolves with the next log line with this message that is written after the call. */
  untilLogged(message: string): Promise<LogLine>;
  /** Kills it and removes its files. */
  dispose(): Promise<void>;
}

/**
 * Prepares a program; requires `npm run build`.
 *
 * @param commandOf Returns the command that runs Node.js with arguments; default: Node.js itself.
 */
export async function createProgram({
  name,
  env,
  commandOf = (args) => ({ command: process.execPath, args }),
}: {
  readonly name: ProgramName;
  readonly env: Readonly<Record<string, string>>;
  readonly commandOf?: (args: readonly string[]) => {
    readonly command: string;
    readonly args: readonly string[];
  };
}): Promise<Program> {
  const folder = makeFolder(`svc-${name}`);
  const [port, metricsPort] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${port}`;
  const healthOrigin = `http://127.0.0.1:${metricsPort}`;
  const logFile = join(folder, `${basename(commandOf([]).command)}.log`);
  let child: PrivateProcess | undefined;

  async function isReady(): Promise<boolean> {
    try {
      const { ok } = await fetch(`${healthOrigin}/readyz`);
      // Any answer shows that the API listens.
      if (ok && name !== "dispatcher") await fetch(origin);
      return ok;
    } catch {
      return false;
    }
  }

  const program: Program = {
    origin,
    healthOrigin,
    async start() {
      program.launch();
      await program.untilReady();
    },
    launch() {
      child = startProcess({
        ...commandOf([binary("svc"), name]),
        env: {
          PATH: process.env["PATH"],
          ...env,
          SVC_HOST: "127.0.0.1",
          SVC_PORT: String(port),
          SVC_METRICS_PORT: String(metricsPort),
        },
        folder,
      });
    },
    async untilReady() {
      if (child === undefined) throw new Error(`svc ${name} was not started`);
      await untilServing(child, { what: `svc ${name}`, isServing: isReady });
    },
    isRunning: () => child?.isRunning() === true,
    pid: () => child?.pid,
    exitCode: () => child?.exitCode(),
    state: () => child?.state() ?? "was not started",
    output: () => child?.output() ?? "",
    signal: (signal) => child?.signal(signal),
    async end(signal, limitMs) {
      const startedAt = performance.now();
      await child?.end(signal, limitMs);
      return { code: child?.exitCode() ?? null, durationMs: performance.now() - startedAt };
    },
    written: () => (existsSync(logFile) ? readFileSync(logFile, "utf8") : ""),
    untilLogged(message) {
      const from = existsSync(logFile) ? statSync(logFile).size : 0;
      const isWanted = ({ msg }: LogLine): boolean => msg === message;
      const find = async (): Promise<LogLine | undefined> => (await linesFrom(logFile, from)).find(isWanted);
      return until(find, { what: `svc ${name} to log "${message}"`, timeoutMs: 30_000 });
    },
    async dispose() {
      await child?.end("SIGKILL");
      removeFolder(folder);
    },
  };
  return program;
}

/**
 * Runs `svc-admin` with `--json` in this process, because starting one takes most of the time. Does
 * not use the built program: a second schema engine of Prisma in a process breaks the first.
 * `tryAdmin` runs the built program in another process.
 */
export async function admin(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<Readonly<Record<string, unknown>>> {
  const terminal = createMemoryTerminal();
  const status = await runAdmin({
    args: [...args, "--json"],
    env: { PATH: process.env["PATH"], ...env },
    cwd: process.cwd(),
    terminal,
  });
  const { stdout, stderr } = terminal.read();
  if (status !== 0) throw new Error(`svc-admin ${args.join(" ")} ended with ${status}: ${stderr}`);
  return JSON.parse(stdout) as Record<string, unknown>;
}

/** Runs `svc-admin` with `--json`, and returns any outcome. */
export async function tryAdmin(
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((settle) => {
    execFile(
      process.execPath,
      [binary("svc-admin"), ...args, "--json"],
      { env: { PATH: process.env["PATH"], ...env } },
      (error, stdout, stderr) => settle({ code: error === null ? 0 : Number(error.code), stdout, stderr }),
    );
  });
}

export interface Configuration {
  /** Environment of a program on it: `SVC_CONFIG_DIR`, `SVC_DATA_DIR`. */
  readonly env: Readonly<Record<string, string>>;
  /** Writes or replaces a file of the folder. */
  write(name: string, text: string): void;
  dispose(): void;
}

/**
 * Writes `service.yaml` and mapping files, by name, into a new folder, together with a data dir.
 */
export function writeConfiguration({
  service,
  resources,
}: {
  readonly service: string;
  readonly resources: Readonly<Record<string, string>>;
}): Configuration {
  const folder = makeFolder("config", { parent: memoryFolder });
  mkdirSync(join(folder, "resources"));
  writeFileSync(join(folder, "service.yaml"), service);
  for (const [name, text] of Object.entries(resources)) writeFileSync(join(folder, "resources", name), text);
  return {
    env: { SVC_CONFIG_DIR: folder, SVC_DATA_DIR: join(folder, "data") },
    write: (name, text) => writeFileSync(join(folder, name), text),
    dispose: () => removeFolder(folder),
  };
}

/** Returns the same settings as files, `<NAME>_FILE` each. */
export function filesOf(
  env: Readonly<Record<string, string>>,
  configuration: Configuration,
): Readonly<Record<string, string>> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      const path = join(configuration.env["SVC_CONFIG_DIR"] ?? "", name);
      writeFileSync(path, `${value}\n`);
      return [`${name}_FILE`, path];
    }),
  );
}

/** The path of a built program. */
export function binary(name: string): string {
  const path = resolve("dist/bin", `${name}.js`);
  if (!existsSync(path)) throw new Error(`${path} is not there: run npm run build`);
  return path;
}

/** Returns the JSON lines of a file, from a byte on. */
async function linesFrom(file: string, start: number): Promise<readonly LogLine[]> {
  const chunks = await createReadStream(file, { start, encoding: "utf8" }).toArray();
  return chunks.join("").split("\n").flatMap(lineOf);
}

function lineOf(text: string): readonly LogLine[] {
  try {
    const line: unknown = JSON.parse(text);
    return typeof line === "object" && line !== null ? [line as LogLine] : [];
  } catch {
    return [];
  }
}
