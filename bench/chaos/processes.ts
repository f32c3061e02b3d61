import { createProgram, type Program, type ProgramName } from "../../test/support/program.ts";
import { type MemoryLimit, peakBytes } from "../memory-limit.ts";

/** A process of the service under a supervisor, which restarts it whenever it ends. */
export interface Process {
  readonly name: ProgramName;
  readonly program: Program;
  /** Sends SIGKILL. The process stays down until `revive`. */
  kill(): Promise<void>;
  /** Starts the process without waiting. */
  revive(): void;
  /** Its last output before each unrequested end. */
  readonly endings: readonly string[];
  /** Returns the largest resident set of all its runs. */
  peakBytes(): number;
  dispose(): Promise<void>;
}

const watchMs = 500;

/**
 * Starts `svc <name>` and waits until it is ready.
 *
 * @param limit Memory limit; default: none.
 */
export async function startWatched(
  name: ProgramName,
  env: Readonly<Record<string, string>>,
  limit?: Pick<MemoryLimit, "commandOf">,
): Promise<Process> {
  const program = await createProgram({ name, env, ...(limit && { commandOf: limit.commandOf }) });
  const endings: string[] = [];
  let isWanted = true;
  let peak = 0;
  const watch = (): void => {
    peak = Math.max(peak, peakBytes(program.pid() ?? 0) ?? 0);
    if (!isWanted || program.isRunning()) return;
    endings.push(program.output().split("\n").slice(-4).join("\n"));
    program.launch();
  };
  await program.start();
  const timer = setInterval(watch, watchMs);
  return {
    name,
    program,
    async kill() {
      isWanted = false;
      await program.end("SIGKILL");
    },
    revive() {
      program.launch();
      isWanted = true;
    },
    endings,
    peakBytes: () => peak,
    async dispose() {
      isWanted = false;
      clearInterval(timer);
      await program.dispose();
    },
  };
}
