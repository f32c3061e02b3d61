import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../../src/kit/errors.ts";
import { createFault } from "./faults.ts";
import type { DoneFault } from "./recovery.ts";
import type { PlannedFault } from "./schedule.ts";
import type { System } from "./system.ts";

interface FaultRun {
  readonly system: System;
  /** No fault begins after this signal aborts. */
  readonly ending: AbortSignal;
  readonly progress: (text: string) => void;
  /** Gets the problems of the harness itself. */
  readonly troubles: string[];
  /** Additional wait before the next fault. */
  readonly untilRecovered?: () => Promise<void>;
}

const mostHeals = 5;

/** Runs the faults one after the other. The last one is healed early when `ending` aborts. */
export async function doFaults(
  planned: readonly PlannedFault[],
  { system, ending, progress, troubles, untilRecovered }: FaultRun,
): Promise<readonly DoneFault[]> {
  const done: DoneFault[] = [];
  for (const one of planned) {
    await pause(one.waitMs, ending);
    if (ending.aborted) break;
    const fault = createFault(system, one);
    const attempt = async (act: () => Promise<unknown>): Promise<boolean> => {
      try {
        await act();
        return true;
      } catch (error) {
        const trouble = `${one.kind}: ${messageOf(error)}`;
        troubles.push(trouble);
        progress(trouble);
        return false;
      }
    };
    const startedAtMs = Date.now();
    progress(lineOf(one));
    await attempt(() => fault.begin());
    await pause(one.holdMs, ending);
    // A fault that is not healed would be attributed to the service.
    for (let left = mostHeals; left > 0 && !(await attempt(() => fault.heal())); left -= 1);
    done.push({ ...one, startedAtMs, healedAtMs: Date.now() });
    if (untilRecovered !== undefined) await attempt(untilRecovered);
  }
  return done;
}

function lineOf({ lane, kind, targets, holdMs }: PlannedFault): string {
  const isOfOne = ["processes", "network", "receivers", "owners"].includes(lane);
  const whose = isOfOne ? ` (${targets.join(" and ")})` : "";
  return `${kind}${whose}${holdMs > 0 ? ` for ${(holdMs / 1000).toFixed(1)} s` : ""}`;
}

async function pause(ms: number, ending: AbortSignal): Promise<void> {
  await sleep(ms, undefined, { signal: ending }).catch(() => undefined);
}
