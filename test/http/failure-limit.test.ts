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

  it("counts 50,000 addresses apart, and the others together", () => {
    const limit = createFailureLimit({ count: 2, windowMs: 10_000 }, () => 0);
    for (let i = 0; i < 50_002; i++) limit.note(`10.${i >> 16}.${(i >> 8) & 255}.${i & 255}`);

    expect(limit.waitSeconds("10.0.0.1")).to.equal(undefined);
    expect(limit.waitSeconds("203.0.113.9")).to.equal(10);
  });
});
