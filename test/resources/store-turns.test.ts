import { expect } from "chai";
import { DatabaseError } from "pg";
import { always } from "../../src/querying/condition.ts";
import { createRecordTurns, takingTurns } from "../../src/resources/store-turns.ts";
import type { RecordStore } from "../../src/resources/record-store.ts";

const find = (store: RecordStore): Promise<unknown> =>
  store.find(1, { where: undefined, shape: "access", access: always });
const remove = (store: RecordStore): Promise<unknown> => store.remove(1, { where: {}, access: always });
const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("takingTurns", () => {
  let begun: string[];
  let ends: (() => void)[];
  let storeOf: (name: string, userId: number) => RecordStore;

  beforeEach(() => {
    begun = [];
    ends = [];
    const turns = createRecordTurns({ places: 2, connections: 6 });
    storeOf = (name, userId) => {
      const slow = (what: string) => (): Promise<never> => {
        begun.push(`${userId} ${what} ${name}`);
        return new Promise((resolve) => ends.push(() => resolve(undefined as never)));
      };
      const store = { find: slow("finds"), remove: slow("removes") } as unknown as RecordStore;
      const giveUp = async (): Promise<never> => {
        begun.push(`${userId} gives up ${name}`);
        throw Object.assign(new DatabaseError("", 0, "error"), { code: "55P03" });
      };
      return takingTurns(store, { ...store, remove: giveUp }, { name, userId, turns });
    };
  });

  async function endAll(asked: readonly Promise<unknown>[]): Promise<void> {
    while (begun.length < asked.length || ends.length > 0) {
      ends.shift()?.();
      await turn();
    }
    await Promise.all(asked);
  }

  it("gives a resource its share of the connections, and queues its other requests", async () => {
    const [one, other] = [storeOf("locked", 1), storeOf("locked", 2)];
    const asked = [find(one), one.remove(1, { where: {}, access: always }), find(storeOf("other", 3))];
    asked.push(find(other), find(other));
    await turn();
    expect(begun).to.deep.equal(["1 finds locked", "1 removes locked", "3 finds other", "2 finds locked"]);

    ends[3]?.();
    await asked[3];
    await turn();
    expect(begun).to.have.length(5);
    await endAll(asked);
  });

  it("lets a user without a connection pass the queue of one who holds all, and who gets no more", async () => {
    const eve = storeOf("locked", 1);
    const asked = Array.from({ length: 5 }, () => find(eve));
    asked.push(find(storeOf("other", 1)));
    await turn();
    expect(begun).to.deep.equal(["1 finds locked", "1 finds locked"]);

    for (const userId of [2, 3, 2]) {
      const others = find(storeOf("locked", userId));
      await turn();
      expect(begun.at(-1)).to.equal(`${userId} finds locked`);
      ends.pop()?.();
      await others;
    }
    begun.length = 2;
    await endAll(asked);
  });

  it("keeps the last connection for a user without one, beside two who fill all others", async () => {
    const asked = [1, 1, 1, 2, 2, 2].map((userId) => find(storeOf(userId === 1 ? "a" : "b", userId)));
    await turn();
    // A user has as many turns as a resource.
    expect(begun).to.have.length(4);
    const others = [3, 4].map((userId) => find(storeOf("d", userId)));
    await turn();
    expect(begun.slice(4)).to.deep.equal(["3 finds d", "4 finds d"]);

    asked.push(...others, find(storeOf("e", 3)), find(storeOf("e", 5)));
    await turn();
    expect(begun).to.have.length(6);
    ends[4]?.();
    await others[0];
    await turn();
    expect(begun.slice(6)).to.deep.equal(["3 finds e"]);
    await endAll(asked);
  });

  it("lets half of the connections wait for locks: a write beyond gives up, and waits for its turn", async () => {
    const asked = [remove(storeOf("a", 1)), remove(storeOf("b", 1)), remove(storeOf("b", 2))];
    await turn();
    asked.push(remove(storeOf("c", 2)));
    await turn();
    asked.push(find(storeOf("d", 3)), remove(storeOf("d", 3)));
    await turn();
    expect(begun.slice(3)).to.deep.equal(["2 gives up c", "3 finds d", "3 gives up d"]);

    ends[0]?.();
    await asked[0];
    await turn();
    expect(begun.slice(6)).to.deep.equal(["3 removes d"]);
    for (const end of ends.splice(0)) end();
    await turn();
    expect(begun.slice(7)).to.deep.equal(["2 removes c"]);
    for (const end of ends.splice(0)) end();
    await Promise.all(asked);
  });

  it("gives each free turn to the user who has waited longest, also one who waited for the last", async () => {
    const asked = [1, 2, 3, 4, 5].map((userId) => find(storeOf("busy", userId)));
    await turn();
    expect(begun).to.have.length(3);

    ends[0]?.();
    ends[1]?.();
    await turn();
    expect(begun.slice(3)).to.deep.equal(["4 finds busy", "5 finds busy"]);
    await endAll(asked);
  });
});
