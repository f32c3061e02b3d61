import { expect } from "chai";
import { idOf } from "../../src/kit/ids.ts";

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
