/** What holders may spend over time, shared fairly among them. */
export interface FairBudget {
  /** Returns how much the holder may spend now; at most its burst, and 0 at least. */
  left(holder: number): number;
  spend(holder: number, amount: number): void;
}

/** How much all holders together, and each of them, may spend. */
export interface FairBudgetOptions {
  /** What all holders together may spend. */
  readonly perSecond: number;
  /** Most that one holder may owe. */
  readonly burst: number;
  /** In ms, never going back. */
  readonly now: () => number;
}

/** Least time between two payments, since each sorts all holders that owe. */
const payEveryMs = 50;

/**
 * Creates a budget. What holders spend, they owe. They pay it off together, `perSecond`, each the
 * same part. One that owes little leaves the rest of its part to the others, so that one alone has
 * it all.
 */
export function createFairBudget({ perSecond, burst, now }: FairBudgetOptions): FairBudget {
  /** Debts by holder; a holder without debt has no entry. */
  const owed = new Map<number, number>();
  let paidAtMs = now();

  function pay(): void {
    const sinceMs = now() - paidAtMs;
    if (sinceMs < payEveryMs) return;
    paidAtMs += sinceMs;
    let left = (sinceMs / 1000) * perSecond;
    let holders = owed.size;
    // From the one that owes least on: what it leaves is for all that follow.
    for (const [holder, debt] of [...owed].toSorted(([, one], [, other]) => one - other)) {
      const part = Math.min(debt, left / holders);
      if (part < debt) owed.set(holder, debt - part);
      else owed.delete(holder);
      left -= part;
      holders -= 1;
    }
  }

  return {
    left(holder) {
      pay();
      return Math.max(0, burst - (owed.get(holder) ?? 0));
    },
    spend(holder, amount) {
      if (amount > 0) owed.set(holder, (owed.get(holder) ?? 0) + amount);
    },
  };
}
