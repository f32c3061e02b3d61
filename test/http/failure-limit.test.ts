import { expect } from "chai";
import { createFailureLimit } from "../../src/http/failure-limit.ts";

describe("createFailureLimit", () => {
  it("refuses an address after its allowed failures, and says when it may try again", () => {
    let now = 1000;
    const limit = createFailureLimit({ count: 2, windowMs: 10_000 }, () => now);
    for (const expected of [undefined, undefined, 10]) {
      expect(limit.waitSeconds("203.0.113.9")).to.equal(expected);
      limit.note("203.0.113.9");
    }
    now += 9_500;
    expect(limit.waitSeconds("203.0.113.9")).to.equal(1);
    expect(limit.waitSeconds("203.0.113.8")).to.equal(undefined);
    now += 500;
    expect(limit.waitSeconds("203.0.113.9")).to.equal(undefined);
  });

  it("counts the next window like the first", () => {
    let now = 0;
    const limit = createFailureLimit({ count: 2, windowMs: 10_000 }, () => now);
    limit.note("203.0.113.9");
    now = 12_000;
    limit.note("203.0.113.9");
    expect(limit.waitSeconds("203.0.113.9")).to.equal(undefined);

    limit.note("203.0.113.9");

    expect(limit.waitSeconds("203.0.113.9")).to.equal(10);
  });

  it("counts an IPv6 client by its /64", () => {
    const limit = createFailureLimit({ count: 1, windowMs: 10_000 });
    limit.note("2001:db8::1");

    expect(limit.waitSeconds("2001:db8::2")).to.equal(10);
    expect(limit.waitSeconds("2001:db8:0:1::2")).to.equal(undefined);
  });

  it("also counts the networks of an IPv6 /48 together, which may fail 16 times as often", () => {
    const limit = createFailureLimit({ count: 2, windowMs: 10_000 }, () => 0);
    for (let network = 0; network < 32; network += 1) {
      expect(limit.waitSeconds(`2001:db8:0:${network}::1`)).to.equal(undefined);
      limit.note(`2001:db8:0:${network}::1`);
    }

    expect(limit.waitSeconds("2001:db8:0:ffff::1")).to.equal(10);
    expect(limit.waitSeconds("2001:db8:1::1")).to.equal(undefined);
  });

  it("counts 50,000 addresses, and shuts out none of the others", () => {
    const limit = createFailureLimit({ count: 2, windowMs: 10_000 }, () => 0);
    for (const _ of [1, 2]) limit.note("203.0.113.9");
    const noteMany = (from: number, to: number): void => {
      for (let i = from; i < to; i++) limit.note(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);
    };
    noteMany(0, 49_999);
    expect(limit.waitSeconds("203.0.113.9")).to.equal(10);

    noteMany(49_999, 50_002);

    expect(limit.waitSeconds("203.0.113.9")).to.equal(undefined);
    expect(limit.waitSeconds("203.0.113.8")).to.equal(undefined);
  });
});
