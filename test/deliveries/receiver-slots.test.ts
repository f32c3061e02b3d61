import { expect } from "chai";
import { createReceiverSlots, type ReceiverSlots, type Taking } from "../../src/deliveries/receiver-slots.ts";
import { until } from "../support/wait.ts";

const release = (taking: Taking | undefined, durationMs?: number): void => {
  if (taking?.kind !== "taken") throw new Error("expected a slot");
  taking.release(durationMs);
};
const takeAll = (slots: ReceiverSlots, count: number): Promise<Taking[]> =>
  Promise.all(Array.from({ length: count }, () => slots.take("a")));
const delayOf = (taking: Taking): number => (taking.kind === "full" ? taking.delayMs : Number.NaN);

/** Notes in which order takings come to an end. */
const watch = (takings: readonly Promise<Taking>[]): [number, Taking][] => {
  const settled: [number, Taking][] = [];
  takings.forEach((taking, index) => void taking.then((value) => settled.push([index, value])));
  return settled;
};

/** How many of so many takings get a slot without a wait. */
const takenOf = async (slots: ReceiverSlots, count: number): Promise<number> => {
  const settled = watch(Array.from({ length: count }, () => slots.take("a")));
  // What can be taken is taken at once.
  await new Promise((resolve) => setImmediate(resolve));
  return settled.filter(([, { kind }]) => kind === "taken").length;
};

