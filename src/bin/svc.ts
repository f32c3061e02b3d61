#!/usr/bin/env node
import { createRequire } from "node:module";
import {
  bringUpToDate,
  openConfiguration,
  readConfiguration,
  type CheckedConfiguration,
} from "../configuration.ts";
import { OperatorError } from "../errors.ts";
import { openFoundation, type Foundation } from "../foundation.ts";
import { greeting } from "../greeting.ts";
import { createReadiness, startHealth, type Readiness } from "../health.ts";
import { createLog, type Log } from "../log.ts";
import { createMetrics, type Metrics } from "../metrics.ts";
import { startProgram } from "../program.ts";
import { unknownVariables } from "../unknown-variables.ts";
import { aborted } from "../worker.ts";

const usage = `Usage: svc <program>

Programs:
  api         serves the REST API and publishes captured events to RabbitMQ
  dispatcher  consumes from RabbitMQ: fans out, signs, sends, retries, dead-letters
  all         both in one process; without DATABASE_URL and AMQP_URL on an embedded database and broker

Settings: config/service.yaml in SVC_CONFIG_DIR, and the environment. Users, tokens and migrations: svc-admin --help.`;

const { version } = createRequire(import.meta.url)("../../package.json") as { readonly version: string };

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
  const checked = await readConfiguration({ env: process.env, cwd: process.cwd(), program });
  const { config } = checked;
  const log = createLog({ level: config.log.level });
  for (const warning of unknownVariables({ env: process.env, cwd: process.cwd() })) log.warn(warning);
  const stopping = stopSignal(log);
  const metrics = createMetrics();
  metrics.describeProcess({ version, program });
  const readiness = createReadiness();
  const health = await startHealth({ config, metrics, readiness });
  const foundation = await openUnless(stopping, { checked, log, metrics, readiness });
  if (foundation === undefined) return stopped(program, log);
  try {
    await bringUpToDate({ checked, foundation });
    const configuration = await openConfiguration({ checked, foundation });
    readiness.watch("migrations", () => Promise.resolve());
    const running = await startProgram({ name: program, foundation, configuration });
    try {
      readiness.watch("configuration", () => Promise.resolve());
      const { port, tokens } = running;
      log.info({ program, port }, "started");
      if (port !== undefined) {
        const text = await greeting({ foundation, config, port, tokens });
        // People read the end of the output: the log lines before it first.
        await flushed(log);
        console.log(text);
      }
      await Promise.race([aborted(stopping), running.failed]);
    } finally {
      await running.stop();
    }
  } finally {
    await foundation.close();
    await health.close();
  }
  return stopped(program, log);
}

/** Undefined when it was told to stop while it waited for a server. */
async function openUnless(
  stopping: AbortSignal,
  {
    checked,
    log,
    metrics,
    readiness,
  }: {
    readonly checked: CheckedConfiguration;
    readonly log: Log;
    readonly metrics: Metrics;
    readonly readiness: Readiness;
  },
): Promise<Foundation | undefined> {
  try {
    return await openFoundation({ config: checked.config, log, metrics, readiness, signal: stopping });
  } catch (error) {
    if (stopping.aborted) return undefined;
    throw error;
  }
}

async function stopped(program: string, log: Log): Promise<number> {
  log.info({ program }, "stopped");
  await flushed(log);
  return 0;
}

function flushed(log: Log): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}

/** Aborts on the first SIGTERM or SIGINT; a second one ends the process at once. */
function stopSignal(log: Log): AbortSignal {
  const stopping = new AbortController();
  for (const name of ["SIGTERM", "SIGINT"] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(1);
      log.info({ signal: name }, "stopping; a second signal ends at once");
      stopping.abort();
    });
  }
  return stopping.signal;
}

main(process.argv.slice(2)).then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error instanceof OperatorError ? `svc: ${error.message}` : error);
    process.exit(1);
  },
);
