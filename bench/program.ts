import {
  freePort,
  makeFolder,
  removeFolder,
  startProcess,
  untilServing,
} from "../test/support/private-process.ts";
import { containerBytes, createMemoryLimit } from "./memory-limit.ts";
import type { AtEnd } from "./run-to-end.ts";
import type { Surroundings } from "./surroundings.ts";

/** The servers of a run, and what is released at its end. */
export interface Surrounded {
  readonly surroundings: Surroundings;
  readonly atEnd: AtEnd;
}

export interface Program {
  readonly pid: number;
  /** Port of the REST API. */
  readonly port: number;
  /** Returns the value of a counter, over all its labels. */
  counter(name: string): Promise<number>;
  stop(): Promise<void>;
}

/**
 * Starts `svc api` or `svc dispatcher` with the memory of a container, and waits until it serves.
 * It stops at the end of the run at the latest.
 *
 * @param profileDir When given, the program writes a CPU profile there when it stops.
 */
export async function startProgram(
  { surroundings, atEnd }: Surrounded,
  name: "api" | "dispatcher",
  {
    databaseUrl,
    logLevel = "warn",
    profileDir = process.env["BENCH_PROFILE_DIR"],
    env = {},
  }: {
    readonly databaseUrl: string;
    readonly logLevel?: string;
    readonly profileDir?: string | undefined;
    /** Variables in addition to those of every program of the benchmark. */
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<Program> {
  const folder = makeFolder(`bench-${name}`);
  const [port, metricsPort] = [await freePort(), await freePort()];
  const profiling = profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`];
  const limit = createMemoryLimit(containerBytes);
  const process_ = startProcess({
    ...limit.commandOf([...profiling, `${process.cwd()}/dist/bin/svc.js`, name]),
    env: {
      ...surroundings.env,
      DATABASE_URL: databaseUrl,
      SVC_PORT: String(port),
      SVC_METRICS_PORT: String(metricsPort),
      SVC_LOG_LEVEL: logLevel,
      ...env,
    },
    folder,
  });
  const isServing = async (): Promise<boolean> => {
    const { ok } = await fetch(`http://127.0.0.1:${metricsPort}/readyz`);
    // Any answer shows that the API listens.
    if (ok && name === "api") await fetch(`http://127.0.0.1:${port}/`);
    return ok;
  };
  try {
    await untilServing(process_, { what: `svc ${name}`, isServing });
  } catch (error) {
    removeFolder(folder);
    limit.remove();
    throw error;
  }
  const stop = async (): Promise<void> => {
    await process_.end("SIGTERM");
    removeFolder(folder);
    limit.remove();
  };
  atEnd(stop);
  return {
    pid: process_.pid ?? 0,
    port,
    async counter(counterName) {
      const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      const lines = text.split("\n").filter((line) => line.startsWith(counterName));
      return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" "))), 0);
    },
    stop,
  };
}
