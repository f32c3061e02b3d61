import { expect } from "chai";
import { createPresence, createTurnsOfUsers } from "../../src/http/presence.ts";

describe("createPresence", () => {
  it("treats a user as alone who is the only sender, and again a second after another's last request", () => {
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

describe("createTurnsOfUsers", () => {
  it("gives a lone user several slots, and one at a time when another user comes", async () => {
    let nowMs = 0;
    const presence = createPresence(() => nowMs);
    const turns = createTurnsOfUsers(3, presence);
    presence.note(1);
    for (const place of [1, 2, 3]) expect(turns.take(1), `place ${place}`).to.equal(undefined);
    const begun: string[] = [];
    const waiting = ["fourth", "fifth"].map(async (which) => {
      await turns.take(1);
      begun.push(which);
    });

    nowMs = 1;
    presence.note(2);
    turns.leave(1);
    turns.leave(1);
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).to.deep.equal([]);
    turns.leave(1);
    await waiting[0];
    expect(begun).to.deep.equal(["fourth"]);
  });

  it("gives a user one slot while another user has some, however long", async () => {
    let nowMs = 0;
    const presence = createPresence(() => nowMs);
    const turns = createTurnsOfUsers(3, presence);
    presence.note(1);
    for (const place of [1, 2, 3]) expect(turns.take(1), `place ${place}`).to.equal(undefined);

    presence.note(2);
    nowMs = 10_000;
    expect(turns.take(2)).to.equal(undefined);
    const second = turns.take(2);
    expect(second).not.to.equal(undefined);

    for (let left = 0; left < 3; left += 1) turns.leave(1);
    turns.leave(2);
    await second;
    for (const place of [2, 3]) expect(turns.take(2), `place ${place}`).to.equal(undefined);
  });
});
