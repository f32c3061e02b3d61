import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Environment } from "../config/load.ts";
import type { ServiceName } from "../config/programs.ts";
import { readConfiguration, type CheckedConfiguration } from "./configuration.ts";
import { messageOf, OperatorError } from "../kit/errors.ts";
import type { Definitions } from "../mapping/definition.ts";
import { findSilentSubscriptions } from "../subscriptions/silent-subscriptions.ts";
import { greeting } from "./greeting.ts";
import { createReadiness, startHealth } from "./readiness.ts";
import { silentWebhooks } from "../resources/silent-webhooks.ts";
import { impossibleRules } from "../resources/impossible-rules.ts";
import { unreachableFields } from "../resources/unreachable.ts";
import { openHostsWarning } from "../http/url-of.ts";
import { createLog, isForPeople, type Log } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { startService, type Service } from "./service.ts";
import { unknownVariables } from "../config/unknown-variables.ts";
import { aborted, endsWithin } from "../kit/worker.ts";

/** Options that a program gets from its process. */
interface ServeOptions extends Environment {
  readonly program: ServiceName;
  /** Version of the service, for the metrics. */
  readonly version: string;
  /** Aborts when the process must stop; the reason is the name of the signal. */
  readonly stopping: AbortSignal;
  /** Adds a listener of requested reloads; calls it at once if one was requested before. */
  readonly onReload: (listener: () => void) => void;
  /** Prints a text for people in addition to the log. */
  readonly print: (text: string) => void;
}

/** Limit for closing after the work is finished. */
const closeLimitMs = 5_000;
/** How long a probe or a scrape may still take then. */
const healthLimitMs = 200;
/** Limit for the last lines of the log. */
const flushLimitMs = 2_000;

/**
 * Runs `svc <program>`: waits for its servers, works, reloads, and stops on a signal. `/livez` and
 * `/readyz` answer before the wait and until the end of the stop.
 *
 * @returns The exit status: 0 after an orderly stop, 1 when the time limit cut off work in flight.
 * @throws OperatorError for a fault that waiting does not repair; else the error that ended a part
 *   of the program.
 */
export async function serve({
  program: name,
  env,
  cwd,
  version,
  stopping,
  onReload,
  print,
}: ServeOptions): Promise<number> {
  const read = (): Promise<CheckedConfiguration> => readConfiguration({ env, cwd, program: name });
  const unknown = unknownVariables({ env, cwd });
  const checked = await read().catch((error: unknown) => {
    // The missing variable may be there under a mistyped name.
    if (!(error instanceof OperatorError) || unknown.length === 0) throw error;
    throw new OperatorError([error.message, ...unknown].join("\n"), { cause: error });
  });
  const isPretty = isForPeople(process.stdout, env);
  const log = createLog({ level: checked.config.log.level, isPretty });
  for (const warning of unknown) log.warn(warning);
  const settingsFile = join(checked.config.configDir, "service.yaml");
  if (!existsSync(settingsFile))
    log.info(
      { path: settingsFile },
      "there is no such file: settings come from the environment or have their defaults",
    );
  if (name !== "dispatcher") warnOfConfiguration(checked, log);
  const metrics = createMetrics();
  metrics.describeProcess({ version, program: name });
  const readiness = createReadiness();
  const health = await startHealth(checked.config, metrics, readiness);

  const onStop = (): void => {
    log.info({ signal: stopping.reason as unknown }, "stopping; a second signal ends at once");
    const reason = `draining since ${new Date().toISOString()}, after ${String(stopping.reason)}`;
    readiness.watch("shutdown", () => Promise.reject(new Error(reason)));
  };
  if (stopping.aborted) onStop();
  else stopping.addEventListener("abort", onStop);
  try {
    const source = { read, cwd };
    const starting = startService({ name, checked, source, log, metrics, readiness, stopping, onReload });
    const service = await startedOrStopped(starting, stopping, log);
    let isClean = true;
    if (service !== undefined) {
      const { port: metricsPort } = health;
      log.info({ program: name, port: service.program.port, metricsPort }, "started");
      try {
        // A service on PostgreSQL and RabbitMQ writes a log for machines: JSON lines only.
        if (isPretty || service.infrastructure.isEmbedded) await greet({ service, metricsPort, log, print });
        if (name !== "dispatcher") await warnOfSilentSubscriptions(service, checked.definitions, log);
        await Promise.race([aborted(stopping), service.failed]);
      } finally {
        // Applies without a signal too, when a part has failed.
        if (!stopping.aborted)
          readiness.watch("shutdown", () => Promise.reject(new Error("a part of the program has failed")));
        isClean = await stop(service, log);
      }
    }
    log.info({ program: name }, "stopped");
    return isClean ? 0 : 1;
  } finally {
    await health.close({ limitMs: healthLimitMs });
    // `process.exit` would wait until a program reads the rest, or the disk has room for it.
    if (!(await flushed(log))) process.kill(process.pid, "SIGKILL");
  }
}

