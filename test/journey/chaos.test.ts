import { expect } from "chai";
import { chaosLine } from "../../bench/chaos/report.ts";
import { type ChaosResult, runChaos } from "../../bench/chaos/run.ts";
import { faultKinds } from "../../bench/chaos/schedule.ts";

/**
 * A short version of `npm run chaos`. Messages that its broker loses arrive after
 * `webhooks.requeueAfter`, which is 60 s.
 */
describe("the whole service under faults of all kinds", function () {
  this.timeout(420_000);
  const releases: (() => Promise<void> | void)[] = [];
  let result: ChaosResult;

  before(async () => {
    result = await runChaos({
      seed: 1,
      durationMs: 60_000,
      ratePerSecond: 40,
      isOneByOne: false,
      drainLimitMs: 180_000,
      atEnd: (work) => void releases.push(work),
      progress: () => undefined,
    });
    console.log(`      ${chaosLine(result)}`);
  });
  after(async () => {
    for (const release of releases.toReversed()) await release();
  });

  it("loses nothing, invents nothing and keeps all acknowledged writes", () => {
    const { lost, phantom, broken, doubled, altered } = result.ledger;

    expect({ lost, phantom, broken, doubled, altered }).to.deep.equal({
      lost: [],
      phantom: [],
      broken: [],
      doubled: [],
      altered: [],
    });
  });

  it("leaves no delivery in neither the queue nor a flight", () => {
    expect(result.strays).to.deep.equal([]);
  });

  it("records one event for each change, and has every delivery arrive", () => {
    expect(result.ledger.changes.committed).to.be.above(0);
    expect(result.ledger.events).to.equal(result.ledger.changes.committed);
    expect(result.drainedAfterMs, "drained").to.not.equal(undefined);
    expect(result.isPassed).to.equal(true);
  });

  it("gives up only what its receiver refused each time, its owner dropped, or was erased", () => {
    const reasons =
      /^(failed: .* answered 500|cancelled: (The owner dropped|The record was erased)|erased before it was fanned out)/;
    for (const reason of Object.keys(result.ledger.explained)) expect(reason).to.match(reasons);
  });

  it("has replays, erased records and removed deliveries, and every replay ends", () => {
    const { replays, replayed, erased, removed } = result.ledger;

    expect(Object.keys(replays).map((state) => state.split(":")[0])).to.include("done");
    expect(replayed["arrived"]).to.be.above(0);
    expect(erased).to.be.above(0);
    expect(removed).to.be.above(0);
  });

  it("has had faults of every part, no process that ended by itself, and no unexpected answer", () => {
    const kinds = new Set<string>(result.recoveries.map(({ kind }) => kind));
    const spared = Object.entries(faultKinds).filter(([, ofPart]) => !ofPart.some((kind) => kinds.has(kind)));

    expect(spared).to.deep.equal([]);
    expect(result.troubles).to.deep.equal([]);
    expect(result.unexpected).to.deep.equal([]);
    expect(result.processes.flatMap(({ endings }) => endings)).to.deep.equal([]);
  });
});
