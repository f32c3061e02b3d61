import { expect } from "chai";
import { createBreakers, failuresToOpen } from "../../../src/deliveries/admission/breakers.ts";
import {
  createSharedBreakers,
  type SharedBreakers,
} from "../../../src/deliveries/admission/shared-breakers.ts";
import { coreOfSuite } from "../../support/core-database.ts";
import { createMemoryLog } from "../../support/http.ts";
import { until } from "../../support/wait.ts";

const receiver = "7 https://hooks.example.com/canary";
const pauseMs = 30_000;

const fail = (breakers: SharedBreakers): void => {
  for (let count = 0; count < failuresToOpen; count += 1) {
    expect(breakers.tryAcquire(receiver)).to.equal("go");
    breakers.report({ receiver, isProbe: false, cost: "costly" });
  }
};
const untilMay = (breakers: SharedBreakers, may: boolean): Promise<unknown> =>
  until(() => breakers.mayAcquire(receiver) === may, {
    what: `a breaker that ${may ? "is closed" : "is open"}`,
  });

describe("createSharedBreakers", () => {
  const core = coreOfSuite();
  let skewMs: number;
  let stopping: AbortController;
  let runs: Promise<void>[];
  let drained: () => Promise<void>;

  beforeEach(async () => {
    await core.sql("TRUNCATE svc.breakers");
    [skewMs, stopping, runs] = [0, new AbortController(), []];
    drained = () => Promise.resolve();
  });
  afterEach(async () => {
    stopping.abort();
    await Promise.all(runs);
  });

  const now = (): number => performance.now() + skewMs;
  /**
   * Starts the breakers of one more process. Their clock is that of the test, ahead of the
   * database's.
   */
  function start({
    signal = stopping.signal,
    limit,
  }: { readonly signal?: AbortSignal; readonly limit?: number } = {}): SharedBreakers {
    const own = createBreakers({ firstPauseMs: pauseMs, now, random: () => 0.5 });
    const { log } = createMemoryLog();
    const shared = createSharedBreakers({
      own,
      sql: core.sql,
      log,
      drained: () => drained(),
      now,
      random: () => 0,
      intervalMs: 5,
      ...(limit === undefined ? {} : { limit }),
    });
    runs.push(shared.run(signal));
    return shared;
  }

  it("open in the other processes too, for one receiver only, and show no URL", async () => {
    const [one, other] = [start(), start()];
    fail(one);

    await untilMay(other, false);

    expect(other.tryAcquire(receiver)).to.equal("wait");
    expect(other.mayAcquire("8 https://hooks.example.com/canary")).to.equal(true);
    expect(other.counts()).to.deep.equal({ open: 1, halfOpen: 0 });
    expect(JSON.stringify(await core.sql("SELECT one::text FROM svc.breakers AS one"))).not.to.contain(
      "canary",
    );
  });

  it("are known to a process that starts later, also when the one that opened it has died", async () => {
    const dying = new AbortController();
    fail(start({ signal: dying.signal }));
    await until(async () => (await core.sql("SELECT FROM svc.breakers")).length === 1, { what: "its row" });
    dying.abort();

    const later = start();
    await untilMay(later, false);
    skewMs = pauseMs + 5_000;
    expect(later.tryAcquire(receiver)).to.equal("probe");
    expect(later.tryAcquire(receiver)).to.equal("wait");
  });

  it("let one process probe, and close in all of them with an answer", async () => {
    const [one, other] = [start(), start()];
    fail(one);
    await untilMay(other, false);
    skewMs = pauseMs + 1;

    expect(one.tryAcquire(receiver)).to.equal("probe");
    expect(other.tryAcquire(receiver)).to.equal("wait");
    expect(one.report({ receiver, isProbe: true, cost: "answered" })).to.equal("closed");
    await untilMay(other, true);
    expect(other.tryAcquire(receiver)).to.equal("go");
    expect(await core.sql("SELECT FROM svc.breakers")).to.deep.equal([]);
  });

  it("close where they were opened when another process gets an answer, not by its failures", async () => {
    const [one, other] = [start(), start()];
    expect(other.tryAcquire(receiver)).to.equal("go");
    expect(other.tryAcquire(receiver)).to.equal("go");
    fail(one);
    await untilMay(other, false);

    other.report({ receiver, isProbe: false, cost: "costly" });
    await core.sql("SELECT pg_sleep(0.3)");
    expect([one.mayAcquire(receiver), other.mayAcquire(receiver)]).to.deep.equal([false, false]);
    other.report({ receiver, isProbe: false, cost: "answered" });
    await untilMay(one, true);
    await untilMay(other, true);
  });

  it("close in the other processes when the last attempt of a stop is answered", async () => {
    const ending = new AbortController();
    let isDrained = false;
    const [one, other] = [start({ signal: ending.signal }), start()];
    fail(one);
    await untilMay(other, false);
    skewMs = pauseMs + 1;
    expect(one.tryAcquire(receiver)).to.equal("probe");
    drained = async () => void (await until(() => isDrained, { what: "the last attempt" }));

    ending.abort();
    await core.sql("SELECT pg_sleep(0.2)");
    one.report({ receiver, isProbe: true, cost: "answered" });
    isDrained = true;

    await untilMay(other, true);
  });

  it("stay open when others have more of them than are read", async () => {
    const one = start({ limit: 3 });
    await core.sql(
      `INSERT INTO svc.breakers (key, pause_ms, until, holder)
       SELECT sha256(n::text::bytea), 600000, now() + interval '10 minutes', gen_random_uuid() FROM generate_series(1, 5) AS n`,
    );
    fail(one);
    await until(async () => (await core.sql("SELECT FROM svc.breakers")).length === 6, { what: "its row" });

    await core.sql("SELECT pg_sleep(0.3)");

    expect(one.mayAcquire(receiver)).to.equal(false);
  });

  it("count as over when they would last far longer than their pause: the database's clock was ahead", async () => {
    const [one, other] = [start(), start()];
    fail(one);
    await untilMay(other, false);

    await core.sql("UPDATE svc.breakers SET until = until + interval '1 day'");
    skewMs = 5_000;

    await untilMay(other, true);
    expect(other.tryAcquire(receiver)).to.equal("probe");
  });

  it("keep the longer pause that another process has found", async () => {
    const one = start();
    fail(one);
    await until(async () => (await core.sql("SELECT FROM svc.breakers")).length === 1, { what: "its row" });
    skewMs = pauseMs * 2;
    await core.sql(
      "UPDATE svc.breakers SET pause_ms = 200000, until = now() - interval '1 second', holder = gen_random_uuid()",
    );
    await untilMay(one, false);
    await until(() => one.tryAcquire(receiver) === "probe", { what: "its turn to probe" });
    one.report({ receiver, isProbe: true, cost: "costly" });

    const pauseOf = async (): Promise<number | undefined> =>
      (await core.sql<{ ms: number }>("SELECT pause_ms AS ms FROM svc.breakers"))[0]?.ms;
    await until(async () => (await pauseOf()) !== 200_000, { what: "the next pause" });
    expect(await pauseOf()).to.equal(400_000);
  });

  it("wait twice as long in all processes when the probe has no answer", async () => {
    const [one, other] = [start(), start()];
    fail(one);
    await untilMay(other, false);
    skewMs = pauseMs + 1;
    expect(one.tryAcquire(receiver)).to.equal("probe");
    one.report({ receiver, isProbe: true, cost: "costly" });

    await until(
      async () =>
        (await core.sql<{ ms: number }>("SELECT pause_ms AS ms FROM svc.breakers"))[0]?.ms === 2 * pauseMs,
      { what: "the longer pause" },
    );
    await untilMay(other, false);
  });
});
