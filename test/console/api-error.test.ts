import { expect } from "chai";
import { ApiError, mayBeDone } from "../../src/console/api/api-error.ts";

describe("mayBeDone", () => {
  for (const [status, expected] of [
    [0, true],
    [400, false],
    [401, true],
    [403, false],
    [408, true],
    [409, true],
    [422, false],
    [429, true],
    [500, true],
    [504, true],
  ] as const)
    it(`is ${expected} for the status ${status}`, () => {
      expect(mayBeDone(new ApiError({ message: "", status }))).to.equal(expected);
    });
});
