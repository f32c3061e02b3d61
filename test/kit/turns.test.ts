import { expect } from "chai";
import { createSharedPlaces, createTurns } from "../../src/kit/turns.ts";

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("createTurns", () => {
  it("passes a slot on to waiting callers, in order, and lets no other holder wait for it", async () => {
    const turns = createTurns(1);
    const begun: string[] = [];
    const begin = (name: string): number => begun.push(name);
    expect(turns.take(1)).to.equal(undefined);
    void turns.take(1)?.then(() => begin("second"));
    void turns.take(1)?.then(() => begin("third"));

    expect([turns.isFree(1), turns.isFree(2)]).to.deep.equal([false, true]);
    expect(turns.take(2)).to.equal(undefined);
    turns.leave(1);
    await turn();
    expect(begun).to.deep.equal(["second"]);
    turns.leave(1);
    await turn();
    expect(begun).to.deep.equal(["second", "third"]);
    expect(turns.isFree(1)).to.equal(false);
    turns.leave(1);
    expect(turns.isFree(1)).to.equal(true);
  });

  it("gives a slot to the next caller where one has stopped waiting", async () => {
    const turns = createTurns(1);
    await turns.take(1);
    const impatient = turns.takeWithin(1, 1);
    let isNext = false;
    const next = turns.takeWithin(1, 60_000).then((isTaken) => (isNext = isTaken));
    expect(await impatient).to.equal(false);

    turns.leave(1);
    await turn();
    expect(isNext).to.equal(true);
    await next;
    turns.leave(1);
    expect(turns.isFree(1)).to.equal(true);
  });

  it("starts all that fit with the next free slot, after the number of slots has grown", async () => {
    let places = 1;
    const turns = createTurns(() => places);
    await turns.take(1);
    let begun = 0;
    for (let count = 0; count < 4; count += 1) void turns.take(1)?.then(() => (begun += 1));

    places = 3;
    turns.leave(1);
    await turn();

    expect(begun).to.equal(3);
  });

  it("gives a holder slots by the number of other holders, and does not count it among them", async () => {
    const turns = createTurns((_holder, others) => (others === 0 ? 2 : 1));
    await turns.take(1);
    expect(turns.isFree(1)).to.equal(true);

    await turns.take(2);
    expect(turns.isFree(1)).to.equal(false);
    turns.leave(2);
    expect(turns.isFree(1)).to.equal(true);
  });

  it("gets the slot back from an act that fails", async () => {
    const turns = createTurns(1);
    const fails = turns.run(1, () => Promise.reject(new Error("away")));

    expect(await fails.catch(String)).to.equal("Error: away");
    expect(turns.isFree(1)).to.equal(true);
  });
});

describe("createSharedPlaces", () => {
  it("lets an act of one holder pass the waiting acts of another, within the places of all", async () => {
    const inPlace = createSharedPlaces({ ofAll: 3, ofEach: 2 });
    const begun: string[] = [];
    let atWork = 0;
    let most = 0;
    const act = (name: string) => async (): Promise<void> => {
      begun.push(name);
      most = Math.max(most, (atWork += 1));
      await turn();
      atWork -= 1;
    };

    const ones = ["a1", "a2", "a3", "a4"].map((name) => inPlace(1, act(name)));
    const others = ["b1", "b2"].map((name) => inPlace(2, act(name)));
    await Promise.all([...ones, ...others]);

    expect(begun).to.deep.equal(["a1", "a2", "b1", "b2", "a3", "a4"]);
    expect(most).to.equal(3);
  });
});
