import { expect } from "chai";
import { createFairQueue, type FairQueue } from "../../src/deliveries/fair-queue.ts";

interface Item {
  readonly holder: string;
  /** Number of the item among those of its holder. */
  readonly number: number;
  readonly cost: number;
}

interface Scene {
  readonly queue: FairQueue<Item>;
  /** Adds items of the same cost. */
  readonly add: (holder: string, given?: { readonly count?: number; readonly cost?: number }) => void;
  /** Takes a batch, and returns its items as holder and number. */
  readonly take: (most?: { readonly items?: number; readonly cost?: number }) => readonly string[];
}

const nameOf = ({ holder, number }: Item): string => `${holder} ${number}`;

function makeScene(): Scene {
  const queue = createFairQueue<Item>(({ cost }) => cost);
  const added = new Map<string, number>();
  return {
    queue,
    add(holder, { count = 1, cost = 1 } = {}) {
      const before = added.get(holder) ?? 0;
      for (let number = before; number < before + count; number++)
        queue.add(holder, { holder, number, cost });
      added.set(holder, before + count);
    },
    take: ({ items = 200, cost = 500 } = {}) => queue.take({ items, cost }).map(nameOf),
  };
}

const namesOf = (holder: string, { from = 0, count }: { from?: number; count: number }): readonly string[] =>
  Array.from({ length: count }, (_, index) => `${holder} ${from + index}`);

