import { createProgram, type Program, type ProgramName } from "../../test/support/program.ts";
import { type MemoryLimit, peakBytes } from "../memory-limit.ts";

/**
 * A process of the service as something that keeps services running has it: started again whenever
 * it ends.
 */
export interface Process {
  readonly name: ProgramName;
  readonly program: Program;
  /** SIGKILL; it stays away until `revive`. */
  kill(): Promise<void>;
  /** Starts it, and comes back at once. */
  revive(): void;
  /** What it last wrote before each time that it ended by itself. */
  readonly endings: readonly string[];
  /** The largest resident set of all that were started so far. */
  peakBytes(): number;
  dispose(): Promise<void>;
}

const watchMs = 500;

/**
 * Starts `svc <name>` and waits until it is ready.
 *
 * @param limit Of its memory; default: none.
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
