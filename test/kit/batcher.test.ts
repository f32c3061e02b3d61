import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { createBatcher, type Batcher } from "../../src/kit/batcher.ts";

/** Returns a batcher that doubles numbers, one batch at each `release`. */
function createGated(
  maxItems = 100,
  atWork = 1,
): {
  readonly batcher: Batcher<number, number>;
  readonly batches: (readonly number[])[];
  /** Lets the running batch end; resolves once there is one. */
  readonly release: (error?: Error) => Promise<void>;
} {
  const batches: (readonly number[])[] = [];
  const gates: ((error: Error | undefined) => void)[] = [];
  let arrived: (() => void) | undefined;
  const batcher = createBatcher<number, number>({
    maxItems,
    atWork,
    async handle(items) {
      batches.push(items);
      const error = await new Promise<Error | undefined>((resolve) => {
        gates.push(resolve);
        arrived?.();
      });
      if (error !== undefined) throw error;
      return items.map((item) => item * 2);
    },
  });
  return {
    batcher,
    batches,
    async release(error) {
      if (gates.length === 0) await new Promise<void>((resolve) => (arrived = resolve));
      gates.shift()?.(error);
    },
  };
}

describe("createBatcher", () => {
  it("makes one batch of what is added in one turn of the event loop, and answers each item with its own result", async () => {
    const { batcher, batches, release } = createGated();
    const results = Promise.all([1, 2, 3].map((item) => batcher.add(item)));

    await release();

    expect(await results).to.deep.equal([2, 4, 6]);
    expect(batches).to.deep.equal([[1, 2, 3]]);
  });

  it("collects items while a batch runs, in order, and never runs two at once", async () => {
    const { batcher, batches, release } = createGated();
    const first = batcher.add(1);
    const others = new Promise((resolve) => setImmediate(resolve)).then(() =>
      Promise.all([2, 3].map((item) => batcher.add(item))),
    );
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(batches).to.deep.equal([[1]]);

    await release();
    await release();

    expect([await first, ...(await others)]).to.deep.equal([2, 4, 6]);
    expect(batches).to.deep.equal([[1], [2, 3]]);
  });

  it("runs its maximum of batches at one time, and collects beyond", async () => {
    const { batcher, batches, release } = createGated(2, 2);
    const results = Promise.all([1, 2, 3, 4, 5, 6].map((item) => batcher.add(item)));
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect(batches).to.deep.equal([
      [1, 2],
      [3, 4],
    ]);

    for (let turn = 0; turn < 3; turn++) await release();

    expect(await results).to.deep.equal([2, 4, 6, 8, 10, 12]);
    expect(batches.at(-1)).to.deep.equal([5, 6]);
  });

  it("splits items beyond the size of a batch", async () => {
    const { batcher, batches, release } = createGated(2);
    const results = Promise.all([1, 2, 3, 4, 5].map((item) => batcher.add(item)));

    for (let turn = 0; turn < 3; turn++) await release();

    expect(await results).to.deep.equal([2, 4, 6, 8, 10]);
    expect(batches).to.deep.equal([[1, 2], [3, 4], [5]]);
  });

  it("rejects every item of a batch that failed, and continues with the next", async () => {
    const { batcher, release } = createGated(2);
    const results = Promise.allSettled([1, 2, 3].map((item) => batcher.add(item)));

    await release(new Error("away"));
    await release();

    expect((await results).map((one) => (one.status === "fulfilled" ? one.value : String(one.reason))))
      .to //
      .deep.equal(["Error: away", "Error: away", 6]);
  });

  it("accepts items again after it has been idle", async () => {
    const { batcher, batches, release } = createGated();
    await Promise.all([batcher.add(1), release()]);

    // At the moment of the first answer, and later.
    const results = batcher.add(2).then(() => batcher.add(3));
    await release();
    await release();
    await results;

    expect(batches).to.deep.equal([[1], [2], [3]]);
  });

  it("starts a batch at once, and the next no sooner than `everyMs` after it", async () => {
    const startedAtMs: number[] = [];
    const batches: (readonly number[])[] = [];
    const batcher = createBatcher<number, number>({
      maxItems: 3,
      everyMs: 60,
      async handle(items) {
        startedAtMs.push(performance.now());
        batches.push(items);
        await sleep(20);
        return items;
      },
    });

    // Before the first start: the handler may see that one late.
    const beganAtMs = performance.now();
    const first = batcher.add(1);
    await sleep(10);
    const second = batcher.add(2);
    await Promise.all([first, second, first.then(() => batcher.add(3))]);

    expect(batches).to.deep.equal([[1], [2, 3]]);
    expect((startedAtMs[1] ?? 0) - beganAtMs).to.be.at.least(58);
  });

  it("ends the wait of a batch that is full", async () => {
    const batches: (readonly number[])[] = [];
    const batcher = createBatcher<number, number>({
      maxItems: 3,
      everyMs: 3_600_000,
      async handle(items) {
        batches.push(items);
        return Promise.resolve(items);
      },
    });
    await batcher.add(1);

    const second = batcher.add(2);
    await sleep(20);
    expect(batches).to.deep.equal([[1]]);
    await Promise.all([second, ...[3, 4, 5, 6, 7].map((item) => batcher.add(item))]);

    expect(batches).to.deep.equal([[1], [2, 3, 4], [5, 6, 7]]);
  });
});
