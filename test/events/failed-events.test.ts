import { expect } from "chai";
import { createFailedEvents, type FailedEvents } from "../../src/events/failed-events.ts";

describe("createFailedEvents", () => {
  let nowMs: number;
  let room: FailedEvents;

  beforeEach(() => {
    nowMs = 50_000;
    room = createFailedEvents({ longestPauseMs: 300_000, now: () => nowMs });
  });

  const fail = (id: string, times = 1): number[] => Array.from({ length: times }, () => room.add(id));

  it("doubles the wait with each failure of one, up to half a minute", () => {
    expect(fail("a", 7)).to.deep.equal([1_000, 2_000, 4_000, 8_000, 16_000, 30_027, 30_027]);
    expect(fail("b")).to.deep.equal([1_000]);
    expect(fail("a", 100).at(-1)).to.equal(30_054);
  });

  it("waits longer the more have failed, up to the longest wait", () => {
    for (let one = 1; one < 10_000; one += 1) fail(String(one));

    expect(fail("a", 11)).to.deep.equal([
      1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 64_000, 128_000, 256_000, 300_000, 300_000,
    ]);
  });

  it("gives a lasting failure the longest wait, after any others", () => {
    fail("b");
    expect([room.add("a", { isLasting: true }), room.add("b", { isLasting: true })]).to.deep.equal([
      300_000, 300_000,
    ]);
    nowMs += 300_000;
    expect(room.take(10), "one at a time").to.have.length(1);
  });

  it("returns one again that was given back, with its failures", () => {
    fail("a", 2);
    nowMs += 2_000;
    expect(room.take(10)).to.deep.equal(["a"]);

    room.giveBack("a");

    expect(room.take(10)).to.deep.equal(["a"]);
    expect(room.add("a")).to.equal(4_000);
    room.giveBack("b");
    expect(room.has("b")).to.equal(false);
  });

  it("returns each when it is due, and once", () => {
    fail("a");
    nowMs += 999;
    expect(room.take(10)).to.deep.equal([]);
    nowMs += 1;
    fail("b");

    expect(room.take(10)).to.deep.equal(["a"]);
    expect(room.take(10)).to.deep.equal([]);
    expect(room.has("a")).to.equal(true);
  });

  it("continues the count of failures when one that was taken fails again", () => {
    fail("a");
    nowMs += 1_000;
    room.take(10);

    expect(fail("a")).to.deep.equal([2_000]);
    nowMs += 1_999;
    expect(room.take(10)).to.deep.equal([]);
    nowMs += 1;
    expect(room.take(10)).to.deep.equal(["a"]);
  });

  it("starts over with a forgotten one", () => {
    fail("a", 5);
    room.forget("a");

    expect(room.has("a")).to.equal(false);
    expect(fail("a")).to.deep.equal([1_000]);
  });

  it("makes all that failed on their way due at once when one of them has arrived, and no other", () => {
    room.add("at work", { isOnWay: true });
    nowMs += 1_000;
    expect(room.take(1)).to.deep.equal(["at work"]);
    for (let count = 0; count < 6; count += 1)
      for (const id of ["a", "b", "c", "tried"]) room.add(id, { isOnWay: true });
    fail("refused", 2);
    fail("arrived", 6);
    for (const id of ["arrived", "never failed"]) room.arrived(id);
    expect(room.take(70)).to.deep.equal([]);
    nowMs += 2_000;
    expect(room.take(1)).to.deep.equal(["refused"]);
    fail("refused", 1);

    room.arrived("a");

    expect(room.has("a")).to.equal(false);
    expect(room.take(3)).to.deep.equal(["b", "c", "tried"]);
    room.arrived("b");
    expect(room.take(70)).to.deep.equal([]);
  });

  for (const [failures, atOnce] of [
    [1, 50],
    [2, 12],
    [3, 3],
    [4, 1],
    [40, 1],
  ] as const) {
    it(`returns ${atOnce} of 200 at once of those that failed ${failures} times`, () => {
      for (let id = 0; id < 300; id++) fail(String(id), failures);
      nowMs += 300_000;

      expect(room.take(200)).to.have.length(atOnce);
    });
  }

  it("returns those with the fewest failures first, and the others too", () => {
    fail("often", 4);
    nowMs += 7_000;
    fail("once");
    nowMs += 1_000;

    expect([room.take(200), room.take(200)]).to.deep.equal([["once"], ["often"]]);
  });

  it("returns those first that failed on their way, however often", () => {
    fail("once");
    for (let count = 0; count < 4; count += 1) room.add("on its way", { isOnWay: true });
    nowMs += 8_000;

    expect([room.take(200), room.take(200)]).to.deep.equal([["on its way"], ["once"]]);
  });

  it("returns those of slow owners last, and of these the longest due first", () => {
    for (const id of ["older", "older", "newer"]) room.add(id, { isSlow: true });
    fail("others", 3);
    nowMs += 8_000;
    room.giveBack("newer");

    expect([room.take(200), room.take(200), room.take(200)]).to.deep.equal([
      ["others"],
      ["older"],
      ["newer"],
    ]);
  });

  it("is full for a resource with half of the free places of 10,000", () => {
    for (let id = 0; id < 4_999; id++) room.add(String(id), { resource: "notes" });
    expect(room.isFull("notes")).to.equal(false);
    for (let failures = 0; failures < 2; failures += 1) room.add("4998", { resource: "notes" });
    expect(room.isFull("notes")).to.equal(false);
    room.add("last", { resource: "notes" });
    room.add("last");
    expect([room.isFull("notes"), room.isFull("papers")]).to.deep.equal([true, false]);

    for (let id = 5_000; id < 7_500; id++) room.add(String(id), { resource: "papers" });

    expect([room.isFull("papers"), room.isFull("others")]).to.deep.equal([true, false]);
    for (let id = 0; id < 2_600; id++) room.forget(String(id));
    expect([room.isFull("notes"), room.isFull("papers")]).to.deep.equal([false, false]);
    for (let id = 0; id < 1_349; id++) room.add(String(id), { resource: "notes" });
    expect(room.isFull("notes")).to.equal(false);
    room.add("1349", { resource: "notes" });
    expect(room.isFull("notes")).to.equal(true);

    for (const id of room.ids()) room.forget(id);
    for (let id = 0; id < 6_000; id++) room.add(String(id), { resource: "others" });
    expect([room.isFull("notes"), room.isFull("others")]).to.deep.equal([false, true]);
  });
});
