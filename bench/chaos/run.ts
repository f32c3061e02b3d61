import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../src/kit/errors.ts";
import type { AtEnd } from "../run-to-end.ts";
import { openBooks } from "./books.ts";
import { doFaults } from "./fault-runs.ts";
import { isClean, type Ledger } from "./ledger.ts";
import { sources, startLoad } from "./load.ts";
import { byKind, type KindRecovery, recoveriesOf } from "./recovery.ts";
import { inTurns, planFaults } from "./schedule.ts";
import { switchOn } from "./steering.ts";
import { faultyReceivers, startSystem, steadyReceiver } from "./system.ts";

interface ChaosOptions {
  readonly seed: number;
  /** Duration of the faults. */
  readonly durationMs: number;
  /** Most changes a second. */
  readonly ratePerSecond: number;
  /**
   * Whether each fault waits until the system has recovered from the previous one. There are then
   * fewer faults, with separate times.
   */
  readonly isOneByOne: boolean;
  /** Limit of the time afterwards until everything has arrived. */
  readonly drainLimitMs: number;
  /** Registers releases, which also run when the run fails. */
  readonly atEnd: AtEnd;
  /** Gets a line on the progress. */
  readonly progress: (text: string) => void;
}

export interface ChaosResult {
  readonly seed: number;
  readonly durationMs: number;
  readonly ratePerSecond: number;
  readonly ledger: Ledger;
  /** Undefined when not everything arrived within the limit. */
  readonly drainedAfterMs: number | undefined;
  readonly recoveries: readonly KindRecovery[];
  /** Number of answers of the API by status. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Answers of the API that no fault explains. */
  readonly unexpected: readonly string[];
  /** Problems of the harness: faults that could not be done, or a recovery that took too long. */
  readonly troubles: readonly string[];
  /** By process: the largest resident set, and the output before each unrequested end. */
  readonly processes: readonly {
    readonly name: string;
    readonly peakBytes: number;
    readonly endings: readonly string[];
  }[];
  /** Log lines about deliveries in neither the queue nor a flight. */
  readonly strays: readonly string[];
  /** Whether nothing was lost, invented or astray, and everything was drained. */
  readonly isPassed: boolean;
}

/** Time after the last fault, for the changes that show how long the system took to recover. */
const calmMs = 5_000;
const reportEveryMs = 10_000;
const recoveryLimitMs = 90_000;

/**
 * Starts the system, runs the faults of the seed under load, heals everything and closes the books.
 */
export async function runChaos({
  seed,
  durationMs,
  ratePerSecond,
  isOneByOne,
  drainLimitMs,
  atEnd,
  progress,
}: ChaosOptions): Promise<ChaosResult> {
  progress("starting PostgreSQL, RabbitMQ, two APIs and two dispatchers");
  const system = await startSystem(atEnd);
  const load = startLoad(system, ratePerSecond);
  const books = openBooks(system);
  const troubles: string[] = [];
  const reports = setInterval(() => {
    books.update().catch((error: unknown) => troubles.push(messageOf(error)));
    progress(`${load.acknowledged()} changes acknowledged, ${books.arrivals.length} POSTs received`);
  }, reportEveryMs);
  atEnd(() => clearInterval(reports));

  progress(`seed ${seed}: faults for ${durationMs / 1000} s`);
  const ending = AbortSignal.timeout(durationMs);
  const run = { system, ending, progress, troubles };
  const plan = planFaults(seed, durationMs);
  const untilRecovered = (): Promise<void> => books.untilArrived(recoveryLimitMs);
  const done = isOneByOne
    ? [await doFaults(inTurns(plan), { ...run, untilRecovered })]
    : await Promise.all(Object.values(plan).map((lane) => doFaults(lane, run)));
  await sleep(calmMs);
  await load.stop();
  clearInterval(reports);
  await switchOn(system);

  progress("everything is healed and nobody writes: waiting until all has arrived");
  const { ledger, drainedAfterMs, replayed } = await books.close(load, drainLimitMs);
  const recoveries = recoveriesOf({
    faults: done.flat(),
    arrivals: books.arrivals.filter(({ delivery }) => !replayed.has(delivery)),
    steady: steadyReceiver,
    faulty: faultyReceivers,
    owned: system.owned.map(({ path }) => path),
    sources,
  });
  const strays = system.dispatchers.flatMap(({ program }) => linesWith(program.written(), "sweep.strays"));
  return {
    seed,
    durationMs,
    ratePerSecond,
    ledger,
    drainedAfterMs,
    recoveries: byKind(recoveries),
    statuses: load.statuses(),
    unexpected: load.unexpected(),
    troubles,
    processes: [...system.apis, ...system.dispatchers].map((one) => ({
      name: one.name,
      peakBytes: one.peakBytes(),
      endings: one.endings,
    })),
    strays,
    isPassed: isClean(ledger) && strays.length === 0 && drainedAfterMs !== undefined,
  };
}

function linesWith(text: string, part: string): readonly string[] {
  return text.split("\n").filter((line) => line.includes(part));
}
