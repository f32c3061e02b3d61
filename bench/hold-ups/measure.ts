import { setTimeout as sleep } from "node:timers/promises";
import { startPeer } from "../peer.ts";
import type { AtEnd } from "../run-to-end.ts";
import type { HoldUp, Sizes } from "./hold-up.ts";
import { type MeterReport, startMeter } from "./meter.ts";
import type { Place } from "./servers.ts";
import { startSystem } from "./system.ts";
import type { VictimAnswer, VictimQuestion } from "./victim.ts";

/** One row of the table. */
export interface Outcome extends MeterReport {
  readonly name: string;
  readonly note: string;
  readonly victim: VictimAnswer;
  readonly peakBytes: { readonly api: number; readonly dispatcher: number };
  /** Last output of processes that ended unrequested. */
  readonly endings: readonly string[];
  readonly limitKind: string;
}

interface Durations {
  /** Duration of the phases before and after the hold-up. */
  readonly calmMs: number;
  /** Least duration of the hold-up. */
  readonly holdMs: number;
}

interface Stage {
  readonly place: Place;
  readonly sizes: Sizes;
  readonly durations: Durations;
}

const ratePerSecond = 20;
const lastArrivalMs = 60_000;

/** Releases the resources of one hold-up, in reverse order. */
async function withReleases<T>(atEnd: AtEnd, work: (atEnd: AtEnd) => Promise<T>): Promise<T> {
  const releases: (() => Promise<void> | void)[] = [];
  const release = async (): Promise<void> => {
    for (let next = releases.pop(); next !== undefined; next = releases.pop()) await next();
  };
  // For a run that is interrupted.
  atEnd(release);
  try {
    return await work((one) => void releases.push(one));
  } finally {
    await release();
  }
}

/**
 * Runs the victim before, during and after the hold-up, on a separate system, which is removed
 * afterwards.
 */
export function measure(
  holdUp: HoldUp,
  { atEnd, ...stage }: Stage & { readonly atEnd: AtEnd },
): Promise<Outcome> {
  return withReleases(atEnd, (toRelease) => watch(holdUp, stage, toRelease));
}

async function watch(
  holdUp: HoldUp,
  { place, sizes, durations: { calmMs, holdMs } }: Stage,
  atEnd: AtEnd,
): Promise<Outcome> {
  const system = await startSystem(place, atEnd);
  const { bea, api, dispatcher } = system;
  const victim = startPeer<VictimQuestion, VictimAnswer>("hold-ups/victim.ts");
  atEnd(() => victim.end());
  const { port } = await victim.ask({ kind: "open" });
  await system.subscribe(bea, { port });
  const { run, release } = await holdUp.prepare(system, sizes);
  const job = {
    notesUrl: system.notesUrl,
    token: bea.token,
    userId: bea.id,
    databaseUrl: place.ownUrl,
    ratePerSecond,
  };
  await victim.ask({ kind: "begin", job });
  await sleep(calmMs);
  const stopMeter = await startMeter(system.sql);
  await victim.ask({ kind: "phase", phase: "during" });
  const [note] = await Promise.all([run(holdMs), sleep(holdMs)]);
  await victim.ask({ kind: "phase", phase: "after" });
  const meter = await stopMeter();
  await release?.();
  await sleep(calmMs);
  return {
    ...meter,
    name: holdUp.name,
    note,
    victim: await victim.ask({ kind: "end", limitMs: lastArrivalMs }),
    peakBytes: { api: api.peakBytes(), dispatcher: dispatcher.peakBytes() },
    endings: [...api.endings, ...dispatcher.endings],
    limitKind: system.limitKind,
  };
}
