import { randomUUID } from "node:crypto";
import { expect } from "chai";
import { createTransact } from "../../src/db/sql.ts";
import { createReplayStore } from "../../src/deliveries/replay/replay-store.ts";
import { useCoreScene } from "../support/core-scene.ts";

describe("createReplayStore", () => {
  const scene = useCoreScene();

  it("has users take turns, however many replays each has", async () => {
    const { sql, database } = scene.core;
    const store = createReplayStore({ sql, transact: createTransact(database.pool) });
    for (const [index, userId] of [7, 7, 7, 7, 8].entries())
      await sql(
        `INSERT INTO svc.replays (subscription_id, user_id, asked, cursor, until_id, total, is_estimate, updated_at)
         VALUES ($1, $2, '{}', 0, 1, 1, false, now() - interval '1 hour')`,
        [index + 1, userId],
      );
    const holder = randomUUID();
    const taken: (readonly [number | undefined, number | undefined])[] = [];

    for (let turn = 0; turn < 6; turn += 1) {
      const replay = await store.claim({ holder, leaseMs: 5_000 });
      taken.push([replay?.userId, replay?.subscriptionId]);
      // The next one is later by the clock, which has milliseconds here.
      await sql("SELECT pg_sleep(0.005)");
    }

    expect(taken.map(([user]) => user)).to.deep.equal([7, 8, 7, 8, 7, 8]);
    expect(taken.flatMap(([user, id]) => (user === 7 ? [id] : []))).to.deep.equal([1, 2, 3]);
  });
});
