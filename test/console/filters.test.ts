import { expect } from "chai";
import { timeCondition, valuesOf } from "../../src/console/pages/resources/filters.ts";

describe("timeCondition", () => {
  const local = "2026-01-02T03:30";
  const time = new Date(local).toISOString();
  const all = ["eq", "gte", "between"];

  for (const [what, operator, allowed, condition] of [
    ["the whole minute", "eq", all, { "filter[at][between]": `${time},${time.slice(0, -7)}59.999999Z` }],
    ["the time itself without between", "eq", ["eq", "gte"], { "filter[at]": time }],
    ["the time itself for another operator", "gte", all, { "filter[at][gte]": time }],
  ] as const)
    it(`finds ${what}`, () => {
      expect(timeCondition("at", operator, local, allowed)).to.deep.equal(condition);
    });
});

describe("valuesOf", () => {
  for (const [value, values] of [
    ["5,7", ["5", "7"]],
    ["5", ["5"]],
    ["a\\,b,c", ["a,b", "c"]],
    ["a\\\\,b", ["a\\", "b"]],
  ] as const)
    it(`reads ${value}`, () => {
      expect(valuesOf(value)).to.deep.equal(values);
    });
});
