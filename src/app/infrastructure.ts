import { randomUUID } from "node:crypto";
import type { Pool } from "pg";
import type { Broker } from "../broker/broker.ts";
import { createInProcessBroker } from "../broker/in-process.ts";
import { connectRabbitMq } from "../broker/rabbitmq.ts";
import type { JwtSettings } from "../config/settings.ts";
import type { ProgramName } from "../config/programs.ts";
import { createSql } from "../db/sql.ts";
import { createSharedSlots, type SharedSlots } from "../deliveries/admission/shared-slots.ts";
import { createEventHorizon, type EventHorizon } from "../events/event-horizon.ts";
import { createConcurrency } from "../http/concurrency.ts";
import { createMemoryBudgets } from "../http/memory-budget.ts";
import { createPresence, type Presence } from "../http/presence.ts";
import { createUserTurns } from "../http/user-turns.ts";
import type { Actor } from "../kit/actor.ts";
import { processPollMs } from "../operations/processes.ts";
import type { Log } from "../telemetry/log.ts";
import { createMetrics, type Metrics } from "../telemetry/metrics.ts";
import { startTracing } from "../telemetry/start-tracing.ts";
import type { Tracing } from "../telemetry/tracing.ts";
import { createKeySources, type KeySource } from "../users/key-set.ts";
import type { CheckedConfiguration } from "./configuration.ts";
import { prepareDatabase } from "./prepare-database.ts";
import type { Readiness } from "./readiness.ts";
import { addScrapeSources } from "./scrape-sources.ts";
import { openStorage, type Opening, type Storage } from "./storage.ts";

/**
 * The parts that live as long as the process, under any configuration. API and dispatcher share
 * them in `svc all`.
 */
export interface Infrastructure extends Storage {
  /** Id of the process in `svc.processes`. */
  readonly processId: string;
  readonly sharedSlots: SharedSlots;
  readonly metrics: Metrics;
  readonly broker: Broker;
  readonly tracing: Tracing;
  /**
   * A new horizon would know no event until every open transaction has ended. The list of events
   * would be empty.
   */
  readonly eventHorizon: EventHorizon;
  /** Tracks which users are active. */
  readonly presence: Presence;
  /** Return the limits of requests, which count those of a previous configuration too. */
  readonly concurrencyOf: ReturnType<typeof createConcurrency>;
  readonly userTurnsOf: ReturnType<typeof createUserTurns>;
  /** Returns the memory that requests share. Those of a previous configuration still hold some. */
  readonly memoryBudgetOf: ReturnType<typeof createMemoryBudgets>;
  /** Returns the source of an issuer's keys. */
  readonly keySourceOf: (settings: JwtSettings) => KeySource;
  /** Closes everything, in the reverse order of opening. */
  close(): Promise<void>;
}

/**
 * Opens the database and the broker in parallel, and waits for both without a limit. Prepares the
 * database as soon as it answers, even if the broker does not.
 *
 * @param readiness Shows which part the start waits for, and then the state of each part.
 * @param actor Who starts the program, for the audit trail.
 * @param signal Aborts the wait for a server that does not answer.
 * @throws OperatorError for a fault that waiting does not repair.
 */
export async function openInfrastructure({
  checked,
  program,
  log,
  metrics = createMetrics(),
  readiness,
  actor,
  signal,
}: {
  readonly checked: CheckedConfiguration;
  readonly program: ProgramName;
  readonly log: Log;
  readonly metrics?: Metrics;
  readonly readiness: Readiness;
  readonly actor: Actor;
  readonly signal: AbortSignal;
}): Promise<Infrastructure> {
  const { config } = checked;
  const closers: Opening["closers"] = [];
  // A permanent fault of one server also ends the wait for the other.
  const giveUp = new AbortController();
  const ended = AbortSignal.any([signal, giveUp.signal]);
  const opening: Opening = { config, program, log, readiness, signal: ended, closers };
  try {
    const tracing = await startTracing(config.tracing, log);
    // Closed last, so that the spans of all other parts are sent.
    closers.push(() => tracing.close());
    const servers = [
      orGiveUp(openPreparedStorage(opening, checked, actor), giveUp),
      orGiveUp(openBroker(opening), giveUp),
    ] as const;
    // Waits for both, so that opened parts can be closed.
    await Promise.allSettled(servers);
    const [storage, broker] = await Promise.all(servers);
    addScrapeSources(metrics, storage.database, broker);
    const { database, isEmbedded } = storage;
    const processId = randomUUID();
    return {
      ...storage,
      processId,
      sharedSlots: openSharedSlots(processId, storage),
      metrics,
      broker,
      tracing,
      eventHorizon: createEventHorizon({ sql: createSql({ pool: database.lists, isEmbedded }) }),
      ...openRequestLimits(database.pool),
      memoryBudgetOf: createMemoryBudgets(),
      keySourceOf: createKeySources(log),
      close: () => closeAll(closers),
    };
  } catch (error) {
    await closeAll(closers);
    // Throws the first fault, which ended the wait for the other server.
    throw giveUp.signal.aborted ? giveUp.signal.reason : error;
  }
}

function openRequestLimits(pool: Pool): Pick<Infrastructure, "presence" | "concurrencyOf" | "userTurnsOf"> {
  const presence = createPresence();
  return {
    presence,
    concurrencyOf: createConcurrency(),
    userTurnsOf: createUserTurns({ atWork: halfOf(pool), alone: 2 * pool.options.max, presence }),
  };
}

/** Returns half of the connections of a pool, at least one. */
export function halfOf(pool: Pool): number {
  return Math.max(1, Math.floor(pool.options.max / 2));
}

function openSharedSlots(id: string, { isEmbedded }: Storage): SharedSlots {
  const shared = createSharedSlots({
    id,
    // By then, every other dispatcher has read the list twice.
    joinAfterMs: 2 * processPollMs,
    now: () => performance.now(),
  });
  // Only one process uses the embedded database.
  if (isEmbedded) shared.see([id]);
  return shared;
}

async function openPreparedStorage(
  opening: Opening,
  checked: CheckedConfiguration,
  actor: Actor,
): Promise<Storage> {
  const { readiness, signal } = opening;
  const storage = await openStorage(opening);
  await prepareDatabase({ checked, storage, actor, readiness, signal });
  return storage;
}

async function openBroker({ config, log, readiness, signal, closers }: Opening): Promise<Broker> {
  const { url } = config.broker;
  const onWait = (reason: string): void => readiness.waitsFor("broker", reason);
  const broker =
    url === undefined ? createInProcessBroker({ log }) : await connectRabbitMq({ url, log, onWait, signal });
  closers.push(() => broker.close());
  readiness.watch("broker", async () => {
    const fault = await broker.fault();
    if (fault !== undefined) throw new Error(fault);
  });
  return broker;
}

async function closeAll(closers: Opening["closers"]): Promise<void> {
  while (closers.length > 0) await closers.pop()?.();
}

async function orGiveUp<T>(opening: Promise<T>, giveUp: AbortController): Promise<T> {
  try {
    return await opening;
  } catch (error) {
    giveUp.abort(error);
    throw error;
  }
}
