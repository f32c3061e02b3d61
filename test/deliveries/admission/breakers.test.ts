import { expect } from "chai";
import {
  createBreakers,
  failuresToOpen,
  type AttemptCost,
  type Breakers,
} from "../../../src/deliveries/admission/breakers.ts";

const pauseMs = 1_000;

describe("createBreakers", () => {
  let nowMs: number;
  let breakers: Breakers;
  let random: number;

  beforeEach(() => {
    nowMs = 50_000;
    random = 0.5;
    breakers = createBreakers({ firstPauseMs: pauseMs, now: () => nowMs, random: () => random });
  });

  const tell = (cost: AttemptCost, { receiver = "a", isProbe = false } = {}): string | undefined =>
    breakers.report({ receiver, isProbe, cost });
  const fail = (times = failuresToOpen, receiver = "a"): (string | undefined)[] =>
    Array.from({ length: times }, () => tell("costly", { receiver }));
  /** Returns the pause of a receiver, to the ms. */
  const pauseOf = (receiver: string): number => {
    const from = nowMs;
    while (!breakers.mayAcquire(receiver)) nowMs += 1;
    const pause = nowMs - from;
    nowMs = from;
    return pause;
  };
  const probe = (): void => {
    expect(breakers.mayAcquire("a")).to.equal(true);
    expect(breakers.tryAcquire("a"), "half open").to.equal("probe");
  };

  describe("while closed", () => {
    it("lets every attempt through, up to the tenth costly one in a row, which opens it", () => {
      expect(fail(9)).to.deep.equal(Array(9).fill(undefined));
      expect(breakers.tryAcquire("a")).to.equal("go");

      expect(fail(1)).to.deep.equal(["opened"]);

      expect(breakers.tryAcquire("a")).to.equal("wait");
      expect(breakers.counts()).to.deep.equal({ open: 1, halfOpen: 0 });
    });

    for (const [cost, opensAfter] of [
      ["answered", "ten more"],
      ["cheap", "one more"],
      ["unmade", "one more"],
    ] as const) {
      it(`opens after ${opensAfter} when one in between was ${cost}`, () => {
        fail(9);
        expect(breakers.openOf("a")).to.equal(undefined);
        expect(tell(cost)).to.equal(undefined);

        const [first, ...others] = fail();

        if (opensAfter === "one more") expect(first).to.equal("opened");
        else expect([first, ...others]).to.deep.equal([...Array(9).fill(undefined), "opened"]);
      });
    }

    it("does not affect other receivers", () => {
      fail();

      expect(breakers.tryAcquire("b")).to.equal("go");
    });
  });

  describe("once open", () => {
    beforeEach(() => fail());

    it("makes no attempts during the pause", () => {
      expect(breakers.mayAcquire("a")).to.equal(false);
      expect(breakers.tryAcquire("a")).to.equal("wait");
      expect(pauseOf("a")).to.equal(1_000);
    });

    it("varies the pause by a tenth", () => {
      for (const [value, expected] of [
        [0, 900],
        [0.9999999, 1_100],
      ] as const) {
        const receiver = `receiver ${value}`;
        random = value;
        fail(failuresToOpen, receiver);
        expect(pauseOf(receiver)).to.equal(expected);
      }
    });

    it("lets one attempt through when the pause is over, and no other beside it", () => {
      nowMs += 999;
      expect(breakers.tryAcquire("a")).to.equal("wait");
      nowMs += 1;
      expect(breakers.counts()).to.deep.equal({ open: 0, halfOpen: 1 });

      probe();

      expect(breakers.mayAcquire("a")).to.equal(false);
      expect(breakers.tryAcquire("a")).to.equal("wait");
      expect(breakers.counts()).to.deep.equal({ open: 0, halfOpen: 1 });
    });

    it("is closed by an answer to an attempt that began before it opened, or past it", () => {
      expect(tell("answered")).to.equal("closed");

      expect(breakers.tryAcquire("a")).to.equal("go");
      expect(breakers.counts()).to.deep.equal({ open: 0, halfOpen: 0 });
    });

    it("is not prolonged by attempts that began before it opened", () => {
      nowMs += 500;
      expect(fail(3)).to.deep.equal([undefined, undefined, undefined]);
      nowMs += 500;

      probe();
    });
  });

  describe("while its probe is under way", () => {
    beforeEach(() => {
      fail();
      nowMs += pauseMs;
      probe();
    });

    it("closes on an answer, and forgets earlier failures", () => {
      expect(tell("answered", { isProbe: true })).to.equal("closed");

      expect(fail(9)).to.not.include("opened");
    });

    for (const cost of ["costly", "cheap"] as const) {
      it(`opens again on a ${cost} failure, for twice as long each time, up to twenty times`, () => {
        const pauses = [];
        for (let round = 0; round < 6; round++) {
          expect(tell(cost, { isProbe: true })).to.equal(undefined);
          const pause = pauseOf("a");
          pauses.push(pause);
          nowMs += pause;
          probe();
        }
        expect(pauses).to.deep.equal([2_000, 4_000, 8_000, 16_000, 20_000, 20_000]);
      });
    }

    it("keeps its probe when another attempt was not made, and tells others how long it may last", () => {
      tell("unmade");

      expect(breakers.mayAcquire("a")).to.equal(false);
      expect(breakers.openOf("a")).to.deep.equal({ pauseMs, untilMs: nowMs + 2 * pauseMs });
      expect(breakers.openOf("b")).to.equal(undefined);
    });

    it("stays closed by an answer when its probe was not made", () => {
      expect(tell("answered")).to.equal("closed");
      expect(tell("unmade", { isProbe: true })).to.equal(undefined);
      expect(breakers.openOf("a")).to.equal(undefined);
    });

    it("requests another probe when none was made", () => {
      tell("unmade", { isProbe: true });

      probe();
    });

    it("is not opened by other attempts that fail", () => {
      fail(3);
      tell("unmade");

      expect(breakers.counts()).to.deep.equal({ open: 0, halfOpen: 1 });
      expect(tell("answered", { isProbe: true })).to.equal("closed");
    });
  });

  it("remembers 10,000 receivers, those that failed last", () => {
    fail(9, "early");
    fail(9, "late");
    for (let count = 0; count < 9_998; count++) tell("costly", { receiver: `stranger ${count}` });
    fail(1, "late");
    tell("costly", { receiver: "one too many" });

    expect(breakers.counts()).to.deep.equal({ open: 1, halfOpen: 0 });
    expect(fail(1, "early")).to.deep.equal([undefined]);
  });
});
