import { serviceActor } from "../kit/actor.ts";
import { createApi } from "./api.ts";
import type { Config } from "../config/load.ts";
import type { Configuration, ConfigurationSource } from "./configuration.ts";
import type { ServiceName } from "../config/programs.ts";
import { createDeliveryStore } from "../deliveries/store.ts";
import { createDispatcher } from "./dispatcher.ts";
import { messageOf } from "../kit/errors.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createHandover, type Handover } from "../http/handover.ts";
import { startServer, type HttpServer } from "../http/server.ts";
import type { Log } from "../telemetry/log.ts";
import { runWorkers, type Assembly, type Running } from "./workers.ts";
import { createTokenProvider, type TokenProvider } from "../users/provider.ts";

/**
 * Number of handles that accept connections. Each connection costs more CPU with more handles: a
 * tenth more with 32.
 */
const acceptors = 16;

/** A running program, on one configuration at a time. */
export interface Program {
  /** Port of the API; undefined without one. */
  readonly port: number | undefined;
  readonly tokens: TokenProvider;
  configuration(): Configuration;
  /** Rejects when a part of the program cannot continue; the process must then stop. */
  readonly failed: Promise<never>;
  /**
   * Creates everything that runs on another configuration. Throws when that fails, and then changes
   * nothing.
   *
   * @returns A function that activates the configuration at once. Requests and attempts in flight
   *   end on the previous configuration, which closes in the background.
   */
  prepare(next: Configuration): () => void;
  /** Asks clients, with every answer from now on, to close their connections. */
  drain(): void;
  /**
   * Returns the time limit of `stop`. It includes configurations that still have work in flight.
   */
  finishLimitMs(): number;
  /** Returns the work in flight: `requests: 3`, `deliver`. Empty without any. */
  unfinished(): readonly string[];
  /** Refuses new requests and work, finishes the work in flight, and closes. */
  stop(): Promise<void>;
}

/** The parts that run on one configuration. */
interface Generation {
  readonly configuration: Configuration;
  readonly assemblies: readonly Assembly[];
  running: Running | undefined;
}

/** Limit for requests in flight during a stop. */
const requestLimitMs = 10_000;
/** Extra time of an attempt or a relay turn, which stores and acknowledges its outcome. */
const marginMs = 5_000;

/**
 * Returns the time limit of a stop for the work in flight. An attempt takes `webhooks.timeout` at
 * most, a publish as long as a request.
 */
export function finishLimitMs(name: ServiceName, { webhooks }: Config): number {
  return Math.max(requestLimitMs, name === "api" ? 0 : webhooks.timeoutMs) + marginMs;
}

/** A program with its generations. */
interface Context {
  readonly name: ServiceName;
  readonly infrastructure: Infrastructure;
  readonly tokens: TokenProvider;
  readonly source: ConfigurationSource;
  readonly handover: Handover;
  /** Generations that finish their work in flight. */
  readonly retiring: Map<Generation, Promise<void>>;
  /** Reports that a part of the current generation cannot continue. */
  readonly fail: (error: unknown) => void;
  current: Generation;
}

