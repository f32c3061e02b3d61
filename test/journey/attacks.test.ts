import { expect } from "chai";
import { attacks } from "../../bench/attacks/attacks.ts";
import { measure, type Outcome } from "../../bench/attacks/measure.ts";
import { createScene, type Scene } from "../../bench/attacks/scene.ts";
import { containerBytes } from "../../bench/memory-limit.ts";
import { createTestDatabase, type TestDatabase } from "../support/database.ts";
import { amqpUrl } from "../support/services.ts";

/** A short version of `npm run attack`, which also measures the effect on other users. */
describe("one hostile user", function () {
  this.timeout(120_000);
  let database: TestDatabase;
  let scene: Scene;

  before(async () => {
    database = await createTestDatabase();
    scene = await createScene({ databaseUrl: database.url, amqpUrl: await amqpUrl() });
  });
  after(async () => {
    await scene?.dispose();
    await database.drop();
  });

  async function suffer(name: string): Promise<Outcome> {
    const attack = attacks.find((one) => one.name === name);
    if (attack === undefined) throw new Error(`no attack "${name}"`);
    return measure(scene, attack, 2000, 0);
  }

  for (const [name, answers] of [
    ["amounts of 150,000 digits", ["422"]],
    ["lists of 100 records of 1 MB", ["200"]],
    ["lists of 1 MB records that nobody reads", ["connections"]],
    ["lists of two records of 5 MB of JSON that nobody reads", ["connections"]],
    ["200 creates of 1 MB at once", ["201", "503"]],
    ["creates of 1 MB whose clients leave", ["201", "503"]],
    ["bodies of 330,000 objects", ["413", "503"]],
    ["Json with Prisma's own keys", ["422"]],
    ["bodies over the limit, on kept connections", ["413", "503"]],
    ["searches of 100 characters over long columns", ["200", "503"]],
    ["requests of 18 bytes behind each other, without a token", ["connections"]],
    ["tokens that do not exist, behind each other", ["connections"]],
    ["bodies of 1 MB in chunks of a byte", ["connections"]],
    ["batches of 1,000 creates", ["200", "503"]],
    ["5,000 silent connections", ["connections"]],
    ["tokens that do not exist", ["401", "429"]],
  ] as const) {
    it(`neither stops the service nor fails another user's requests by ${name}`, async () => {
      const outcome = await suffer(name);

      expect(outcome.death, "the service lives").to.equal(undefined);
      expect(outcome.peakBytes ?? 0, "its memory").to.be.below(containerBytes);
      expect([outcome.during.failures, outcome.after.failures, outcome.lost]).to.deep.equal([{}, {}, 0]);
      // A request in flight at the end of the attack may be cut.
      const { ECONNRESET: _cut, EPIPE: _shut, ...rest } = outcome.answers;
      expect(answers).to.include.members(Object.keys(rest));
    });
  }
});
