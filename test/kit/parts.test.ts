import { expect } from "chai";
import { inParts, runPart, type Steps } from "../../src/kit/parts.ts";

describe("runPart", () => {
  it("leaves other work as much time as the part before took", async () => {
    const { performance: clock, setTimeout: start } = globalThis;
    const now = clock.now.bind(clock);
    const waits: unknown[] = [];
    let nowMs = 0;
    clock.now = () => nowMs;
    globalThis.setTimeout = ((done: () => void, ms: number) => {
      waits.push(ms);
      return start(done);
    }) as typeof setTimeout;
    try {
      for (const tookMs of [20, 5, 7]) await runPart(1, () => (nowMs += tookMs));
    } finally {
      clock.now = now;
      globalThis.setTimeout = start;
    }

    expect(waits.slice(1)).to.deep.equal([20, 5]);
  });
});

describe("inParts", () => {
  it("lets a part of another user wait for one part of a user, however many long works that one has", async () => {
    const parts: string[] = [];
    function* workOf(user: string, count: number): Steps<void> {
      for (let part = 0; part < count; part += 1) {
        yield;
        parts.push(user);
      }
    }

    const works = Array.from({ length: 6 }, () => inParts(1, workOf("one", 4)));
    await Promise.all([...works, inParts(2, workOf("other", 3))]);

    expect(parts.slice(0, 6)).to.deep.equal(["one", "other", "one", "other", "one", "other"]);
    expect(parts).to.have.length(27);
  });
});
