import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AtEnd } from "../run-to-end.ts";
import type { Attack } from "./attack.ts";

/**
 * Returns the code of an endless loop, which ends with the benchmark, and after ten minutes at
 * most.
 */
const endless = (): string =>
  `const endsAt = Date.now() + 600_000; while (Date.now() < endsAt && process.ppid === ${process.pid});`;

/**
 * Creates a reference instead of an attack: another program takes all CPU that it gets, and sends
 * the service nothing. It shows the best result that a service can reach beside an attack. The
 * loops have a separate session, with normal priority.
 */
export function createYardstick(atEnd: AtEnd): Attack {
  const loops = [1, 2].map(() =>
    spawn(process.execPath, ["-e", endless()], { stdio: "ignore", detached: true }),
  );
  const signalAll = (name: NodeJS.Signals): void => loops.forEach((loop) => loop.kill(name));
  signalAll("SIGSTOP");
  atEnd(() => signalAll("SIGKILL"));
  return {
    name: "no attack: two endless loops of another program",
    async run(_attacker, signal) {
      signalAll("SIGCONT");
      await once(signal, "abort");
      signalAll("SIGSTOP");
    },
  };
}
