import { spawn } from "node:child_process";
import { once } from "node:events";
import type { AtEnd } from "../run-to-end.ts";
import type { Attack } from "./attack.ts";

/** Ends with the benchmark, however that ends, and after ten minutes. */
const endless = (): string =>
  `const endsAt = Date.now() + 600_000; while (Date.now() < endsAt && process.ppid === ${process.pid});`;

/**
 * No attack: another program takes as much CPU as it is given, and sends the service nothing. No
 * service can do better for its users than it does beside that. The loops have a session of their
 * own, with the priority of any other.
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
