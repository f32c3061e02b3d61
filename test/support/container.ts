import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { until } from "./wait.ts";

const run = promisify(execFile);

export interface Outcome {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** The container engine of this machine: `docker`, or `podman` with `runc`, on the host network. */
interface Engine {
  /**
   * Runs a command of the engine itself, such as `image inspect`. Never rejects: the exit status
   * shows a failure.
   */
  call(...args: readonly string[]): Promise<Outcome>;
  /** Runs a container until it ends. */
  run(options: RunOptions): Promise<Outcome>;
  /** Starts a container, and returns when it is running. */
  start(options: RunOptions): Promise<Container>;
}

export interface RunOptions {
  readonly image: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Volumes and host folders by the path in the container, which may end in `:ro`. */
  readonly mounts?: Readonly<Record<string, string>>;
}

export interface Container {
  exec(...command: readonly string[]): Promise<Outcome>;
  isRunning(): Promise<boolean>;
  /**
   * Sends SIGTERM and returns the exit status. Rejects when the container has not ended after
   * `limitMs`.
   */
  terminate(limitMs: number): Promise<{ readonly code: number; readonly durationMs: number }>;
  logs(): Promise<string>;
  /** Kills and removes the container. May be called twice. */
  remove(): Promise<void>;
}

/** Restrictions of a careful operator: a read-only root, no capabilities, no new privileges. */
const confinement = [
  "--read-only",
  "--tmpfs",
  "/tmp",
  "--cap-drop",
  "ALL",
  "--security-opt",
  "no-new-privileges",
];

export function createEngine(name: "docker" | "podman"): Engine {
  const [program, ...global] = name === "podman" ? ["podman", "--runtime", "runc"] : ["docker"];
  const limits = ["--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096"];

  function call(...args: readonly string[]): Promise<Outcome> {
    return outcomeOf(run(program, [...global, ...args], { timeout: 120_000, maxBuffer: 64 * 1024 * 1024 }));
  }

  function runArgs({ image, args = [], env = {}, mounts = {} }: RunOptions): string[] {
    return [
      "--pull",
      "never",
      "--network",
      "host",
      ...limits,
      ...confinement,
      ...Object.entries(env).flatMap(([key, value]) => ["--env", `${key}=${value}`]),
      ...Object.entries(mounts).flatMap(([path, source]) => ["--volume", `${source}:${path}`]),
      image,
      ...args,
    ];
  }

  return {
    call,
    run: (options) => call("run", "--rm", ...runArgs(options)),
    async start(options) {
      const { code, stdout, stderr } = await call("run", "--detach", ...runArgs(options));
      if (code !== 0) throw new Error(`The container did not start: ${stderr}`);
      const id = stdout.trim();
      const isRunning = async (): Promise<boolean> =>
        (await call("inspect", "--format", "{{.State.Running}}", id)).stdout.trim() === "true";
      return {
        exec: (...command) => call("exec", id, ...command),
        isRunning,
        async terminate(limitMs) {
          const startedAt = performance.now();
          await call("kill", "--signal", "TERM", id);
          await until(async () => !(await isRunning()), {
            timeoutMs: limitMs,
            what: "the end of the container",
          });
          const durationMs = performance.now() - startedAt;
          const { stdout: status } = await call("inspect", "--format", "{{.State.ExitCode}}", id);
          return { code: Number(status), durationMs };
        },
        async logs() {
          const { stdout: out, stderr: err } = await call("logs", id);
          return out + err;
        },
        async remove() {
          await call("rm", "--force", "--volumes", id);
        },
      };
    },
  };
}

async function outcomeOf(
  running: Promise<{ readonly stdout: string; readonly stderr: string }>,
): Promise<Outcome> {
  try {
    return { code: 0, ...(await running) };
  } catch (error) {
    const { code, stdout = "", stderr = "" } = error as Partial<Outcome>;
    if (typeof code !== "number") throw error;
    return { code, stdout, stderr };
  }
}
