import type { ProgramName } from "../config/contradictions.ts";
import { readConfiguration, type CheckedConfiguration } from "./configuration.ts";
import { messageOf } from "../kit/errors.ts";
import { greeting } from "./greeting.ts";
import { createReadiness, startHealth } from "./readiness.ts";
import { unreachableFields } from "../resources/unreachable.ts";
import { openHostsWarning } from "../http/url-of.ts";
import { createLog, isForPeople, type Log } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { finishLimitMs } from "./generations.ts";
import { startService, type Service } from "./service.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { aborted, endsWithin, pause } from "../kit/worker.ts";

export interface ServeOptions {
  readonly program: Exclude<ProgramName, "admin">;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Of the service, for the metrics. */
  readonly version: string;
  /** Aborts when the process is to stop; the reason is the name of the signal. */
  readonly stopping: AbortSignal;
  /** Calls back each time that a reload is asked for; at once when one was before. */
  readonly onReload: (listener: () => void) => void;
  /** Shows people a text besides the log. */
  readonly print: (text: string) => void;
}

/** How long closing may take once nothing is in hand any more. */
const closeLimitMs = 5_000;

/**
 * The life of `svc <program>`: waits for its servers, runs, reloads, and stops when it is told to. `/livez` and `/readyz` answer from
 * before the wait until after the stop.
 *
 * @returns The exit status: 0 after a stop in good order, 1 when something in hand was cut off at the limit.
 * @throws OperatorError for a fault that waiting does not mend; else what a part of the program cannot go on after.
 */
export async function serve(options: ServeOptions): Promise<number> {
  const { program: name, env, cwd, version, stopping, onReload, print } = options;
  const read = (): Promise<CheckedConfiguration> => readConfiguration({ env, cwd, program: name });
  const checked = await read();
  const log = createLog({
    level: checked.config.log.level,
    isPretty: isForPeople(process.stdout, env),
  });
  for (const warning of unknownVariables({ env, cwd })) log.warn(warning);
  const openHosts = name === "dispatcher" ? undefined : openHostsWarning(checked.config.http);
  if (openHosts !== undefined) log.warn({ event: "hosts.open" }, openHosts);
  if (name !== "dispatcher")
    for (const warning of [...checked.definitions.values()].flatMap(unreachableFields))
      log.warn({ event: "field.unreachable" }, warning);
  const metrics = createMetrics();
  metrics.describeProcess({ version, program: name });
  const readiness = createReadiness();
  const health = await startHealth({ config: checked.config, metrics, readiness });

  const onStop = (): void => {
    log.info({ signal: stopping.reason as unknown }, "stopping; a second signal ends at once");
    const reason = `draining since ${new Date().toISOString()}, after ${String(stopping.reason)}`;
    readiness.watch("shutdown", () => Promise.reject(new Error(reason)));
  };
  if (stopping.aborted) onStop();
  else stopping.addEventListener("abort", onStop);
  try {
    const starting = startService({ name, checked, read, log, metrics, readiness, stopping, onReload });
    const service = await startedOrStopped({ starting, stopping, log });
    let isClean = true;
    if (service !== undefined) {
      log.info({ program: name, port: service.program.port }, "started");
      try {
        await greet({ service, log, print });
        await Promise.race([aborted(stopping), service.failed]);
      } finally {
        // Also when a part of it has failed, and nobody has told it to stop.
        if (!stopping.aborted)
          readiness.watch("shutdown", () => Promise.reject(new Error("a part of the program has failed")));
        isClean = await stop({ name, service, log });
      }
    }
    log.info({ program: name }, "stopped");
    return isClean ? 0 : 1;
  } finally {
    await health.close();
    await flushed(log);
  }
}

/** Undefined when it was told to stop on the way and there is nothing to be stopped. */
async function startedOrStopped({
  starting,
  stopping,
  log,
}: {
  readonly starting: Promise<Service>;
  readonly stopping: AbortSignal;
  readonly log: Log;
}): Promise<Service | undefined> {
  const started = starting.then(
    (service) => ({ service }),
    (error: unknown) => {
      // A start that is given up fails of that.
      if (!stopping.aborted) throw error;
      return { service: undefined };
    },
  );
  const first = await Promise.race([started, aborted(stopping)]);
  if (first !== undefined) return first.service;
  if (await endsWithin(closeLimitMs, started)) return (await started).service;
  log.warn({ limitMs: closeLimitMs }, "the start did not end in time, and is cut off");
  return undefined;
}

async function greet({
  service: { foundation, program },
  log,
  print,
}: {
  readonly service: Service;
  readonly log: Log;
  readonly print: (text: string) => void;
}): Promise<void> {
  const { port, tokens } = program;
  if (port === undefined) return;
  const { config } = program.configuration();
  const text = await greeting({ foundation, config, port, tokens });
  // People read the end of the output: the log lines before it first.
  await flushed(log);
  print(text);
}

/** Whatever hangs, this ends. Answers whether everything in hand was finished. */
async function stop({
  name,
  service: { foundation, program, leave },
  log,
}: {
  readonly name: ServeOptions["program"];
  readonly service: Service;
  readonly log: Log;
}): Promise<boolean> {
  const { config } = program.configuration();
  program.drain();
  if (program.port !== undefined && config.http.drainDelayMs > 0)
    await pause(config.http.drainDelayMs, new AbortController().signal);

  const limitMs = finishLimitMs(name, config);
  const isFinished = await endsWithin(limitMs, program.stop());
  if (!isFinished)
    log.error(
      { event: "stop.cut", unfinished: program.unfinished(), limitMs },
      "what is in hand did not end in time, and is cut off",
    );
  const closed = leave()
    .catch((error: unknown) =>
      log.warn({ reason: messageOf(error) }, "the process stays on the list for a while"),
    )
    .then(() => foundation.close());
  const isClosed = await endsWithin(closeLimitMs, closed);
  if (!isClosed)
    log.warn(
      { event: "stop.cut", limitMs: closeLimitMs },
      "the database or the broker did not close in time",
    );
  return isFinished && isClosed;
}

function flushed(log: Log): Promise<void> {
  return new Promise((resolve) => log.flush(() => resolve()));
}
