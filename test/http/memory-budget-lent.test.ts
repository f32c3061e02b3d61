import { EventEmitter } from "node:events";
import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import {
  createMemoryBudget,
  createRequestMemory,
  type MemoryBudget,
  type OpenRequest,
} from "../../src/http/memory-budget.ts";
import type { ApiContext } from "../../src/http/state.ts";
import { ada, bob, eve, isGranted, refusalOf, resultOf } from "../support/memory-results.ts";

describe("createMemoryBudget with requests that wait for their clients", () => {
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

  it("takes it once from a request, also when that ends later", async () => {
    budget = createMemoryBudget({ limitBytes: 100, waitMs: 60_000, patienceMs: 0 });
    const lender = await lend(ada, 50);
    await budget.open(bob).reserve(50);
    await budget.open(eve).reserve(10);

    lender.release();

    expect(await resultOf(budget.open(ada).reserve(45))).to.equal("waits");
  });

  it("takes it also from a request that had to wait for its own", async () => {
    const first = budget.open(ada);
    await first.reserve(50);
    const lender = budget.open(ada);
    const granted = lender.reserve(50);
    lender.lend(() => lost.push("waited"));
    first.release();
    await granted;
    await budget.open(bob).reserve(50);

    await budget.open(eve).reserve(10);

    expect(lost).to.deep.equal(["waited"]);
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

  it("may be lost while the answer is being sent, which ends the answer", async () => {
    budget = createMemoryBudget({ limitBytes: 100, waitMs: 20, patienceMs: 0 });
    let isDestroyed = false;
    Object.assign(ctx.res, { destroy: () => (isDestroyed = true) });
    await createRequestMemory(budget, 1000)(ctx, () => ctx.state.memory.reserve(50));
    await budget.open(bob).reserve(50);

    await budget.open(eve).reserve(10);

    expect([isDestroyed, ctx.state.errorCode]).to.deep.equal([true, "server.overloaded"]);
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