describe("createReceiverSlots", () => {
  let nowMs: number;

  beforeEach(() => {
    nowMs = 50_000;
  });

  /** Slots whose waits last for as long as the test likes, but for the ones that it makes short. */
  const create = (perReceiver: number, patienceMs = 250, livelyLimit = perReceiver): ReceiverSlots =>
    createReceiverSlots({ perReceiver, livelyLimit, patienceMs, now: () => nowMs });
  /** Two slots in use, and none freed for longer than the patience. */
  const fill = async (durationMs?: number): Promise<ReceiverSlots> => {
    const slots = create(2);
    const [first] = await takeAll(slots, 2);
    release(first, durationMs);
    await slots.take("a");
    nowMs += 300;
    return slots;
  };
  /** Of eight, each receiver may take two, and a lively one up to six. */
  const open = async (durationMs: number): Promise<ReceiverSlots> => {
    const slots = create(2, 250, 6);
    const [first] = await takeAll(slots, 2);
    release(first, durationMs);
    return slots;
  };

  it("gives each receiver its share, and no more", async () => {
    const slots = create(2);

    const taken = await takeAll(slots, 2);
    const [third, other] = [watch([slots.take("a")]), await slots.take("b")];

    expect([...taken, other].map(({ kind }) => kind)).to.deep.equal(["taken", "taken", "taken"]);
    expect(third).to.deep.equal([]);
    release(taken[0]);
    await until(() => third.length === 1, { what: "the slot that was freed" });
    expect(third[0]?.[1].kind).to.equal("taken");
  });

  it("hands on all the slots that it may have, as soon as it shows that it is lively", async () => {
    const slots = create(2, 250, 6);
    const [first] = await takeAll(slots, 2);
    const settled = watch(Array.from({ length: 8 }, () => slots.take("a")));

    release(first, 100);
    await new Promise((resolve) => setImmediate(resolve));

    expect(settled.map(([index]) => index)).to.deep.equal([0, 1, 2, 3, 4]);
  });

  it("hands freed slots on in the order of arrival", async () => {
    const slots = create(1);
    const first = await slots.take("a");
    const settled = watch([slots.take("a"), slots.take("a")]);

    release(first);
    await until(() => settled.length === 1, { what: "the second" });
    release(settled[0]?.[1]);
    await until(() => settled.length === 2, { what: "the third" });

    expect(settled.map(([index, { kind }]) => [index, kind])).to.deep.equal([
      [0, "taken"],
      [1, "taken"],
    ]);
  });

  it("frees a slot once, however often it is released", async () => {
    const slots = create(2);
    const [first] = await takeAll(slots, 2);
    release(first);
    release(first);

    await slots.take("a");
    nowMs += 251;

    expect((await slots.take("a")).kind).to.equal("full");
  });

  it("is full after the patience of one who waits", async () => {
    const slots = create(1, 20);
    await slots.take("a");

    expect(await slots.take("a")).to.deep.equal({ kind: "full", delayMs: 100 });
  });

  it("is full at once when no slot has fallen free within the patience", async () => {
    const slots = create(2);
    await takeAll(slots, 2);
    nowMs += 251;

    expect((await slots.take("a")).kind).to.equal("full");
    expect((await slots.take("b")).kind).to.equal("taken");
  });

  it("lets as many wait as are likely to be served within a tenth of a second", async () => {
    const slots = create(2);
    // Every 50 ms a slot: two at a time, of 100 ms each.
    for (const taking of await takeAll(slots, 2)) release(taking, 100);
    const [first] = await takeAll(slots, 2);
    release(first, 100);
    await slots.take("a");

    const settled = watch(Array.from({ length: 3 }, () => slots.take("a")));
    await until(() => settled.length > 0, { what: "one that need not wait" });

    expect(settled.map(([index, { kind }]) => [index, kind])).to.deep.equal([[2, "full"]]);
  });

  describe("with slots that nobody needs", () => {
    for (const [durationMs, taken] of [
      [1, 5],
      [5_000, 5],
      [5_001, 1],
    ] as const) {
      it(`gives ${taken} more to a receiver that usually takes ${durationMs} ms and has one`, async () => {
        expect(await takenOf(await open(durationMs), 8)).to.equal(taken);
      });
    }

    it("gives none to a receiver that did not answer last", async () => {
      const slots = await open(100);
      release(await slots.take("a"), 0);

      expect(await takenOf(slots, 8)).to.equal(1);
    });

    it("counts those of others, and leaves them their own share", async () => {
      const slots = await open(100);
      for (const other of ["b", "b", "c"]) await slots.take(other);

      expect(await takenOf(slots, 8)).to.equal(2);
      expect((await slots.take("c")).kind).to.equal("taken");
      expect((await slots.take("d")).kind).to.equal("taken");
    });

    it("hands no slot on to a receiver above its share while others need them", async () => {
      const slots = await open(100);
      const more = await takeAll(slots, 5);
      for (const other of ["b", "b"]) await slots.take(other);
      const settled = watch([slots.take("a")]);

      for (const taking of more.slice(0, 2)) release(taking, 100);
      await new Promise((resolve) => setImmediate(resolve));
      expect(settled).to.deep.equal([]);
      release(more[2], 100);
      await until(() => settled.length === 1, { what: "the slot" });

      expect(settled[0]?.[1].kind).to.equal("taken");
    });
  });

  describe("once full", () => {
    for (const [durationMs, paceMs, of] of [
      [undefined, 10, "an unknown receiver"],
      [50, 20, "a slow receiver"],
      [5_000, 50, "a very slow receiver"],
      [10, 4, "a quick receiver"],
    ] as const) {
      it(`has the deliveries of ${of} come back one every ${paceMs} ms`, async () => {
        const slots = await fill(durationMs);

        const delays = (await takeAll(slots, 3)).map(delayOf);

        expect(delays).to.deep.equal([300, 300 + paceMs, 300 + 2 * paceMs]);
      });
    }

    it("has them come back the later, the longer no slot has fallen free", async () => {
      const slots = await fill();
      nowMs += 9_700;

      expect(delayOf(await slots.take("a"))).to.equal(10_000);
    });
  });

  it("remembers what is usual of 1,000 receivers without attempts in flight, those that had some last", async () => {
    const slots = create(1, 250, 2);
    for (const name of ["early", "late"]) release(await slots.take(name), 100);
    for (let count = 0; count < 999; count++) release(await slots.take(`stranger ${count}`), 100);
    const second = async (name: string): Promise<string> => {
      const first = await slots.take(name);
      const settled = watch([slots.take(name)]);
      await new Promise((resolve) => setImmediate(resolve));
      const kind = settled.length === 0 ? "waits" : "taken";
      release(first);
      await until(() => settled.length === 1, { what: "the second" });
      release(settled[0]?.[1]);
      return kind;
    };

    expect([await second("late"), await second("early")]).to.deep.equal(["taken", "waits"]);
  });
});
