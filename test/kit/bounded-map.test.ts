import { expect } from "chai";
import { setBounded } from "../../src/kit/bounded-map.ts";

describe("setBounded", () => {
  it("removes the entry set first when there are more than allowed", () => {
    const map = new Map<string, number>();
    for (const entry of [
      ["a", 1],
      ["b", 2],
      ["c", 3],
    ] as const)
      setBounded(map, entry, 2);

    expect([...map]).to.deep.equal([
      ["b", 2],
      ["c", 3],
    ]);
  });

  it("keeps an entry that is set again longer than others", () => {
    const map = new Map<string, number>();
    for (const entry of [
      ["a", 1],
      ["b", 2],
      ["a", 3],
      ["c", 4],
    ] as const)
      setBounded(map, entry, 2);

    expect([...map]).to.deep.equal([
      ["a", 3],
      ["c", 4],
    ]);
  });
});
