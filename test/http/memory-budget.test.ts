import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { AppError } from "../../src/kit/errors.ts";
import { createMemoryBudget, defaultMemoryBudget } from "../../src/http/memory-budget.ts";
import { ada, bob, eve, isGranted, refusalOf, resultOf, tryOut } from "../support/memory-results.ts";

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

  for (const [whose, users, besides, limitBytes, results] of [
    ["a user", [ada, ada, ada, ada], 0, 200, ["granted", "waits", "waits", 503]],
    ["a user beside another", [ada, ada, ada, ada], 50, 200, ["granted", "waits", "waits", 503]],
    ["everybody", [ada, bob, ada, bob], 0, 100, ["granted", "granted", 503, 503]],
  ] as const)
    it(`refuses the last request of ${whose} when all would wait for one another`, async () => {
      const budget = createMemoryBudget({ limitBytes, waitMs: 60_000 });
      await budget.open(eve).reserve(besides);
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
    const users = Array.from({ length: 7 }, (_, index) => 10 + index);

    const results = await Promise.all(users.map((user) => resultOf(budget.open(user).reserve(100))));

    expect(results).to.deep.equal(users.map(() => "granted"));
    expect(await isGranted(large)).to.equal(false);
    for (const [user, bytes] of [
      [10, 1],
      [20, 51],
    ] as const)
      expect(() => budget.open(user).settle(bytes)).to.throw(AppError);
  });

  it("leaves room for small requests, beside any number of users with a 64th", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400, waitMs: 60_000 });
    for (let user = 10; user < 110; user += 1) void budget.open(user).reserve(100);

    expect(await resultOf(budget.open(ada).reserve(50))).to.equal("granted");
  });

  it("gives that to users with little who waited for it, and not to those before them", async () => {
    const budget = createMemoryBudget({ limitBytes: 6_400, waitMs: 60_000 });
    for (const user of [ada, bob]) await budget.open(user).reserve(3_200);
    const large = budget.open(eve).reserve(101);
    const requests = Array.from({ length: 7 }, (_, index) => budget.open(10 + index));
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
    expect(await refusalOf(gone.reserve(10))).to.be.instanceOf(AppError);
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

  it("takes back at once what a request needs no more whose client has left", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const left = budget.open(ada);
    await left.reserve(50);
    left.leave();
    left.hold(20);

    expect(await isGranted(budget.open(ada).reserve(30))).to.equal(true);
  });

  it("serves those behind a waiting request whose client leaves", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    await budget.open(ada).reserve(50);
    await budget.open(bob).reserve(30);
    const large = budget.open(eve);
    const refused = refusalOf(large.reserve(40));
    const small = budget.open(eve).reserve(10);
    expect(await isGranted(small)).to.equal(false);

    large.leave();

    expect(await isGranted(small)).to.equal(true);
    expect(await refused).to.be.instanceOf(AppError);
  });

  it("counts what a request got after a wait until its release, and not only until the wait's limit", async () => {
    const budget = createMemoryBudget({ limitBytes: 100, waitMs: 20 });
    const first = budget.open(ada);
    await first.reserve(50);
    const second = budget.open(ada);
    const granted = second.reserve(20);
    first.release();
    await granted;
    await sleep(40);
    expect(await tryOut(budget, ada, 30)).to.equal("granted");
    expect(await tryOut(budget, ada, 31)).to.equal("waits");

    second.release();

    expect(await tryOut(budget, ada, 50)).to.equal("granted");
  });

  it("counts what an answer took beyond the reservation until its release", async () => {
    const budget = createMemoryBudget({ limitBytes: 100 });
    const request = budget.open(ada);
    await request.reserve(10);
    request.settle(30);
    expect(await tryOut(budget, ada, 21)).to.equal("waits");

    request.release();

    expect(await tryOut(budget, ada, 50)).to.equal("granted");
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

describe("defaultMemoryBudget", () => {
  it("is at least 16 MB and at most a quarter of a heap", () => {
    expect(defaultMemoryBudget(1_048_576)).to.be.within(16 * 1024 ** 2, 8 * 1024 ** 3);
  });
});
