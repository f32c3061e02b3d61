import { createFairQueue } from "../fair-queue.ts";

interface Waiting {
  readonly cost: number;
  readonly begin: () => void;
}

/**
 * Spreads short tasks over the turns of the event loop, by their cost, so that other callbacks run
 * between them. Holders whose tasks wait take turns.
 *
 * @param perTurn Cost of the tasks of one turn. A single task may cost more.
 * @returns A function that returns a promise for which a task waits before it begins. Undefined:
 *   the task may begin at once.
 */
export function createFairTurns(
  perTurn: number,
): (holder: string, cost: number) => Promise<void> | undefined {
  const waiting = createFairQueue<Waiting>(({ cost }) => cost);
  /** Cost of the tasks that began in this turn of the event loop. */
  let spent = 0;
  let isPlanned = false;

  function begin(): void {
    isPlanned = false;
    const next = waiting.take({ items: Infinity, cost: perTurn });
    spent = next.reduce((sum, { cost }) => sum + cost, 0);
    if (spent > 0) plan();
    for (const one of next) one.begin();
  }

  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(begin);
  }

  return (holder, cost) => {
    plan();
    const isFree = waiting.size === 0 && (spent === 0 || spent + cost <= perTurn);
    if (!isFree) return new Promise((resolve) => waiting.add(holder, { cost, begin: resolve }));
    spent += cost;
    return undefined;
  };
}
