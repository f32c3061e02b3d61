import { expect } from "chai";
import type { WaitingSubscription } from "../../src/deliveries/store.ts";
import { createParkedWalk, leaveNextTo, takeParked } from "../../src/deliveries/take-parked.ts";
import { createMetrics } from "../../src/telemetry/metrics.ts";
import { notesEligibility } from "../support/notes-eligibility.ts";
import { createMemoryLog } from "../support/http.ts";
import { createWatchedAdmission } from "../support/work.ts";

const waiting = (
  subscriptionId: number,
  given: { readonly userId?: number; readonly rateLimit?: number | null; readonly isActive?: boolean } = {},
): WaitingSubscription => ({
  subscriptionId,
  url: `https://${subscriptionId}.example.com/`,
  userId: 1,
  rateLimit: null,
  isActive: true,
  ...given,
});

/** Creates a walk over subscriptions, at receivers with a number of free slots in all. */
function walkOver(
  subscriptions: readonly WaitingSubscription[],
  {
    slots = Infinity,
    removed = 0,
    waitMs = 0,
  }: { readonly slots?: number; readonly removed?: number; readonly waitMs?: number } = {},
) {
  const admission = createWatchedAdmission();
  admission.refuses = () => (admission.held >= slots ? "busy" : undefined);
  const walk = createParkedWalk();
  const waits = new Map<number, number>();
  const asked: (readonly number[])[] = [];
  const turn = (): Promise<boolean> =>
    takeParked(
      {
        store: {
          findParked: async ({ after, limit }) =>
            subscriptions.filter(({ subscriptionId }) => subscriptionId > after).slice(0, limit),
          async takeParked({ wanted }) {
            expect(wanted).to.not.deep.equal([]);
            for (const { subscriptionId, oldest, newest } of wanted) {
              asked.push([subscriptionId, oldest, newest]);
              waits.set(subscriptionId, waitMs);
            }
            return { flightId: undefined, beganAtMs: 0, deliveries: [], removed };
          },
        },
        flightMs: 60_000,
        admission,
        attempts: {
          start: () => expect.fail("started"),
          settle: () => expect.fail("settled"),
          putBack: () => expect.fail("put back"),
        },
        rates: { take: async () => new Map(), waitMs: (id) => waits.get(id) ?? 0 },
        eligibility: notesEligibility(),
        isKnown: () => true,
        scheduleOf: () => ({ maxAttempts: 3, backoffMs: [1] }),
        log: createMemoryLog().log,
        metrics: createMetrics().deliveries,
      },
      walk,
    );
  return { admission, walk, waits, turn, taken: () => asked.splice(0) };
}

// The division of slots and the walk; sweep-parked.test.ts has the deliveries.
describe("takeParked", () => {
  it("gives a subscription at most a hundred slots, half for each end, and all at most 200", async () => {
    const { admission, turn, taken } = walkOver([1, 2, 3].map((id) => waiting(id)));

    await turn();

    expect(taken()).to.deep.equal([
      [1, 34, 33],
      [2, 34, 33],
      [3, 33, 33],
    ]);
    expect(admission.held).to.equal(0);

    const alone = walkOver([waiting(1)]);
    await alone.turn();
    expect(alone.taken()).to.deep.equal([[1, 50, 50]]);
  });

  it("gives users the same number of slots, and each user's subscriptions turns from the last one on", async () => {
    const subscriptions = [1, 2, 3].map((id) => waiting(id));
    const { turn, taken } = walkOver([...subscriptions, waiting(4, { userId: 2 })], { slots: 4 });

    await turn();
    expect(taken()).to.deep.equal([
      [1, 1, 0],
      [4, 1, 1],
      [2, 1, 0],
    ]);
    await turn();
    expect(taken()).to.deep.equal([
      [3, 1, 0],
      [4, 1, 1],
      [1, 0, 1],
    ]);
  });

  it("takes as many of a rate-limited subscription as may begin together, none while it must wait", async () => {
    const limited = [60, 1, 1].map((rateLimit, index) => waiting(index + 1, { rateLimit }));
    const { walk, waits, turn, taken } = walkOver(limited, { waitMs: 300 });
    waits.set(3, 90_000);
    const beganAt = performance.now();
    leaveNextTo(walk, 2, 60_000);
    const nextMs = (): number => walk.rateAtMs - beganAt;

    expect([await turn(), taken()]).to.deep.equal([false, [[1, 2, 1]]]);
    expect(nextMs()).to.be.within(300, 60_000);
    waits.set(1, 120_000);
    expect([await turn(), taken(), walk.mayBeParked]).to.deep.equal([false, [], false]);
    expect(nextMs()).to.be.within(60_200, 80_000);
  });

  it("notes no time of a rate once its subscription may have an attempt", async () => {
    const { walk, waits, turn } = walkOver([waiting(1, { rateLimit: 1 })]);
    waits.set(1, 5_000);
    await turn();
    waits.clear();

    await turn();

    expect(walk.rateAtMs).to.equal(Infinity);
  });

  for (const isForOthers of [false, true])
    it(`goes through all pages${isForOthers ? ", also where all slots are of other dispatchers" : ""}`, async () => {
      const page = Array.from({ length: 199 }, (_, index) => waiting(index + 2));
      const pages = [waiting(1, { rateLimit: 1 }), ...page, waiting(201, { isActive: false })];
      const { admission, walk, waits, turn, taken } = walkOver(pages, { slots: 0 });
      waits.set(1, 5_000);
      admission.isForOthers = isForOthers;

      expect([await turn(), walk.after, walk.mayBeParked]).to.deep.equal([true, 200, true]);
      expect(taken()).to.deep.equal([]);
      expect([await turn(), walk.after, walk.mayBeParked]).to.deep.equal([false, 0, !isForOthers]);
      expect(taken()).to.deep.equal([[201, 200, 0]]);
      expect(walk.rateAtMs).to.be.below(Infinity);
    });

  it("takes the oldest of subscriptions that are off, and looks again while there were some", async () => {
    const off = [1, 2].map((id) => waiting(id, { isActive: false }));
    const deleted = { subscriptionId: 3, rateLimit: null, url: null, userId: null, isActive: false } as const;
    for (const removed of [1, 0]) {
      const { walk, turn, taken } = walkOver([...off, deleted], { removed });

      expect([await turn(), walk.mayBeParked]).to.deep.equal([removed > 0, false]);
      expect(taken()).to.deep.equal([
        [1, 100, 0],
        [2, 100, 0],
      ]);
    }
  });

  it("takes the oldest of silent receivers once a minute, and none for attempts", async () => {
    const { admission, walk, turn, taken } = walkOver([waiting(1)]);
    admission.refuses = () => "silent";

    expect([await turn(), walk.mayBeParked, taken()]).to.deep.equal([false, false, [[1, 200, 0]]]);
    walk.judgedAtMs -= 55_000;
    expect([await turn(), taken()]).to.deep.equal([false, []]);
    walk.judgedAtMs -= 5_000;
    expect([await turn(), taken()]).to.deep.equal([false, [[1, 200, 0]]]);
  });
});
