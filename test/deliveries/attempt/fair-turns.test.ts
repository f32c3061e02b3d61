import { expect } from "chai";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createFairTurns } from "../../../src/deliveries/attempt/fair-turns.ts";

interface Scene {
  /** The holders of the works that have begun, in order. */
  readonly begun: string[];
  readonly add: (holder: string, given?: { readonly count?: number; readonly cost?: number }) => void;
}

function makeScene(perTurn: number): Scene {
  const nextTurnOf = createFairTurns(perTurn);
  const begun: string[] = [];
  const work = async (holder: string, cost: number): Promise<void> => {
    const turn = nextTurnOf(holder, cost);
    if (turn !== undefined) await turn;
    begun.push(holder);
  };
  return {
    begun,
    add(holder, { count = 1, cost = 1 } = {}) {
      for (let i = 0; i < count; i++) void work(holder, cost);
    },
  };
}

describe("createFairTurns", () => {
  it("begins tasks at once up to the limit of a turn", () => {
    const { begun, add } = makeScene(3);

    add("ada", { count: 2 });

    expect(begun).to.deep.equal(["ada", "ada"]);
  });

  it("begins that many in each turn, and lets others run between", async () => {
    const { begun, add } = makeScene(3);
    const lengths: number[] = [];
    add("ada", { count: 8 });
    const startedWith = begun.length;

    while (begun.length < 8) {
      await nextTurn();
      lengths.push(begun.length);
    }

    expect([startedWith, ...lengths]).to.deep.equal([3, 6, 8]);
  });

  it("begins none beside those that wait, in the turn in which these begin", async () => {
    const { begun, add } = makeScene(3);
    add("ada", { count: 6 });
    await nextTurn();

    add("ada");

    expect(begun).to.have.length(6);
  });

  it("plans no further turn when nothing waits", async () => {
    const { add } = makeScene(1);
    add("ada", { count: 2 });
    expect(process.getActiveResourcesInfo()).to.include("Immediate");
    for (let turn = 0; turn < 3; turn += 1) await nextTurn();

    expect(process.getActiveResourcesInfo()).to.not.include("Immediate");
  });

  it("begins at once again when a turn has begun none", async () => {
    const { begun, add } = makeScene(1);
    add("ada");
    await nextTurn();

    add("ada");

    expect(begun).to.have.length(2);
  });

  it("begins fewer that cost more, and one alone that costs more than a turn", async () => {
    const { begun, add } = makeScene(3);
    const lengths: number[] = [];
    add("ada", { count: 4, cost: 1.5 });
    add("ada", { count: 2, cost: 16 });
    const startedWith = begun.length;

    while (begun.length < 6) {
      await nextTurn();
      lengths.push(begun.length);
    }

    expect([startedWith, ...lengths]).to.deep.equal([2, 4, 5, 6]);
  });

  it("begins none that exceeds the rest of the turn, even when few wait", async () => {
    const { begun, add } = makeScene(3);
    add("ada");
    add("ada", { cost: 16 });
    expect(begun).to.have.length(1);

    await nextTurn();

    expect(begun).to.have.length(2);
  });

  it("begins one at once that costs more than a turn when nothing has begun in this turn", () => {
    const { begun, add } = makeScene(3);

    add("ada", { cost: 16 });

    expect(begun).to.have.length(1);
  });

  it("begins no small one while a large one of the holder waits", async () => {
    const { begun, add } = makeScene(3);
    add("ada");
    add("ada", { cost: 16 });
    add("ada");
    expect(begun).to.have.length(1);

    await nextTurn();

    expect(begun).to.have.length(2);
  });

  it("lets the one task of a holder pass the 100 of another", async () => {
    const { begun, add } = makeScene(3);
    add("ada", { count: 100 });
    add("bea");

    await nextTurn();

    expect(begun.indexOf("bea")).to.be.within(3, 5);
  });
});
