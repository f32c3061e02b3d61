import { expect } from "chai";
import { createPresence } from "../../src/http/presence.ts";

describe("createPresence", () => {
  it("has a user alone who sends requests as the only one, and again a second after another's last", () => {
    let nowMs = 0;
    const presence = createPresence(() => nowMs);
    const aloneAt = (ms: number, ...users: readonly number[]): readonly boolean[] => {
      nowMs = ms;
      for (const user of users) presence.note(user);
      return [1, 2].map((user) => presence.isAlone(user));
    };

    expect(aloneAt(0)).to.deep.equal([false, false]);
    expect(aloneAt(1, 1)).to.deep.equal([true, false]);
    expect(aloneAt(2, 2, 1)).to.deep.equal([false, false]);
    expect(aloneAt(1002, 1)).to.deep.equal([false, false]);
    expect(aloneAt(1003, 1)).to.deep.equal([true, false]);
  });
});
