import { EventEmitter } from "node:events";
import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import {
  createMemoryBudget,
  createRequestMemory,
  defaultMemoryBudget,
  type MemoryBudget,
  type OpenRequest,
} from "../../src/http/memory-budget.ts";
import type { ApiContext } from "../../src/http/state.ts";

const [ada, bob, eve] = [1, 2, 3];

/** Returns whether it resolves once all pending callbacks have run. */
async function isGranted(reservation: Promise<void>): Promise<boolean> {
  const late = new Promise<false>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([reservation.then(() => true), late]);
}

async function refusalOf(reservation: Promise<void>): Promise<unknown> {
  return reservation.then(
    () => undefined,
    (error: unknown) => error,
  );
}

async function resultOf(reservation: Promise<void>): Promise<unknown> {
  const refusal = refusalOf(reservation);
  const isOver = await isGranted(refusal.then(() => undefined));
  const error = isOver ? await refusal : "waits";
  return error instanceof AppError ? error.status : (error ?? "granted");
}

describe("createMemoryBudget", () => {
  it("lets a request wait until another releases enough memory", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const first = budget.open(ada);
    await first.reserve(50);
    await budget.open(bob).reserve(30);

    const waiting = budget.open(eve).reserve(40);
    expect(await isGranted(waiting)).to.equal(false);
    first.release();

    expect(await isGranted(waiting)).to.equal(true);
  });

  it("refuses after the wait with 503 and Retry-After, and serves the next in the queue", async () => {
    const budget = createMemoryBudget({ limitBytes: 100, waitMs: 20 });
    await budget.open(ada).reserve(50);
    await budget.open(bob).reserve(30);

    const large = refusalOf(budget.open(eve).reserve(40));
    const small = budget.open(eve).reserve(10);
    const refusal = await large;

    expect(refusal).to.be.instanceOf(AppError).with.property("status", 503);
    expect((refusal as AppError).headers).to.deep.equal({ "Retry-After": "1" });
    expect(await isGranted(small)).to.equal(true);
  });

  it("limits a user to half, and lets other users pass that user's waiting requests", async () => {
    const budget = createMemoryBudget({ limitBytes: 100, waitMs: 20 });
    await budget.open(ada).reserve(30);

    const second = refusalOf(budget.open(ada).reserve(30));
    expect(await isGranted(budget.open(bob).reserve(50))).to.equal(true);

    expect(await second).to.be.instanceOf(AppError);
  });

  it("counts a request that is larger than a share as one share", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const huge = budget.open(ada);
    await huge.reserve(1_000_000);

    expect(await isGranted(budget.open(bob).reserve(50))).to.equal(true);
    huge.release();
    expect(await isGranted(budget.open(eve).reserve(50))).to.equal(true);
  });

  for (const [whose, users, limitBytes, results] of [
    ["a user", [ada, ada, ada, ada], 200, ["granted", "waits", "waits", 503]],
    ["everybody", [ada, bob, ada, bob], 100, ["granted", "granted", 503, 503]],
  ] as const)
    it(`refuses the last request of ${whose} when all would wait for one another`, async () => {
      const budget = createMemoryBudget({ limitBytes, waitMs: 60_000 });
      const requests = users.map((user) => budget.open(user));
      await Promise.all(requests.map((request) => request.reserve(25)));

      const found = requests.map((request) => resultOf(request.reserve(50)));

      expect(await Promise.all(found)).to.deep.equal(results);
      for (const request of requests) request.release();
    });

  it("refuses no request of a user below its half, and waits for releases", async () => {
    const budget = createMemoryBudget({ limitBytes: 200, waitMs: 60_000 });
    const busy = budget.open(bob);
    await busy.reserve(100);
    await budget.open(eve).reserve(50);
    const requests = [ada, ada].map((user) => budget.open(user));
    await Promise.all(requests.map((request) => request.reserve(10)));

    const waiting = requests.map((request) => request.reserve(45));
    const before = waiting.map(resultOf);
    expect(await Promise.all(before)).to.deep.equal(["waits", "waits"]);
    busy.release();

    expect(await Promise.all(waiting.map(resultOf))).to.deep.equal(["granted", "granted"]);
  });

  for (const [whose, users, limitBytes, results] of [
    ["its user", [ada, ada, ada, ada], 200, ["granted", "waits", 503]],
    ["another user", [ada, bob, eve, 4], 100, ["granted", "granted", 503]],
  ] as const)
    it(`refuses the last request of a mutual wait when a request of ${whose} has ended`, async () => {
      const budget = createMemoryBudget({ limitBytes, waitMs: 60_000 });
      const requests = users.map((user) => budget.open(user));
      await Promise.all(requests.map((request, index) => request.reserve(index < 3 ? 30 : 10)));
      const waiting = requests.slice(0, 3).map((request) => request.reserve(60));
      expect(await Promise.all(waiting.map(resultOf))).to.deep.equal(["waits", "waits", "waits"]);

      requests[3]?.release();

      expect(await Promise.all(waiting.map(resultOf))).to.deep.equal(results);
      for (const request of requests) request.release();
    });

  it("does not let small requests pass a large one forever", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const small = budget.open(ada);
    await small.reserve(50);
    await budget.open(bob).reserve(20);
    const large = budget.open(eve).reserve(40);
    const later = budget.open(4).reserve(20);

    expect(await isGranted(later)).to.equal(false);
    small.release();
    expect([await isGranted(large), await isGranted(later)]).to.deep.equal([true, true]);
  });

  it("has an eighth beyond the limit for users with at most a 64th, who pass those that wait", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400, waitMs: 60_000 });
    for (const user of [ada, bob]) await budget.open(user).reserve(3_200);
    const large = budget.open(eve).reserve(101);
    const users = Array.from({ length: 8 }, (_, index) => 10 + index);

    const results = await Promise.all(users.map((user) => resultOf(budget.open(user).reserve(100))));

    expect(results).to.deep.equal(users.map(() => "granted"));
    expect(await isGranted(large)).to.equal(false);
    for (const user of [10, 20]) expect(() => budget.open(user).settle(1)).to.throw(AppError);
  });

  it("gives that to users with little who waited for it, and not to those before them", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400, waitMs: 60_000 });
    for (const user of [ada, bob]) await budget.open(user).reserve(3_200);
    const large = budget.open(eve).reserve(101);
    const requests = Array.from({ length: 8 }, (_, index) => budget.open(10 + index));
    for (const request of requests) await request.reserve(100);
    const waiting = budget.open(20).reserve(100);
    expect(await isGranted(waiting)).to.equal(false);

    requests[0]?.release();

    expect([await isGranted(large), await isGranted(waiting)]).to.deep.equal([false, true]);
  });

  it("lets requests that need no more go on, whatever users with little hold beyond the limit", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400, waitMs: 60_000 });
    const large = budget.open(ada);
    for (const request of [large, budget.open(bob)]) await request.reserve(3_200);
    await budget.open(eve).reserve(100);

    expect(await resultOf(large.reserve(0))).to.equal("granted");
  });

  it("has that for the answer of a user, beside two who hold both halves", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400 });
    for (const user of [ada, bob]) await budget.open(user).reserve(3_200);

    expect(() => budget.open(eve).settle(100)).not.to.throw();
    expect(() => budget.open(eve).settle(1)).to.throw(AppError);
  });

  it("grants less at once, and more only where memory is free", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const request = budget.open(ada);
    await request.reserve(50);
    request.settle(10);
    await budget.open(bob).reserve(50);

    expect(() => request.settle(40)).not.to.throw();
    expect(() => budget.open(eve).settle(20))
      .to.throw(AppError)
      .with.property("status", 503);
  });

  it("counts what a committed write holds beyond the limit, and lets the others wait for it", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const write = budget.open(ada);
    await write.reserve(10);
    write.hold(60);

    const others = [budget.open(ada).reserve(0), budget.open(ada).reserve(10)];
    expect(await Promise.all(others.map(isGranted))).to.deep.equal([false, false]);
    expect(await isGranted(budget.open(bob).reserve(40))).to.equal(true);
    write.hold(30);
    expect(await Promise.all(others.map(isGranted))).to.deep.equal([true, true]);
  });

  it("holds nothing for a request that was released", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const gone = budget.open(ada);
    gone.release();
    gone.hold(1000);

    expect(() => gone.settle(10)).to.throw(AppError);
    expect(await isGranted(budget.open(ada).reserve(50))).to.equal(true);
  });

  it("gives nothing to a request that ended while it waited", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const first = budget.open(ada);
    await first.reserve(50);
    const gone = budget.open(ada);
    const refused = refusalOf(gone.reserve(20));
    gone.release();
    first.release();

    expect(await refused).to.be.instanceOf(AppError);
    expect(await isGranted(budget.open(ada).reserve(50))).to.equal(true);
  });

  describe("with requests that wait for their clients", () => {
    let lost: string[];
    let budget: MemoryBudget;

    beforeEach(() => {
      lost = [];
      budget = createMemoryBudget({ limitBytes: 100, waitMs: 20, patienceMs: 0 });
    });

    /** Opens a request that holds `bytes`, and waits for its client. */
    async function lend(userId: number, bytes: number): Promise<OpenRequest> {
      const request = budget.open(userId);
      await request.reserve(bytes);
      request.lend(() => lost.push(`${userId}: ${bytes}`));
      return request;
    }

    it("takes memory for a user who has none: from the user with most, the oldest request first", async () => {
      await lend(bob, 20);
      await lend(ada, 10);
      await lend(ada, 40);
      await lend(bob, 25);

      expect(await isGranted(budget.open(eve).reserve(25))).to.equal(true);
      expect(lost).to.deep.equal(["1: 10", "2: 20"]);
    });

    it("also takes it at once for an answer, and gives the rest to those behind", async () => {
      await lend(ada, 50);
      await lend(bob, 50);
      const waiting = budget.open(4).reserve(30);
      expect(lost).to.deep.equal(["1: 50"]);

      const answer = budget.open(eve);
      answer.settle(20);
      const next = budget.open(eve);
      next.settle(10);

      expect(await isGranted(waiting)).to.equal(true);
      expect(lost).to.deep.equal(["1: 50", "2: 50"]);
    });

    it("takes none for a user who would have as much, and none from a waiting request", async () => {
      await lend(ada, 30);
      const waiting = await lend(bob, 40);
      await lend(eve, 30);
      const more = refusalOf(waiting.reserve(45));

      expect(await isGranted(budget.open(4).reserve(35))).to.equal(false);
      expect(lost).to.deep.equal([]);
      expect(await more).to.be.instanceOf(AppError);
    });

    it("takes none where that would not be enough", async () => {
      await lend(ada, 10);
      await budget.open(ada).reserve(40);
      await budget.open(bob).reserve(50);

      expect(() => budget.open(eve).settle(30)).to.throw(AppError);
      expect(await refusalOf(budget.open(eve).reserve(30))).to.be.instanceOf(AppError);
      expect(lost).to.deep.equal([]);
      budget.open(eve).settle(10);
      expect(lost).to.deep.equal(["1: 10"]);
    });

    it("takes none before its patience ends, and checks again when a wait ends", async () => {
      budget = createMemoryBudget({ limitBytes: 100, waitMs: 100, patienceMs: 50 });
      await lend(ada, 50);
      await lend(bob, 50);

      const waiting = budget.open(eve).reserve(10);
      expect(await isGranted(waiting)).to.equal(false);

      await waiting;
      expect(lost).to.deep.equal(["1: 50"]);
    });

    it("takes none from a request that has ended, or whose client has sent its whole body", async () => {
      (await lend(ada, 50)).release();
      const sent = budget.open(ada);
      await sent.reserve(50);
      sent.lend(() => lost.push("sent"))();
      await budget.open(bob).reserve(50);

      expect(await refusalOf(budget.open(eve).reserve(10))).to.be.instanceOf(AppError);
      expect(lost).to.deep.equal([]);
    });
  });

  it("has its full size again after all releases, however often", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    for (let round = 0; round < 50; round++) {
      const request = budget.open(round % 3);
      await request.reserve(50);
      request.settle(round);
      request.release();
      request.release();
    }

    await budget.open(ada).reserve(50);
    expect(await isGranted(budget.open(bob).reserve(50))).to.equal(true);
  });
});

