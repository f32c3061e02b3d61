import { expect } from "chai";
import {
  burstOf,
  createRates,
  grantsFor,
  paceOf,
  type Rates,
} from "../../../src/deliveries/admission/rates.ts";
import { useCoreScene } from "../../support/core-scene.ts";
import { createMemoryLog } from "../../support/http.ts";

describe("paceOf", () => {
  it("permits no more attempts in any second than the limit, including bursts", () => {
    for (let rateLimit = 0.1; rateLimit <= 1000; rateLimit *= 1.07) {
      const { gapMs } = paceOf(rateLimit);
      const inOneSecond = burstOf(rateLimit) + Math.floor((1000 - 1e-6) / gapMs);

      expect(inOneSecond, String(rateLimit)).to.be.at.most(Math.max(1, Math.ceil(rateLimit)));
    }
  });
});

describe("createRates", () => {
  const scene = useCoreScene();
  const { log } = createMemoryLog();
  let waits: number[];
  const open = (): Rates =>
    createRates({ sql: scene.core.sql, now: () => performance.now(), onWait: (ms) => waits.push(ms) });

  beforeEach(() => {
    waits = [];
  });

  it("shares the remaining grants among all dispatchers, and returns the wait", async () => {
    const { id: subscriptionId } = await scene.work.addSubscription();
    const dispatchers = [open(), open(), open()];
    const startedAt = performance.now();
    let granted = 0;
    for (let round = 0; round < 10; round++)
      for (const answer of await Promise.all(
        dispatchers.map((rates) => rates.take([{ subscriptionId, rateLimit: 100, count: 7 }])),
      ))
        granted += answer.get(subscriptionId) ?? 0;

    const { gapMs } = paceOf(100);
    expect(granted).to.be.within(5, 5 + Math.ceil((performance.now() - startedAt) / gapMs));
    expect(waits.every((ms) => ms > 0 && ms <= gapMs)).to.equal(true);
    expect(dispatchers[0]?.waitMs(subscriptionId)).to.be.at.most(gapMs);
  });

  it("grants one at once after a long rest, separately by subscription", async () => {
    const [one, other] = [await scene.work.addSubscription(), await scene.work.addSubscription()];
    const idle = await scene.work.addSubscription();
    const rates = open();
    const ask = { rateLimit: 0.1, count: 3 };

    const first = await rates.take([
      { subscriptionId: one.id, ...ask },
      { subscriptionId: other.id, ...ask },
    ]);
    const second = await rates.take([{ subscriptionId: one.id, ...ask }]);
    const third = await rates.take([{ subscriptionId: idle.id, ...ask }]);

    expect([...first]).to.have.deep.members([
      [one.id, 1],
      [other.id, 1],
    ]);
    expect([...second]).to.deep.equal([[one.id, 0]]);
    expect([...third]).to.deep.equal([[idle.id, 1]]);
    expect(rates.waitMs(one.id)).to.be.within(1, 10_000);
  });

  it("tells the shortest wait of those that must wait, and none when no one must", async () => {
    const [slow, quick] = [await scene.work.addSubscription(), await scene.work.addSubscription()];
    const rates = open();

    await rates.take([{ subscriptionId: quick.id, rateLimit: 100, count: 1 }]);
    expect(waits).to.deep.equal([]);
    await rates.take([
      { subscriptionId: slow.id, rateLimit: 0.1, count: 1 },
      { subscriptionId: quick.id, rateLimit: 1, count: 1 },
    ]);
    expect(waits).to.have.length(1);
    expect(waits[0]).to.be.within(500, 1_000);
  });

  it("grants one at once after the database's clock went back", async () => {
    const { id: subscriptionId } = await scene.work.addSubscription();
    await scene.core.sql(
      "UPDATE svc.subscription_state SET next_slot_at = now() + interval '1 hour' WHERE subscription_id = $1",
      [subscriptionId],
    );
    const ask = { subscriptionId, rateLimit: 0.1, count: 7 };

    const [first, second] = [await open().take([ask]), await open().take([ask])];

    expect([first.get(subscriptionId), second.get(subscriptionId)]).to.deep.equal([1, 0]);
  });

  it("queries nothing when no subscription has a limit", async () => {
    const rates = createRates({ sql: () => expect.fail("asked"), now: () => 0, onWait: () => undefined });

    const useGrant = await grantsFor({ rates, log }, [{ subscriptionId: 1, rateLimit: null }]);

    expect(useGrant?.(1, null)).to.equal(true);
  });

  it("asks for each delivery with a limit, and permits as many as are granted", async () => {
    const asked: unknown[] = [];
    const rates: Pick<Rates, "take"> = {
      take: async (requests) => (asked.push(...requests), new Map([[1, 2]])),
    };
    const limited = { subscriptionId: 1, rateLimit: 5 };

    const useGrant = await grantsFor({ rates, log }, [limited, limited, limited]);

    expect(asked).to.deep.equal([{ ...limited, count: 3 }]);
    expect([1, 2, 3].map(() => useGrant?.(1, 5))).to.deep.equal([true, true, false]);
  });

  it("permits a subscription without its row of state", async () => {
    const useGrant = await grantsFor({ rates: open(), log }, [{ subscriptionId: 999, rateLimit: 1 }]);

    expect([useGrant?.(999, 1), useGrant?.(999, 1)]).to.deep.equal([true, false]);
  });
});
