import { expect } from "chai";
import { idOf, isUuid } from "../../src/kit/ids.ts";

describe("idOf", () => {
  for (const [text, expected] of [
    ["1", 1],
    ["2147483647", 2_147_483_647],
    ["2147483648", undefined],
    ["0", undefined],
    ["-1", undefined],
    ["01", undefined],
    ["1e3", undefined],
    ["abc", undefined],
    ["", undefined],
    [undefined, undefined],
  ] as const) {
    it(`reads ${JSON.stringify(text) ?? "no text"} as ${expected ?? "nothing"}`, () => {
      expect(idOf(text)).to.equal(expected);
    });
  }
});

describe("isUuid", () => {
  for (const [text, expected] of [
    ["0194f2c6-1c1e-7b3a-8f00-3a5d0c0e9b11", true],
    ["0194F2C6-1C1E-7B3A-8F00-3A5D0C0E9B11", true],
    ["00000000-0000-0000-0000-000000000000", true],
    ["0194f2c61c1e7b3a8f003a5d0c0e9b11", false],
    ["0194f2c6-1c1e-7b3a-8f00-3a5d0c0e9b1", false],
    ["0194f2c6-1c1e-7b3a-8f00-3a5d0c0e9b111", false],
    ["0194f2c6-1c1e-7b3a-8f00-3a5d0c0e9b1g", false],
    ["", false],
  ] as const) {
    it(`says ${expected} of ${JSON.stringify(text)}`, () => {
      expect(isUuid(text)).to.equal(expected);
    });
  }
});
