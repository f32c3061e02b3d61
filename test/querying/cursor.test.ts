import { expect } from "chai";
import { createCursors, type Position } from "../../src/querying/cursor.ts";

const [before, now, other] = [Buffer.alloc(32, 1), Buffer.alloc(32, 2), Buffer.alloc(32, 3)];
const position: Position = { values: ["7", null], isBackwards: true, isInclusive: false };

describe("createCursors", () => {
  it("opens a cursor for its own purpose only", () => {
    const cursors = createCursors(now);
    const cursor = cursors.seal(position, "tasks");

    expect(cursors.open(cursor, "tasks")).to.deep.equal(position);
    expect(cursors.open(cursor, "notes")).to.equal(undefined);
    expect(createCursors(other).open(cursor, "tasks")).to.equal(undefined);
    expect(cursors.open("short", "tasks")).to.equal(undefined);
  });

  it("has the same length for values of 1 and of 100 bytes, and opens longer ones", () => {
    const cursors = createCursors(now);
    const [short, long, longer] = ["a", "é".repeat(50), "é".repeat(500)].map((value) => {
      const one = { ...position, values: [value, "7"] };
      const cursor = cursors.seal(one, "tasks");
      expect(cursors.open(cursor, "tasks")).to.deep.equal(one);
      return cursor.length;
    });

    expect(short).to.equal(long);
    expect(longer).to.be.above(long ?? 0);
  });

  it("opens those of earlier keys, and makes none with them", () => {
    const rotated = createCursors(now, [other, before]);

    expect(rotated.open(createCursors(before).seal(position, "tasks"), "tasks")).to.deep.equal(position);
    expect(createCursors(before).open(rotated.seal(position, "tasks"), "tasks")).to.equal(undefined);
    expect(createCursors(now).open(rotated.seal(position, "tasks"), "tasks")).to.deep.equal(position);
  });
});