/** Starts `svc api`, `svc dispatcher` or both. */
export async function startProgram({
  name,
  infrastructure,
  configuration,
  source,
}: {
  readonly name: ServiceName;
  readonly infrastructure: Infrastructure;
  readonly configuration: Configuration;
  readonly source: ConfigurationSource;
}): Promise<Program> {
  const { sql, transact, log } = infrastructure;
  const tokens = createTokenProvider({ sql, transact, log, actor: serviceActor(name) });
  let fail!: Context["fail"];
  const failed = new Promise<never>((_, reject) => (fail = reject));
  // Without a listener, its rejection must not end the process.
  failed.catch(() => undefined);
  const handover = createHandover();
  const parts = { name, infrastructure, tokens, source };
  const current = assemble(parts, configuration);
  const context: Context = { ...parts, handover, retiring: new Map(), fail, current };
  // Only one process uses the embedded database, so flights in it belong to a process that died.
  if (infrastructure.isEmbedded) await createDeliveryStore(infrastructure).endAllFlights();
  void passTo(handover, current);
  const server: HttpServer | undefined =
    name === "dispatcher"
      ? undefined
      : await startServer(handover.listener, {
          ...configuration.config.http,
          acceptors,
          log,
          countRefused: (status) => infrastructure.metrics.http.refused(status),
          settings: { host: "SVC_HOST", port: "SVC_PORT" },
        });
  run(context, current);
  return {
    port: server?.port,
    tokens,
    configuration: () => context.current.configuration,
    failed,
    prepare(next) {
      const generation = assemble(context, next);
      return () => activate(context, generation);
    },
    drain: () => handover.drain(),
    finishLimitMs: () =>
      Math.max(
        ...[context.current, ...context.retiring.keys()].map(({ configuration: { config } }) =>
          finishLimitMs(name, config),
        ),
      ),
    unfinished: () => unfinishedOf(context),
    stop: () => stop(context, server),
  };
}

function assemble(
  { name, infrastructure, tokens, source }: Pick<Context, "name" | "infrastructure" | "tokens" | "source">,
  configuration: Configuration,
): Generation {
  const assemblies = [
    ...(name === "api" ? [] : [createDispatcher(infrastructure, configuration)]),
    ...(name === "dispatcher" ? [] : [createApi({ infrastructure, configuration, tokens, source })]),
  ];
  return { configuration, assemblies, running: undefined };
}

function run(context: Context, generation: Generation): void {
  const { log } = context.infrastructure;
  const workers = generation.assemblies.flatMap((assembly) => assembly.workers);
  const running = runWorkers(workers, log);
  generation.running = running;
  running.failed.catch((error: unknown) => {
    if (generation === context.current) context.fail(error);
    else
      log.error({ reason: messageOf(error) }, "a worker of the previous configuration did not stop cleanly");
  });
}

function activate(context: Context, generation: Generation): void {
  const before = context.current;
  context.current = generation;
  run(context, generation);
  context.retiring.set(before, retire(context, before, passTo(context.handover, generation)));
}

/** Closes a generation that was replaced. Never rejects: a failure only goes to the log. */
async function retire(
  { infrastructure: { log }, retiring }: Context,
  generation: Generation,
  requestsAnswered: Promise<void>,
): Promise<void> {
  await Promise.all([generation.running?.stop(), requestsAnswered]);
  await close(generation).catch((error: unknown) =>
    log.error({ reason: messageOf(error) }, "the previous configuration was not closed cleanly"),
  );
  retiring.delete(generation);
}

function unfinishedOf({ handover, current, retiring }: Context): readonly string[] {
  const requests = handover.inFlight();
  const workers = [current, ...retiring.keys()].flatMap(({ running }) => running?.unfinished() ?? []);
  return [...(requests > 0 ? [`requests: ${requests}`] : []), ...workers];
}

async function stop(context: Context, server: HttpServer | undefined): Promise<void> {
  const { handover, retiring, tokens, infrastructure } = context;
  handover.drain();
  // Fires before the server closes the connections of these requests.
  const warning = setTimeout(() => warnOfRequests(handover, infrastructure.log), requestLimitMs - 100);
  await Promise.all([
    server?.close({ limitMs: requestLimitMs }),
    context.current.running?.stop(),
    ...retiring.values(),
  ]);
  clearTimeout(warning);
  await tokens.close();
  await close(context.current);
}

function warnOfRequests(handover: Handover, log: Log): void {
  const requests = handover.inFlight();
  if (requests > 0)
    log.warn(
      { requests, limitMs: requestLimitMs },
      "requests did not end in time; closing their connections",
    );
}

function passTo(handover: Handover, { assemblies }: Generation): Promise<void> {
  const listener = assemblies.find((assembly) => assembly.listener !== undefined)?.listener;
  return listener === undefined ? Promise.resolve() : handover.pass(listener);
}

async function close({ assemblies, configuration }: Generation): Promise<void> {
  for (const assembly of assemblies) assembly.close();
  await configuration.close();
}
