import { expect } from "chai";
import { parseRetryAfter } from "../../../src/deliveries/attempt/retry-after.ts";

const now = new Date("2026-03-28T14:30:00.500Z");

const cases: readonly [header: string | undefined, seconds: number | undefined][] = [
  ["120", 120],
  [" 0 ", 0],
  ["Sat, 28 Mar 2026 14:31:00 GMT", 60],
  ["Saturday, 28-Mar-26 14:31:00 GMT", 60],
  ["Sat, 28 Mar 2026 14:29:00 GMT", 0],
  [undefined, undefined],
  ["", undefined],
  ["-5", undefined],
  ["1.5", undefined],
  ["1e3", undefined],
  ["12 seconds", undefined],
  ["soon", undefined],
  ["Sat Mar 28 14:31:00 2026", undefined],
  ["Sat, 28 Mar 2026 14:31:00", undefined],
  ["Sat, 99 Mar 2026 14:31:00 GMT", undefined],
  ["1764000000000", 1_764_000_000_000],
  ["9".repeat(400), Infinity],
];

describe("parseRetryAfter", () => {
  for (const [header, seconds] of cases) {
    it(`reads ${JSON.stringify(header)?.slice(0, 42) ?? "no header"} as ${seconds ?? "nothing"}`, () => {
      expect(parseRetryAfter(header, now)).to.equal(seconds);
    });
  }
});
