import { createFairQueue } from "./fair-queue.ts";

/** Tells short works when to begin. */
export interface FairTurns {
  /** Returns what a work is to wait for before it begins. Undefined: it may begin at once. */
  next(holder: string, cost: number): Promise<void> | undefined;
}

interface Waiting {
  readonly cost: number;
  readonly begin: () => void;
}

/**
 * Spreads short works over the turns of the event loop, by their cost, so that other callbacks run
 * between them. Holders whose works wait take turns.
 *
 * @param perTurn Cost of the works of one turn. A single one may cost more.
 */
export function createFairTurns(perTurn: number): FairTurns {
  const waiting = createFairQueue<Waiting>(({ cost }) => cost);
  /** In this turn of the event loop. */
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

  return {
    next(holder, cost) {
      plan();
      const isFree = waiting.size === 0 && (spent === 0 || spent + cost <= perTurn);
      if (!isFree) return new Promise((resolve) => waiting.add(holder, { cost, begin: resolve }));
      spent += cost;
      return undefined;
    },
  };
}