describe("createRequestMemory", () => {
  let budget: MemoryBudget;
  let ctx: ApiContext;
  let end: () => void;
  let served: Promise<unknown>;

  beforeEach(() => {
    budget = createMemoryBudget({ limitBytes: 100, waitMs: 20 });
    ctx = { res: new EventEmitter(), state: { caller: { id: ada } } } as unknown as ApiContext;
    const work = new Promise<void>((resolve) => (end = resolve));
    served = Promise.resolve(createRequestMemory(budget, 1000)(ctx, () => work));
  });

  const hasRoom = async (): Promise<boolean> => {
    const other = budget.open(ada);
    const isThere = await isGranted(other.reserve(50));
    other.release();
    return isThere;
  };

  it("is released when the answer is sent", async () => {
    await ctx.state.memory.reserve(50);
    end();
    await served;
    expect(await hasRoom()).to.equal(false);

    ctx.res.emit("close");

    expect(await hasRoom()).to.equal(true);
  });

  it("is held for work that continues after the client has left", async () => {
    await ctx.state.memory.reserve(50);
    ctx.res.emit("close");
    expect(await hasRoom()).to.equal(false);

    end();
    await served;

    expect(await hasRoom()).to.equal(true);
  });

  it("ends the wait of a request whose client has left", async () => {
    const other = budget.open(ada);
    await other.reserve(40);
    const waiting = refusalOf(ctx.state.memory.reserve(20));

    ctx.res.emit("close");
    other.release();

    expect(await waiting).to.be.instanceOf(AppError);
  });
});

describe("defaultMemoryBudget", () => {
  it("is at least 16 MB and at most a quarter of a heap", () => {
    expect(defaultMemoryBudget(1_048_576)).to.be.within(16 * 1024 ** 2, 8 * 1024 ** 3);
  });
});
