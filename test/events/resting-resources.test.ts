import { expect } from "chai";
import { createRestingResources, type RestingResources } from "../../src/events/resting-resources.ts";

describe("createRestingResources", () => {
  let nowMs: number;
  let resting: RestingResources;

  beforeEach(() => {
    nowMs = 50_000;
    resting = createRestingResources({ longestPauseMs: 300_000, now: () => nowMs });
  });

  /** Returns the pauses in s. */
  const rest = (resource: string, times: number, isPassing = false): readonly number[] =>
    Array.from({ length: times }, () => resting.rest(resource, { isPassing }) / 1_000);

  it("doubles the pause with each failure, up to half a minute", () => {
    expect(rest("notes", 7)).to.deep.equal([1, 2, 4, 8, 16, 30, 30]);
    expect(resting.wake("notes")).to.equal(true);
    expect([resting.has("notes"), resting.wake("notes")]).to.deep.equal([false, false]);
    expect(rest("notes", 1)).to.deep.equal([1]);
  });

  it("has longer pauses the more resources rest, up to the longest", () => {
    rest("papers", 1);
    expect(rest("notes", 8).slice(-2)).to.deep.equal([60, 60]);
    for (let other = 0; other < 20; other += 1) rest(String(other), 1);

    expect(rest("notes", 4)).to.deep.equal([256, 300, 300, 300]);
  });

  it("has a pause of a second, and counts anew, when the fault is not the resource's", () => {
    rest("notes", 5);

    expect(rest("notes", 2, true)).to.deep.equal([1, 1]);
    expect(rest("notes", 2)).to.deep.equal([1, 2]);
  });

  it("is due when its pause is over", () => {
    rest("notes", 2);
    rest("papers", 1);
    nowMs += 999;
    expect(resting.due()).to.deep.equal([]);
    nowMs += 1;
    expect(resting.due()).to.deep.equal(["papers"]);
    nowMs += 1_000;
    expect(resting.due()).to.deep.equal(["notes", "papers"]);
  });

  it("keeps the events that were tried until it wakes", () => {
    rest("notes", 1);
    resting.tried("notes").set("7", true);
    rest("notes", 1);
    expect([...resting.tried("notes")]).to.deep.equal([["7", true]]);

    resting.wake("notes");

    expect(resting.tried("notes").size).to.equal(0);
  });
});
