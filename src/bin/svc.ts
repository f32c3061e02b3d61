#!/usr/bin/env -S node --max-semi-space-size=4
// In a container of 512 MB, V8 would give each half of the young generation 1 MB. That takes 15 %
// more CPU (docs/decisions/0045).
import "./v8-flags.ts";
import { closeSync, openSync } from "node:fs";
import { messageOf, OperatorError } from "../kit/errors.ts";
import { describeError } from "../telemetry/logged-error.ts";
import { version } from "../kit/version.ts";

const usage = `Usage: svc <program>

Programs:
  api         serves the REST API and publishes captured events to RabbitMQ
  dispatcher  consumes from RabbitMQ: fans out, signs, sends, retries, dead-letters
  all         both in one process; without DATABASE_URL and AMQP_URL on an embedded database and broker

Signals: SIGTERM and SIGINT stop in good order, a second one ends at once; SIGHUP reloads the configuration.
Settings: config/service.yaml in SVC_CONFIG_DIR, and the environment. Users, tokens and migrations: svc-admin --help.`;

const programs = ["api", "dispatcher", "all"] as const;

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") {
    console.log(usage);
    return 0;
  }
  if (name === "--version") {
    console.log(version);
    return 0;
  }
  const program = programs.find((known) => known === name);
  if (program === undefined || rest.length > 0) {
    if (args.length > 0) console.error(`svc: there is no program "${args.join(" ")}"\n`);
    console.error(usage);
    return 2;
  }
  const signals = watchSignals();
  // Loading takes up to a second. Until then no listener handles a signal, and it ends the process
  // with 143.
  const { serve } = await import("../app/run.ts");
  return serve({
    program,
    env: process.env,
    cwd: process.cwd(),
    version,
    ...signals,
    print: (text) => console.log(text),
  });
}

/**
 * Returns a signal that the first SIGTERM or SIGINT aborts; a second one ends the process at once.
 */
function watchSignals(): {
  readonly stopping: AbortSignal;
  readonly onReload: (listener: () => void) => void;
} {
  const stopping = new AbortController();
  const stop = (name: string): void => {
    if (stopping.signal.aborted) process.exit(1);
    stopping.abort(name);
  };
  for (const name of ["SIGTERM", "SIGINT"] as const) process.on(name, () => stop(name));

  // Remembers a request that comes before the listener.
  let isAsked = false;
  let reload = (): void => {
    isAsked = true;
  };
  process.on("SIGHUP", () => {
    if (!hasLostTerminal()) return reload();
    // Ends like most programs, without an orderly stop: no output can be written any more, and Node
    // 20 aborts when it restores the terminal.
    process.removeAllListeners("SIGHUP");
    process.kill(process.pid, "SIGHUP");
  });
  return {
    stopping: stopping.signal,
    onReload(listener) {
      reload = listener;
      if (isAsked) listener();
    },
  };
}

const hasTerminal = process.stdout.isTTY;

/** Returns whether the terminal of the program is closed, which also sends SIGHUP. */
function hasLostTerminal(): boolean {
  if (!hasTerminal) return false;
  try {
    closeSync(openSync("/dev/tty", "r"));
    return false;
  } catch {
    return true;
  }
}

function fail(error: unknown): never {
  // Leaves out the error object: errors of pg and other libraries contain rows, URLs and passwords.
  console.error(error instanceof OperatorError ? `svc: ${error.message}` : describeError(error));
  process.exit(1);
}

// Node's own listener prints warnings in full; DEP0170 shows a client's URL that cannot be parsed.
process.removeAllListeners("warning");
process.on("warning", (warning: Error & { readonly code?: string }) => {
  if (warning.code !== "DEP0170") console.error(`svc: ${warning.name}: ${messageOf(warning)}`);
});
process.on("uncaughtException", fail);
main(process.argv.slice(2)).then((code) => process.exit(code), fail);
