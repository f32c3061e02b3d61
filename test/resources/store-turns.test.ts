import { expect } from "chai";
import { always } from "../../src/querying/condition.ts";
import { takingTurns } from "../../src/resources/store.ts";
import type { RecordRead, RecordStore } from "../../src/resources/record-store.ts";
import { createTurns } from "../../src/kit/turns.ts";

describe("takingTurns", () => {
  it("lets a resource have its share of the connections, and its other requests wait their turn", async () => {
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const slow = (name: string) => (): Promise<never> => {
      begun.push(name);
      return new Promise((resolve) => ends.push(() => resolve(undefined as never)));
    };
    const store = {
      find: slow("find"),
      remove: slow("remove"),
    } as unknown as RecordStore;
    const turns = createTurns<string>(2);
    const locked = takingTurns(store, "locked", turns);
    const other = takingTurns(store, "other", turns);
    const read: RecordRead = { where: undefined, shape: "access", access: always };

    const asked = [
      locked.find(1, read),
      locked.remove(1, { where: {}, access: always }),
      locked.find(2, read),
      other.find(3, read),
    ];
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).to.have.members(["find", "remove", "find"]);

    ends[0]?.();
    await asked[0];
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).to.have.length(4);
    while (begun.length < asked.length || ends.length > 0) {
      ends.shift()?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    await Promise.all(asked);
  });
});
