import { expect } from "chai";
import { createFairBudget } from "../../src/subscriptions/fair-budget.ts";

describe("createFairBudget", () => {
  it("lets a holder use its burst at once, then its refill", () => {
    let nowMs = 1_000;
    const budget = createFairBudget({ perSecond: 100, burst: 50, now: () => nowMs });

    expect(budget.left(1)).to.equal(50);
    budget.spend(1, 30);
    expect(budget.left(1)).to.equal(20);
    budget.spend(1, 40);
    expect(budget.left(1)).to.equal(0);
    nowMs += 200;
    expect(budget.left(1)).to.equal(0);
    nowMs += 200;
    expect(budget.left(1)).to.equal(20);
    nowMs += 60_000;
    expect(budget.left(1)).to.equal(50);
  });

  it("gives each waiting holder the same part, and unused parts to the others", () => {
    let nowMs = 0;
    const budget = createFairBudget({ perSecond: 90, burst: 100, now: () => nowMs });
    budget.spend(1, 100);
    budget.spend(2, 10);
    budget.spend(3, 100);

    nowMs = 1_000;
    expect([1, 2, 3, 4].map((holder) => budget.left(holder))).to.deep.equal([40, 100, 40, 100]);
    nowMs = 2_000;
    expect([1, 2, 3].map((holder) => budget.left(holder))).to.deep.equal([85, 100, 85]);
    budget.spend(1, 85);
    nowMs = 3_000;
    expect([1, 3].map((holder) => budget.left(holder))).to.deep.equal([75, 100]);
  });

  it("refills every 50 ms, and loses no time between refills", () => {
    let nowMs = 0;
    const budget = createFairBudget({ perSecond: 100, burst: 10, now: () => nowMs });
    budget.spend(1, 10);
    const seen: number[] = [];
    for (; nowMs <= 100; nowMs += 10) seen.push(budget.left(1));

    expect(seen).to.deep.equal([0, 0, 0, 0, 0, 5, 5, 5, 5, 5, 10]);
  });
});
