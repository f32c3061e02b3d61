import { expect } from "chai";
import {
  asyncModelRun,
  asyncProperty,
  assert,
  commands,
  unbiased,
  interruptAfterTimeLimit,
} from "fast-check";
import { modes } from "../support/service.ts";
import { commandsOf, everyTransition } from "../support/webhook-model/steps.ts";
import { documentedTransitions, seenTransitions } from "../support/webhook-model/transitions.ts";
import { startRun, startWorld, type World } from "../support/webhook-model/world.ts";

/** Another seed: SVC_MODEL_SEED=17. More runs: SVC_MODEL_RUNS=100, which take some 5 s each. */
const seed = Number(process.env["SVC_MODEL_SEED"] ?? 12);
const runs = Number(process.env["SVC_MODEL_RUNS"] ?? 0);
const sizes = { servers: { numRuns: 15, maxCommands: 60 }, embedded: { numRuns: 2, maxCommands: 20 } };

for (const mode of modes) {
  describe(`webhooks and a model of them (${mode})`, function () {
    this.timeout(600_000 + runs * 20_000);
    let world: World;

    before(async () => {
      world = await startWorld(mode);
    });
    after(() => world?.stop());

    it("agree on every transition", async () => {
      await asyncModelRun(() => startRun(world), everyTransition());

      expect(await seenTransitions(world.sql)).to.deep.equal(documentedTransitions());
    });

    it(`agree on random inputs, with seed ${seed}`, async () => {
      const { numRuns, maxCommands } = sizes[mode];
      const anyCommands = commands([...commandsOf({ canCrash: mode === "servers" })], {
        maxCommands,
        size: "max",
      });
      await assert(
        asyncProperty(anyCommands, async (chosen) => {
          await asyncModelRun(() => startRun(world), chosen);
        }),
        {
          seed,

          numRuns: runs || numRuns,
          plugins: [unbiased(), ...(runs === 0 ? [interruptAfterTimeLimit(45_000)] : [])],
        },
      );
    });

    it("made no transition that is not in the guide's table", async () => {
      expect(documentedTransitions()).to.include.members(await seenTransitions(world.sql));
    });
  });
}