/** Warns of settings of an API that may surprise its operator. */
function warnOfConfiguration({ config, definitions }: CheckedConfiguration, log: Log): void {
  const openHosts = openHostsWarning(config.http);
  if (openHosts !== undefined) log.warn({ event: "hosts.open" }, openHosts);
  for (const warning of [...definitions.values()].flatMap(unreachableFields))
    log.warn({ event: "field.unreachable" }, warning);
  for (const warning of [...definitions.values()].flatMap(impossibleRules))
    log.warn({ event: "rule.impossible" }, warning);
  for (const warning of silentWebhooks(definitions)) log.warn({ event: "webhooks.silent" }, warning);
}

/** Warns of webhooks that can never fire. The program also starts when the check fails. */
async function warnOfSilentSubscriptions(
  { infrastructure: { sql } }: Service,
  definitions: Definitions,
  log: Log,
): Promise<void> {
  try {
    for (const { resource, count } of await findSilentSubscriptions(sql, definitions))
      log.warn(
        { event: "webhooks.silent", resource, subscriptions: count },
        "active webhooks can never fire: their users may read no record of the resource",
      );
  } catch (error) {
    log.warn({ reason: messageOf(error) }, "could not look for webhooks that can never fire");
  }
}

/** Returns no service when a signal stopped the start, because nothing has to be stopped then. */
async function startedOrStopped(
  starting: Promise<Service>,
  stopping: AbortSignal,
  log: Log,
): Promise<Service | undefined> {
  const started = starting.then(
    (service) => ({ service }),
    (error: unknown) => {
      // An aborted start rejects because of the signal.
      if (!stopping.aborted) throw error;
      return { service: undefined };
    },
  );
  const first = await Promise.race([started, aborted(stopping)]);
  if (first !== undefined) return first.service;
  if (await endsWithin(closeLimitMs, started)) return (await started).service;
  log.warn({ limitMs: closeLimitMs }, "the start did not end in time; ending the process");
  return undefined;
}

async function greet({
  service,
  metricsPort,
  log,
  print,
}: {
  readonly service: Service;
  readonly metricsPort: number;
  readonly log: Log;
  readonly print: (text: string) => void;
}): Promise<void> {
  const { program, tokenFile } = service;
  const { port } = program;
  if (port === undefined) return;
  const text = greeting({ config: program.configuration().config, port, metricsPort, tokenFile });
  // People read the end of the output, so the log lines come first.
  await flushed(log);
  print(text);
}

/**
 * Stops within its limits, even if a part hangs. Returns whether all work in flight was finished.
 */
async function stop({ infrastructure, program, leave }: Service, log: Log): Promise<boolean> {
  const { config } = program.configuration();
  program.drain();
  if (program.port !== undefined && config.http.drainDelayMs > 0) await sleep(config.http.drainDelayMs);

  const limitMs = program.finishLimitMs();
  const isFinished = await endsWithin(limitMs, program.stop());
  if (!isFinished)
    log.error(
      { event: "stop.cut", unfinished: program.unfinished(), limitMs },
      "work in flight did not end in time; ending the process",
    );
  const closed = leave()
    .catch((error: unknown) =>
      log.warn({ reason: messageOf(error) }, "the row of the process in svc.processes could not be deleted"),
    )
    .then(() => infrastructure.close());
  const isClosed = await endsWithin(closeLimitMs, closed);
  if (!isClosed)
    log.warn(
      { event: "stop.cut", limitMs: closeLimitMs },
      "the database or the broker did not close in time",
    );
  return isFinished && isClosed;
}

/** Returns whether the log has been written within its limit. */
function flushed(log: Log): Promise<boolean> {
  const written = new Promise<void>((resolve) =>
    log.flush((error?: NodeJS.ErrnoException) => {
      // A pipe refuses the `fsync` after its writes. Without a reader, it takes no more lines.
      if (error?.syscall !== "write" || error.code === "EPIPE") resolve();
    }),
  );
  return endsWithin(flushLimitMs, written);
}
