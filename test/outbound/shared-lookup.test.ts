import { expect } from "chai";
import { LookupError } from "../../src/outbound/outbound-errors.ts";
import type { ResolvedName } from "../../src/outbound/resolve-name.ts";
import { NoTurnError } from "../../src/outbound/outbound-errors.ts";
import { createSharedLookup, type Asker } from "../../src/outbound/shared-lookup.ts";
import { until } from "../support/wait.ts";

const addresses = [{ address: "192.0.2.1", family: 4 }];

describe("createSharedLookup", () => {
  let now: number;
  let asked: string[];
  let ttlMs: number;
  /** Names that are being looked up. */
  let answers: Map<string, (answer: ResolvedName | Error) => void>;
  let told: string[];

  beforeEach(() => {
    now = 0;
    asked = [];
    ttlMs = 30_000;
    answers = new Map();
    told = [];
  });

  const open = (options: Parameters<typeof createSharedLookup>[0] = {}) => {
    const lookup = createSharedLookup({
      resolve: (name) =>
        new Promise((resolve, reject) => {
          asked.push(name);
          answers.set(name, (answer) => (answer instanceof Error ? reject(answer) : resolve(answer)));
        }),
      perUser: 2,
      patienceMs: 60_000,
      now: () => now,
      ...options,
    });
    return (name: string, userId = 1): Asker => {
      const asker = { userId, isWaiting: false, isGone: false };
      lookup(name, asker, (error, found) => told.push(`${name} ${error?.name ?? found[0]?.address ?? ""}`));
      return asker;
    };
  };
  const answer = (name: string, error?: Error): void => {
    answers.get(name)?.(error ?? { addresses, ttlMs });
    answers.delete(name);
  };
  const untilTold = (count: number): Promise<unknown> =>
    until(() => told.length >= count, { what: `${count} answers` });

  it("asks once for a name that many users look up at the same time, and answers all of them", async () => {
    const ask = open();
    for (const user of [1, 1, 2]) ask("a", user);
    answer("a");
    await untilTold(3);

    expect(asked).to.deep.equal(["a"]);
    expect(told).to.deep.equal(["a 192.0.2.1", "a 192.0.2.1", "a 192.0.2.1"]);
  });

  const lives: readonly [what: string, ttlMs: number, keptMs: number][] = [
    ["for its TTL", 30_000, 30_000],
    ["for a second at least", 0, 1_000],
    ["for a minute at most", 86_400_000, 60_000],
  ];
  for (const [what, ttl, keptMs] of lives) {
    it(`keeps an answer ${what}`, async () => {
      const ask = open();
      ttlMs = ttl;
      ask("a");
      answer("a");
      await untilTold(1);
      now = keptMs - 1;
      ask("a");
      await untilTold(2);
      expect(asked).to.have.length(1);

      now = keptMs;
      ask("a");

      expect(asked).to.have.length(2);
    });
  }

  it("keeps a failure for two seconds, and returns it to all callers", async () => {
    const ask = open();
    ask("a");
    ask("a");
    answer("a", new LookupError("ENOTFOUND"));
    await untilTold(2);
    now = 1_999;
    ask("a");
    await untilTold(3);
    expect([asked, told]).to.deep.equal([["a"], Array(3).fill("a LookupError")]);

    now = 2_000;
    ask("a");

    expect(asked).to.have.length(2);
  });

  it("answers asynchronously, also from its cache", async () => {
    const ask = open();
    ask("a");
    answer("a");
    await untilTold(1);
    ask("a");
    expect(told).to.have.length(1);
    await untilTold(2);
  });

  it("keeps a limited number of answers, the most recently used", async () => {
    const ask = open({ maxNames: 2 });
    for (const [index, name] of ["a", "b", "a", "c"].entries()) {
      ask(name);
      answer(name);
      await untilTold(index + 1);
    }

    ask("a");
    ask("b");

    expect(asked).to.deep.equal(["a", "b", "c", "b"]);
  });

  it("runs a limited number of look-ups of a user at a time, in order, and those of others beside them", async () => {
    const ask = open();
    const askers = ["a", "b", "c", "d"].map((name) => ask(name, 1));
    ask("e", 2);
    expect(asked).to.deep.equal(["a", "b", "e"]);
    expect(askers.map(({ isWaiting }) => isWaiting)).to.deep.equal([false, false, true, true]);

    answer("b", new LookupError("ETIMEOUT"));
    await untilTold(1);
    answer("a");
    await untilTold(2);

    expect(asked).to.deep.equal(["a", "b", "e", "c", "d"]);
    expect(askers.some(({ isWaiting }) => isWaiting)).to.equal(false);
    for (const name of ["c", "d", "e"]) answer(name);
    await untilTold(5);
  });

  it("counts the remaining ones when one of them ends", async () => {
    const ask = open();
    ask("a");
    ask("b");
    answer("a");
    await untilTold(1);

    for (const name of ["c", "d"]) ask(name);

    expect(asked).to.deep.equal(["a", "b", "c"]);
    for (const [index, name] of ["b", "c", "d"].entries()) {
      answer(name);
      await untilTold(index + 2);
    }
  });

  it("lets one user's look-up also serve another user who waits for the same name", async () => {
    const ask = open();
    for (const name of ["a", "b", "c"]) ask(name, 1);
    ask("c", 2);
    expect(asked).to.deep.equal(["a", "b", "c"]);
    answer("c");
    await untilTold(1);

    answer("a");
    await untilTold(3);

    expect(asked).to.have.length(3);
    expect(told).to.deep.equal(["c 192.0.2.1", "a 192.0.2.1", "c 192.0.2.1"]);
  });

  it("begins no look-up for callers that have left", async () => {
    const ask = open();
    ask("a");
    ask("b");
    ask("c").isGone = true;
    ask("d");

    answer("a");
    await untilTold(1);

    expect(asked).to.deep.equal(["a", "b", "d"]);
  });

  it("gives up a look-up that has not begun in time", async () => {
    const ask = open({ patienceMs: 20 });
    ask("a");
    ask("b");
    const asker = ask("c");
    await untilTold(1);

    expect(told).to.deep.equal([`c ${new NoTurnError("look-up").name}`]);
    expect(asker.isWaiting).to.equal(false);
    answer("a");
    await untilTold(2);
    expect(asked).to.deep.equal(["a", "b"]);
  });

  it("uses the machine's resolver by default", async () => {
    const found: unknown = await new Promise((resolve) => {
      const asker = { userId: 1, isWaiting: false, isGone: false };
      createSharedLookup()("localhost", asker, (_error, all) => resolve(all));
    });

    expect(found).to.deep.include({ address: "127.0.0.1", family: 4 });
  });
});
