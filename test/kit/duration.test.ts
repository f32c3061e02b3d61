import { expect } from "chai";
import { durationMsOf } from "../../src/kit/duration.ts";

describe("durationMsOf", () => {
  const cases: readonly (readonly [string, number | undefined])[] = [
    ["365d", 31_536_000_000],
    ["12h", 43_200_000],
    ["30m", 1_800_000],
    ["1m", 60_000],
    ["36500d", 3_153_600_000_000],
    ["36501d", undefined],
    ["999999999d", undefined],
    ["0d", undefined],
    ["-1d", undefined],
    ["1.5h", undefined],
    ["30", undefined],
    ["d", undefined],
    ["30s", undefined],
    ["1d12h", undefined],
    ["30M", undefined],
    ["", undefined],
  ];
  for (const [text, expected] of cases) {
    it(`reads ${JSON.stringify(text)} as ${expected === undefined ? "nothing" : `${expected} ms`}`, () => {
      expect(durationMsOf(text)).to.equal(expected);
    });
  }
});
