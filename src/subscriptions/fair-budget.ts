/** A budget over time, shared fairly among its holders. */
export type FairBudget = ReturnType<typeof createFairBudget>;

/** Limits of all holders together, and of each holder. */
export interface FairBudgetOptions {
  /** Amount per second of all holders together. */
  readonly perSecond: number;
  /** Limit of the debt of one holder. */
  readonly burst: number;
  /** Monotonic clock, in ms. */
  readonly now: () => number;
}

/** Minimum time between two payments, since each sorts all holders with debts. */
const payEveryMs = 50;

/**
 * Creates a budget. The amounts that holders spend are their debts. All debts together are paid off
 * at `perSecond`, in equal parts. A holder with a small debt leaves the rest of its part to the
 * others. A single holder therefore gets the whole rate.
 */
export function createFairBudget({ perSecond, burst, now }: FairBudgetOptions) {
  /** Debts by holder; a holder without debt has no entry. */
  const owed = new Map<number, number>();
  let paidAtMs = now();

  function pay(): void {
    const sinceMs = now() - paidAtMs;
    if (sinceMs < payEveryMs) return;
    paidAtMs += sinceMs;
    let left = (sinceMs / 1000) * perSecond;
    let holders = owed.size;
    // Begins with the smallest debt: the rest of its part goes to all later holders.
    for (const [holder, debt] of [...owed].toSorted(([, one], [, other]) => one - other)) {
      const part = Math.min(debt, left / holders);
      if (part < debt) owed.set(holder, debt - part);
      else owed.delete(holder);
      left -= part;
      holders -= 1;
    }
  }

  return {
    /** Returns the amount that the holder may spend now; at most its burst, and 0 at least. */
    left(holder: number): number {
      pay();
      return Math.max(0, burst - (owed.get(holder) ?? 0));
    },
    spend(holder: number, amount: number): void {
      if (amount > 0) owed.set(holder, (owed.get(holder) ?? 0) + amount);
    },
  };
}
