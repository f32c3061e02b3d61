import { setImmediate as turn } from "node:timers/promises";
import { expect } from "chai";
import { createFairPlaces, type FairPlaces } from "../../src/kit/fair-places.ts";

describe("createFairPlaces", () => {
  /** Actions that have begun, in order, and the function that ends each. */
  let begun: string[];
  let ends: Map<string, () => void>;
  let clock: number;
  let places: FairPlaces;

  beforeEach(() => {
    [begun, ends, clock] = [[], new Map(), 0];
    places = createFairPlaces(1, () => clock);
  });

  const run = (holder: number, name: string, limitMs = 60_000): Promise<unknown> =>
    places.runWithin(holder, limitMs, () => {
      begun.push(name);
      return new Promise((resolve) => ends.set(name, () => resolve(name)));
    });

  /** Ends an action that took this long, and waits until the next one has begun. */
  async function end(name: string, ms: number): Promise<void> {
    clock += ms;
    ends.get(name)?.();
    await turn();
  }

  it("lets who has taken least go before others who wait longer", async () => {
    for (const holder of [1, 2, 3]) void run(holder, `first of ${holder}`);
    await turn();
    // Each begins to wait again when its action has ended.
    for (const holder of [1, 2, 3]) {
      await end(`first of ${holder}`, 1_000 + holder);
      void run(holder, `second of ${holder}`);
    }
    void run(9, "another");
    await end("second of 1", 1_000);

    expect(begun).to.deep.equal(["first of 1", "first of 2", "first of 3", "second of 1", "another"]);
  });

  it("does not let a holder save up turns while it does nothing", async () => {
    void run(1, "a");
    await turn();
    await end("a", 5_000);
    void run(1, "b");
    await turn();
    void run(2, "c");
    await end("b", 5_000);
    void run(1, "d");
    await end("c", 20_000);
    void run(2, "e");
    await end("d", 1_000);
    void run(1, "f");
    void run(2, "g");
    await end("e", 1_000);

    expect(begun).to.deep.equal(["a", "b", "c", "d", "e", "f"]);
  });

  it("forgets what actions took when all have ended", async () => {
    void run(1, "a");
    await turn();
    await end("a", 30_000);
    void run(2, "b");
    void run(1, "c");
    void run(3, "d");
    await turn();
    await end("b", 10);

    expect(begun).to.deep.equal(["a", "b", "c"]);
  });

  it("returns undefined after the limit, and gives the place to the next", async () => {
    const first = run(1, "first");
    const late = await run(2, "late", 1);
    const next = run(3, "next");
    await end("first", 10);
    await end("next", 10);

    expect([await first, late, await next]).to.deep.equal(["first", undefined, "next"]);
    expect(begun).to.deep.equal(["first", "next"]);
  });

  it("gives a place back after an error", async () => {
    const failing = places.runWithin(1, 1, () => Promise.reject(new Error("broken")));
    let message: unknown;
    await failing.catch((error: unknown) => (message = (error as Error).message));
    void run(2, "next");
    await turn();

    expect([message, begun]).to.deep.equal(["broken", ["next"]]);
  });
});
