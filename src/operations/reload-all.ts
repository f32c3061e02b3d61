import { setTimeout as sleep } from "node:timers/promises";
import type { Actor } from "../kit/actor.ts";
import type { Sql } from "../db/sql.ts";
import { askForReload, findProcesses, type ProcessRow } from "./processes.ts";

/** The outcome for one process. */
export interface Answer {
  readonly asked: ProcessRow;
  readonly outcome: "reloaded" | "refused" | "stopped" | "no answer";
  /** Hash of the configuration in use. */
  readonly configuration: string;
  readonly faults: readonly string[];
}

const lookEveryMs = 200;

/**
 * Makes every live process reload, and waits for the answers. Returns none when no process runs.
 *
 * @param limitMs Time to wait. Processes without an answer then have the outcome `no answer`.
 */
export async function reloadAll(sql: Sql, actor: Actor, limitMs: number): Promise<readonly Answer[]> {
  const asked = await askForReload(sql, actor);
  const ids = asked.map(({ id }) => id);
  const deadline = performance.now() + limitMs;
  for (;;) {
    const now = new Map((await findProcesses(sql, ids)).map((row) => [row.id, row]));
    const answers = asked.map((one) => answerOf(one, now.get(one.id)));
    const isOver = performance.now() > deadline || answers.every(({ outcome }) => outcome !== "no answer");
    if (isOver) return answers.toSorted((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
    await sleep(lookEveryMs);
  }
}

function answerOf(asked: ProcessRow, now: ProcessRow | undefined): Answer {
  // A process that stops deletes its row.
  if (now === undefined) return { asked, outcome: "stopped", configuration: asked.configuration, faults: [] };
  const { configuration, reloadFaults: faults } = now;
  if (now.reloadsAnswered < asked.reloadsAsked)
    return { asked, outcome: "no answer", configuration, faults: [] };
  return { asked, outcome: faults.length === 0 ? "reloaded" : "refused", configuration, faults };
}

/**
 * Returns whether there are processes, and every one has reloaded or stopped, as for the command.
 */
export function haveAllReloaded(answers: readonly Pick<Answer, "outcome">[]): boolean {
  return (
    answers.length > 0 && answers.every(({ outcome }) => outcome === "reloaded" || outcome === "stopped")
  );
}

/** Returns the name of a process for people. */
export function placeOf({ asked: { program, host, pid } }: Answer): string {
  return `${program} on ${host}, process ${pid}`;
}
