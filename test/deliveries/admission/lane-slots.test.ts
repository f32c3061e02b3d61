import { expect } from "chai";
import { laneShares } from "../../../src/deliveries/admission/lane-slots.ts";

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