describe("createFairQueue", () => {
  it("lets the item of a light holder pass 1,000 costly ones of another", () => {
    const { add, take } = makeScene();
    add("heavy", { count: 1_000, cost: 100 });
    expect(take()).to.deep.equal(namesOf("heavy", { count: 5 }));
    add("light");

    expect(take()).to.deep.equal(["light 0", ...namesOf("heavy", { from: 5, count: 4 })]);
    expect(take()).to.deep.equal(namesOf("heavy", { from: 9, count: 5 }));
  });

  it("gives two holders with backlogs the same by cost, regardless of the cost of one item", () => {
    const { queue, add } = makeScene();
    add("cheap", { count: 1_000, cost: 10 });
    add("dear", { count: 1_000, cost: 50 });
    const spent = { cheap: 0, dear: 0 };
    for (let batch = 0; batch < 20; batch++)
      for (const { holder, cost } of queue.take({ items: 200, cost: 500 }))
        spent[holder as keyof typeof spent] += cost;

    expect(spent.cheap + spent.dear).to.be.greaterThan(9_000);
    // They differ by one item and one turn at most.
    expect(Math.abs(spent.cheap - spent.dear)).to.be.at.most(70);
  });

  it("gives two holders the same in batches that are smaller than a turn", () => {
    const { add, take } = makeScene();
    add("a", { count: 100 });
    add("b", { count: 100 });
    const taken = Array.from({ length: 16 }, () => take({ items: 5 })).flat();

    expect(taken.filter((name) => name.startsWith("a"))).to.deep.equal(namesOf("a", { count: 40 }));
    expect(taken.filter((name) => name.startsWith("b"))).to.deep.equal(namesOf("b", { count: 40 }));
  });

  it("takes an item alone that costs more than the limit, while light holders keep coming", () => {
    const { add, take } = makeScene();
    add("dear", { cost: 1_000 });
    const batches: (readonly string[])[] = [];
    while (batches.length < 100 && batches.at(-1)?.includes("dear 0") !== true) {
      for (const one of ["a", "b", "c"]) add(`${one}${batches.length}`);
      batches.push(take());
    }

    expect(batches.at(-1)).to.deep.equal(["dear 0"]);
    // Each earlier batch has the light items that came with it.
    const last = batches.length - 1;
    expect(batches.slice(0, last)).to.deep.equal(
      Array.from({ length: last }, (_, index) => ["a", "b", "c"].map((one) => `${one}${index} 0`)),
    );
    expect(take()).to.deep.equal(["a", "b", "c"].map((one) => `${one}${last} 0`));
  });

  it("takes so many items at most", () => {
    const { add, take } = makeScene();
    for (const holder of ["a", "b", "c", "d"]) add(holder);

    expect(take({ items: 3 })).to.deep.equal(["a 0", "b 0", "c 0"]);
    expect(take({ items: 3 })).to.deep.equal(["d 0"]);
    expect(take({ items: 3 })).to.deep.equal([]);
  });

  it("takes items up to the limit of cost, and no more", () => {
    const { add, take } = makeScene();
    add("a", { count: 2, cost: 250 });
    add("a", { count: 3, cost: 167 });

    expect([take(), take(), take()]).to.deep.equal([["a 0", "a 1"], ["a 2", "a 3"], ["a 4"]]);
  });

  it("gives the whole batch to a single holder", () => {
    const { add, take } = makeScene();
    add("a", { count: 450, cost: 2 });

    expect([take(), take(), take()].map((names) => names.length)).to.deep.equal([200, 200, 50]);
    add("a", { count: 7, cost: 100 });
    expect([take(), take()].map((names) => names.length)).to.deep.equal([5, 2]);
  });

  it("keeps the order of each holder's items", () => {
    const { add, take } = makeScene();
    for (let turn = 0; turn < 40; turn++)
      for (const [place, holder] of ["a", "b", "c"].entries())
        add(holder, { cost: 1 + ((7 * turn + 11 * place) % 60) });
    const taken: string[] = [];
    for (let batch = take({ items: 9 }); batch.length > 0; batch = take({ items: 9 })) taken.push(...batch);

    expect(taken).to.have.length(120);
    for (const holder of ["a", "b", "c"])
      expect(taken.filter((name) => name.startsWith(holder))).to.deep.equal(namesOf(holder, { count: 40 }));
  });

  it("asks for the cost with the holder, and whether the item is its first in the batch", () => {
    const queue = createFairQueue<string>((item, { holder, isFirst }) => {
      expect(item.slice(0, 1)).to.equal(holder);
      return isFirst ? 1 : 100;
    });
    for (const item of ["b0", "a0", "a1", "a2"]) queue.add(item.slice(0, 1), item);

    expect(queue.take({ items: 200, cost: 50 })).to.deep.equal(["b0", "a0"]);
    expect(queue.take({ items: 200, cost: 50 })).to.deep.equal(["a1"]);
    expect(queue.take({ items: 200, cost: 50 })).to.deep.equal(["a2"]);
    for (const item of ["a3", "a4", "a5"]) queue.add("a", item);
    expect(queue.take({ items: 200, cost: 201 })).to.deep.equal(["a3", "a4", "a5"]);
  });

  it("gives a later holder the same from then on, and nothing for the time before", () => {
    const { add, take } = makeScene();
    add("a", { count: 100, cost: 10 });
    expect(take()).to.have.length(50);
    add("b", { count: 100, cost: 10 });
    const taken = take({ cost: 100 });

    expect(taken.filter((name) => name.startsWith("b"))).to.have.length.within(5, 6);
  });

  it("leaves items that must wait to the next batch, and takes the others", () => {
    const queue = createFairQueue<string>((_item, { isFirst }) => (isFirst ? 1 : undefined));
    for (const item of ["a0", "a1", "b0", "c0"]) queue.add(item.slice(0, 1), item);

    expect(queue.take({ items: 200, cost: 50 })).to.deep.equal(["a0", "b0", "c0"]);
    expect(queue.take({ items: 200, cost: 50 })).to.deep.equal(["a1"]);
  });

  it("takes a light item after one that does not fit any more", () => {
    const { add, take } = makeScene();
    add("a");
    add("dear", { cost: 500 });
    add("b");

    expect([take(), take()]).to.deep.equal([["a 0", "b 0"], ["dear 0"]]);
  });

  it("returns its size, and is empty when all is taken out", () => {
    const { queue, add, take } = makeScene();
    expect([queue.size, queue.empty()]).to.deep.equal([0, []]);
    add("a", { count: 3 });
    add("b", { count: 2, cost: 30 });
    expect(queue.size).to.equal(5);

    expect(take({ items: 2 })).to.deep.equal(["a 0", "b 0"]);
    expect(queue.size).to.equal(3);
    expect(queue.empty().map(nameOf)).to.have.members(["a 1", "a 2", "b 1"]);

    expect([queue.size, take(), queue.empty()]).to.deep.equal([0, [], []]);
    add("a");
    expect([queue.size, take(), queue.size]).to.deep.equal([1, ["a 3"], 0]);
  });
});
