import { expect } from "chai";
import { hanging } from "../../bench/hold-ups/bursts.ts";
import { type HoldUp, quickSizes } from "../../bench/hold-ups/hold-up.ts";
import { measure } from "../../bench/hold-ups/measure.ts";
import { poison } from "../../bench/hold-ups/resources-held-up.ts";
import { type Place, startServers } from "../../bench/hold-ups/servers.ts";

/** A short version of `npm run holdups`: how long others wait is measured there, and not in a test. */
describe("what is held up", function () {
  this.timeout(120_000);
  const releases: (() => Promise<void> | void)[] = [];
  const atEnd = (work: () => Promise<void> | void): void => void releases.push(work);
  let makePlace: (name: string) => Promise<Place>;

  before(async () => {
    makePlace = await startServers(atEnd);
  });
  after(async () => {
    for (const release of releases.toReversed()) await release();
  });

  const cases: readonly (readonly [string, HoldUp])[] = [
    ["a resource whose events cannot be presented", poison],
    ["one user's receivers that hang", hanging],
  ];
  for (const [index, [what, holdUp]] of cases.entries()) {
    it(`is not the deliveries of others, by ${what}`, async () => {
      const { victim, endings } = await measure(holdUp, {
        place: await makePlace(`held_up_${index}`),
        sizes: { ...quickSizes, poisoned: 2_000 },
        durations: { calmMs: 500, holdMs: 4_000 },
        atEnd,
      });

      const { cameMeanwhile, made } = victim.phases.during;
      expect([victim.lost, victim.failures, endings]).to.deep.equal([0, {}, []]);
      // All but those that were under way when it ended.
      expect(made, "changes made").to.be.above(0);
      expect(cameMeanwhile, "changes received while it lasted").to.be.above(made / 2);
    });
  }
});
