import { expect } from "chai";
import { inParts, type Steps } from "../../src/kit/parts.ts";

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
