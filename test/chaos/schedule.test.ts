import { expect } from "chai";
import { faultKinds, inTurns, type Lane, planFaults } from "../../bench/chaos/schedule.ts";

const lanes = Object.keys(faultKinds) as Lane[];

function longestHold(durationMs: number): number {
  return Math.max(...planFaults(5, durationMs).processes.map(({ holdMs }) => holdMs));
}

describe("planFaults", () => {
  it("plans the same faults for the same seed, and others for another", () => {
    expect(planFaults(1, 60_000)).to.deep.equal(planFaults(1, 60_000));
    expect(planFaults(1, 60_000)).to.not.deep.equal(planFaults(2, 60_000));
  });

  for (const lane of lanes) {
    const kinds: readonly string[] = faultKinds[lane];

    it(`plans every kind of ${lane} once before one repeats`, () => {
      const planned = planFaults(3, 300_000)[lane].map(({ kind }) => kind);

      expect(planned.slice(0, kinds.length)).to.have.members(kinds);
      expect(planned.slice(kinds.length, 2 * kinds.length)).to.have.members(kinds);
    });

    it(`plans enough of ${lane} to fill the time`, () => {
      const planned = planFaults(4, 60_000)[lane];

      const totalMs = planned.reduce((sum, { waitMs, holdMs }) => sum + waitMs + holdMs, 0);
      expect(totalMs).to.be.at.least(60_000);
    });
  }

  it("stops a process for longer than its leases in long runs only", () => {
    expect(longestHold(119_000)).to.be.at.most(6_000);
    expect(longestHold(1_200_000)).to.be.above(20_000);
  });

  it("affects one process, the other, and both", () => {
    const targets = planFaults(6, 600_000).processes.map((fault) => fault.targets.join());

    expect([...new Set(targets)]).to.have.members(["0", "1", "0,1"]);
  });
});

describe("inTurns", () => {
  it("takes one fault of each lane in turn", () => {
    const inOrder = inTurns(planFaults(1, 60_000)).map(({ lane }) => lane);

    expect(inOrder.slice(0, 2 * lanes.length)).to.deep.equal([...lanes, ...lanes]);
  });
});
