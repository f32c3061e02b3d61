import { serviceActor } from "../kit/actor.ts";
import { createApi } from "./api.ts";
import type { Config } from "../config/load.ts";
import type { Configuration } from "./configuration.ts";
import type { ProgramName } from "../config/contradictions.ts";
import { createDeliveryStore } from "../deliveries/store.ts";
import { createDispatcher } from "./dispatcher.ts";
import { messageOf } from "../kit/errors.ts";
import type { Infrastructure } from "./infrastructure.ts";
import { createHandover, type Handover } from "../http/handover.ts";
import { startServer, type HttpServer } from "../http/server.ts";
import { runWorkers, type Assembly, type Running } from "./workers.ts";
import { createTokenProvider, type TokenProvider } from "../users/provider.ts";

/** A program at work, on one configuration at a time. */
export interface Program {
  /** That the API listens on; undefined without one. */
  readonly port: number | undefined;
  readonly tokens: TokenProvider;
  /** The one at work. */
  configuration(): Configuration;
  /** Rejects when a part of it cannot go on; the process is then to be stopped. */
  readonly failed: Promise<never>;
  /**
   * Makes everything that runs on another configuration. Throws what stands in its way, and nothing has happened then.
   *
   * @returns Puts it in the place of the one at work, at once. Requests and attempts in hand end on the one before, which is closed
   *   behind the caller's back.
   */
  prepare(next: Configuration): () => void;
  /** Asks clients to leave: with every answer from now on, on connections that they keep. */
  drain(): void;
  /** What is in hand: `3 requests`, `deliver`. Empty when nothing is. */
  unfinished(): readonly string[];
  /** Stops taking requests and work, finishes what is in hand, and closes. */
  stop(): Promise<void>;
}

/** What runs on one configuration. */
interface Generation {
  readonly configuration: Configuration;
  readonly assemblies: readonly Assembly[];
  running: Running | undefined;
}

/** How long requests in hand may take at the end. */
const requestLimitMs = 10_000;
/** What an attempt or a relay turn needs besides: its outcome is written and acknowledged. */
const marginMs = 5_000;

/** How long finishing what is in hand may take; an attempt takes `webhooks.timeout` at most, a publish as long as a request. */
export function finishLimitMs(name: ProgramName, { webhooks }: Config): number {
  return Math.max(requestLimitMs, name === "api" ? 0 : webhooks.timeoutMs) + marginMs;
}

/** Starts `svc api`, `svc dispatcher` or both. */
export async function startProgram({
  name,
  infrastructure,
  configuration,
}: {
  readonly name: Exclude<ProgramName, "admin">;
  readonly infrastructure: Infrastructure;
  readonly configuration: Configuration;
}): Promise<Program> {
  const { database, sql, log } = infrastructure;
  const tokens = createTokenProvider({ prisma: database.prisma, sql, log, actor: serviceActor(name) });
  const handover = createHandover();
  const retiring = new Map<Generation, Promise<void>>();
  const { promise: failed, reject: fail } = promiseOfFailure();

  function assemble(next: Configuration): Generation {
    const options = { infrastructure, configuration: next };
    const assemblies = [
      ...(name === "api" ? [] : [createDispatcher(options)]),
      ...(name === "dispatcher" ? [] : [createApi({ ...options, tokens })]),
    ];
    return { configuration: next, assemblies, running: undefined };
  }

  function run(generation: Generation): void {
    const workers = generation.assemblies.flatMap((assembly) => assembly.workers);
    const running = runWorkers({ workers, log });
    generation.running = running;
    running.failed.catch((error: unknown) => {
      if (generation === current) fail(error);
      else
        log.error({ reason: messageOf(error) }, "a worker of the configuration before did not stop cleanly");
    });
  }

  /** Never rejects: what goes wrong here concerns nobody but the log. */
  async function retire(generation: Generation, requestsAnswered: Promise<void>): Promise<void> {
    await Promise.all([generation.running?.stop(), requestsAnswered]);
    await close(generation).catch((error: unknown) =>
      log.error({ reason: messageOf(error) }, "the configuration before was not closed cleanly"),
    );
    retiring.delete(generation);
  }

  let current = assemble(configuration);
  // Nobody else can be at work on it: what is in flight was of a process that died.
  if (infrastructure.isEmbedded) await createDeliveryStore(infrastructure).endAllFlights();
  void passTo(handover, current);
  const server: HttpServer | undefined =
    name === "dispatcher"
      ? undefined
      : await startServer(handover.listener, { ...configuration.config.http, log, setting: "SVC_PORT" });
  run(current);

  return {
    port: server?.port,
    tokens,
    configuration: () => current.configuration,
    failed,
    prepare(next) {
      const generation = assemble(next);
      return () => {
        const before = current;
        current = generation;
        run(generation);
        retiring.set(before, retire(before, passTo(handover, generation)));
      };
    },
    drain: () => handover.drain(),
    unfinished() {
      const requests = handover.inFlight();
      const workers = [current, ...retiring.keys()].flatMap(({ running }) => running?.unfinished() ?? []);
      return [...(requests > 0 ? [`requests: ${requests}`] : []), ...workers];
    },
    async stop() {
      handover.drain();
      const warning = setTimeout(() => {
        const requests = handover.inFlight();
        if (requests > 0)
          log.warn({ requests, limitMs: requestLimitMs }, "requests did not end in time, and are cut off");
        // Before the server cuts them.
      }, requestLimitMs - 100);
      await Promise.all([
        server?.close({ limitMs: requestLimitMs }),
        current.running?.stop(),
        ...retiring.values(),
      ]);
      clearTimeout(warning);
      await tokens.close();
      await close(current);
    },
  };
}

/** Whoever watches decides; nobody watching is not a crash of its own. */
function promiseOfFailure(): {
  readonly promise: Promise<never>;
  readonly reject: (reason: unknown) => void;
} {
  const breaking = new AbortController();
  const promise = new Promise<never>((_, reject) =>
    breaking.signal.addEventListener("abort", () => reject(breaking.signal.reason)),
  );
  promise.catch(() => undefined);
  return { promise, reject: (reason) => breaking.abort(reason) };
}

function passTo(handover: Handover, { assemblies }: Generation): Promise<void> {
  const listener = assemblies.find((assembly) => assembly.listener !== undefined)?.listener;
  return listener === undefined ? Promise.resolve() : handover.pass(listener);
}

async function close({ assemblies, configuration }: Generation): Promise<void> {
  for (const assembly of assemblies) assembly.close();
  await configuration.close();
}
