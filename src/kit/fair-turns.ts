import { createFairQueue } from "./fair-queue.ts";

/**
 * Spreads short works over the turns of the event loop, so many in each: what has become ready
 * meanwhile waits for few of them. Holders whose works wait take turns.
 *
 * @returns What a work calls before it begins, and waits for. Undefined: it may begin at once.
 */
export function createFairTurns(perTurn: number): (holder: string) => Promise<void> | undefined {
  const waiting = createFairQueue<() => void>(() => 1);
  /** In this turn of the event loop. */
  let begun = 0;
  let isPlanned = false;

  function begin(): void {
    isPlanned = false;
    const next = waiting.take({ items: perTurn, cost: perTurn });
    begun = next.length;
    if (begun > 0) plan();
    for (const resolve of next) resolve();
  }

  function plan(): void {
    if (isPlanned) return;
    isPlanned = true;
    setImmediate(begin);
  }

  return (holder) => {
    plan();
    if (begun >= perTurn) return new Promise((resolve) => void waiting.add(holder, resolve));
    begun += 1;
    return undefined;
  };
}
