import { expect } from "chai";
import { createSharedSlots, type SharedSlots } from "../../../src/deliveries/admission/shared-slots.ts";

const joinAfterMs = 4_000;
const origins = Array.from({ length: 200 }, (_, index) => `https://${index}.example.com`);
const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0);

const sharesOf = (all: Iterable<SharedSlots>, origin: string, limit: number): readonly number[] =>
  [...all].map((one) => one.shareOf(origin, limit));

describe("createSharedSlots", () => {
  let nowMs: number;

  beforeEach(() => {
    nowMs = 50_000;
  });

  const create = (id: string): SharedSlots => createSharedSlots({ id, joinAfterMs, now: () => nowMs });
  /** Returns dispatchers that have seen one another for long enough. */
  const settled = (ids: readonly string[]): ReadonlyMap<string, SharedSlots> => {
    const all = new Map(ids.map((id) => [id, create(id)]));
    for (const one of all.values()) one.see(ids);
    nowMs += joinAfterMs;
    for (const one of all.values()) one.see(ids);
    return all;
  };

  it("forgets the use of idle receivers beyond the last thousand, and of no other", () => {
    const slots = create("one");
    const [attempted, reserved] = [slots.usedOf("attempted"), slots.usedOf("reserved")];
    attempted.inUse = 1;
    reserved.pending = 1;
    const idle = Array.from({ length: 1_500 }, (_, index) => slots.usedOf(String(index)));

    // 998 idle ones are kept.
    for (const index of [502, 1_499]) expect(slots.usedOf(String(index))).to.equal(idle[index]);
    expect(slots.usedOf("attempted")).to.equal(attempted);
    expect(slots.usedOf("reserved")).to.equal(reserved);
    // This one is new, and takes the place of the one whose last use is the oldest.
    expect(slots.usedOf("501")).to.not.equal(idle[501]);
    expect(slots.usedOf("502")).to.equal(idle[502]);
  });

  describe("of dispatchers that know each other", () => {
    for (const [limit, count, expected] of [
      [1, 1, [1]],
      [1, 2, [0, 1]],
      [3, 2, [1, 2]],
      [4, 2, [2, 2]],
      [1, 3, [0, 0, 1]],
      [5, 3, [1, 2, 2]],
      [10_000, 3, [3_333, 3_333, 3_334]],
    ] as const) {
      it(`gives ${expected.join(", ")} of ${limit} slots`, () => {
        const all = settled(Array.from({ length: count }, (_, index) => `id ${index}`));

        for (const origin of origins)
          expect(sharesOf(all.values(), origin, limit).toSorted((one, other) => one - other)).to.deep.equal(
            expected,
          );
      });
    }

    it("gives the remainder of different receivers to different ones", () => {
      const all = settled(["a", "b", "c"]);

      for (const one of all.values()) {
        const count = sum(origins.map((origin) => one.shareOf(origin, 1)));
        expect(count).to.be.within(40, 95);
      }
    });

    it("uses the same order for any order of the list", () => {
      const [one, other] = [create("a"), create("a")];
      one.see(["a"]);
      other.see(["a"]);
      one.see(["a", "b", "c"]);
      other.see(["c", "b", "a"]);

      for (const origin of origins) expect(one.shareOf(origin, 2)).to.equal(other.shareOf(origin, 2));
    });
  });

  describe("of a dispatcher that starts", () => {
    it("gives none before the list was read", () => {
      expect(create("a").shareOf("x", 8)).to.equal(0);
      expect(create("a").dispatchers()).to.equal(1);
    });

    it("gives all at once when there is no other", () => {
      const one = create("a");
      one.see(["a"]);

      expect(one.shareOf("x", 8)).to.equal(8);
    });

    it("gives none until the others have seen it, and reduces their parts at once", () => {
      const one = create("a");
      one.see(["a"]);
      const late = create("b");
      late.see(["a", "b"]);
      one.see(["a", "b"]);
      nowMs += joinAfterMs - 1;
      late.see(["a", "b"]);
      expect([one, late].map((each) => each.shareOf("x", 8))).to.deep.equal([4, 0]);

      nowMs += 1;
      late.see(["a", "b"]);

      expect([one, late].map((each) => each.shareOf("x", 8))).to.deep.equal([4, 4]);
      expect(late.dispatchers()).to.equal(2);
    });

    it("starts over when the others considered it dead", () => {
      const all = settled(["a", "b"]);
      const one = all.get("a") as SharedSlots;
      one.see(["b"]);
      expect(one.shareOf("x", 8)).to.equal(0);

      one.see(["a", "b"]);
      nowMs += joinAfterMs - 1;
      one.see(["a", "b"]);
      expect(one.shareOf("x", 8)).to.equal(0);
      nowMs += 1;
      one.see(["a", "b"]);
      expect(one.shareOf("x", 8)).to.equal(4);
    });
  });

  it("keeps its share while it reads no list", () => {
    const one = settled(["a", "b"]).get("a") as SharedSlots;
    nowMs += 3_600_000;

    expect(one.shareOf("x", 8)).to.equal(4);
  });

  it("gives the share of a stopped one to the others, as soon as they read it", () => {
    const all = settled(["a", "b", "c"]);
    const left = ["a", "b"].map((id) => all.get(id) as SharedSlots);
    for (const origin of origins) {
      const before = sharesOf(left, origin, 2);
      for (const one of left) one.see(["a", "b"]);

      expect(sharesOf(left, origin, 2)).to.deep.equal([1, 1]);
      expect(sum(before)).to.be.below(3);
      for (const one of left) one.see(["a", "b", "c"]);
    }
  });

  it("never exceeds the limit, for any lists that were read", () => {
    const ids = ["a", "b", "c", "d", "e"];
    const all = settled(ids);
    // Each has seen all senders, "a" to "c", and some that have gone or do not send yet.
    const lists = [["a", "b", "c"], ids, ["a", "b", "c", "d"], ["a", "b", "c", "e"]];
    for (const limit of [1, 2, 3, 4, 7])
      for (const one of lists)
        for (const other of lists)
          for (const third of lists) {
            [one, other, third].forEach((list, index) => all.get(ids[index] ?? "")?.see(list));
            const senders = ids.slice(0, 3).map((id) => all.get(id) as SharedSlots);
            for (const origin of origins.slice(0, 20))
              expect(sum(sharesOf(senders, origin, limit))).to.be.at.most(limit);
          }
  });

  it("keeps the count of slots in use", () => {
    const one = create("a");
    const busy = one.usedOf("busy");
    busy.inUse += 1;
    one.usedOf("idle").inUse += 1;
    one.usedOf("idle").inUse -= 1;
    for (let count = 0; count < 1_000; count += 1) one.usedOf(`other ${count}`);

    expect(one.usedOf("busy")).to.equal(busy);
  });

  it("calls the waiting lanes and the last listener exactly when the shares have changed", () => {
    const one = create("a");
    const calls = { waiting: 0, before: 0, watching: 0 };
    one.waiting.add(() => (calls.waiting += 1));
    one.watch(() => (calls.before += 1));
    one.watch(() => (calls.watching += 1));

    one.see(["a", "b"]);
    expect(calls).to.deep.equal({ waiting: 1, before: 0, watching: 1 });
    one.see(["a", "b"]);
    expect(calls).to.deep.equal({ waiting: 1, before: 0, watching: 1 });
    nowMs += joinAfterMs;
    one.see(["a", "b"]);

    expect(calls).to.deep.equal({ waiting: 2, before: 0, watching: 2 });
  });
});
