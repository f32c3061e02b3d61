import { expect } from "chai";
import { createLaneSlots, laneShares } from "../../../src/deliveries/admission/lane-slots.ts";
import { createOwnSlots } from "../../support/shared-slots.ts";

describe("laneShares", () => {
  for (const [slots, first, retry] of [
    [64, 48, 16],
    [16, 12, 4],
    [5, 4, 1],
    [2, 1, 1],
    [1, 1, 1],
  ] as const) {
    it(`gives ${retry} of ${slots} slots to retries`, () => {
      expect(laneShares(slots)).to.deep.equal({ first, retry });
    });
  }
});

describe("createLaneSlots", () => {
  it("limits a receiver that answers quickly to three quarters of the slots of each lane", () => {
    const sharedSlots = createOwnSlots();
    const lanes = createLaneSlots({
      concurrency: 64,
      perReceiver: undefined,
      sharedSlots,
      now: () => 50_000,
    });
    const holder = { userId: 1, origin: "a" };
    const countOf = (lane: "first" | "retry"): number => {
      let begun = 0;
      const enter = (ends: boolean): void =>
        lanes[lane].reserve(holder)?.enter({
          begin: (release) => (ends ? release(100) : (begun += 1)),
          giveUp: () => expect.fail("gave up"),
        });
      enter(true);
      while (lanes[lane].roomOf(holder) > 0) enter(false);
      return begun;
    };

    expect([countOf("first"), countOf("retry")]).to.deep.equal([36, 12]);
  });
});
