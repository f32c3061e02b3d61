import { expect } from "chai";
import { createReplay } from "../../src/deliveries/replay/replay-store.ts";
import { replaysOf } from "../../src/deliveries/replay/replay-list.ts";
import { serviceActor } from "../../src/kit/actor.ts";
import { createParameters } from "../../src/querying/condition-text.ts";
import { useCoreScene } from "../support/core-scene.ts";
import { createExplainingSql, type Plan } from "../support/plans.ts";

const asked = { since: "2026-03-28T14:30:00Z", until: "2026-03-29T00:00:00Z", status: [], events: null };
const plan = { after: "0", untilId: "9", total: 9, isEstimate: false, eventIds: [] };

describe("finished replays", () => {
  const scene = useCoreScene();

  beforeEach(async () => {
    await scene.core.sql("TRUNCATE svc.replays");
    // User 7 has more than are kept, of two webhooks; user 8 has a few.
    await scene.core.sql(
      `INSERT INTO svc.replays (subscription_id, user_id, asked, state, cursor, until_id, total, is_estimate, done)
       SELECT CASE number WHEN 1 THEN 3 ELSE number % 2 END, CASE WHEN number <= 5000 THEN 7 ELSE 8 END, '{}',
         CASE number WHEN 1 THEN 'paused' WHEN 2 THEN 'done' ELSE 'cancelled' END, 0, 9, 9, false, 9
       FROM generate_series(1, 5005) AS number`,
    );
  });

  it("are kept up to a thousand of a user, without an effect on those of others", async () => {
    const user = { id: 7, name: "Eve", email: "eve@example.com", isAdmin: false, claims: {} };
    const made = await createReplay(
      scene.core.sql,
      { id: 2, resource: "notes", events: ["on_create"], filter: null, isActive: true, user },
      { asked: { ...asked, resource: null }, plan, actor: serviceActor("api") },
    );

    expect(made).to.include({ state: "running", userId: 7 });
    const left = await scene.core.sql(
      `SELECT user_id, state, count(*)::int AS count FROM svc.replays GROUP BY 1, 2 ORDER BY 1, 2`,
    );
    expect(left).to.deep.equal([
      { user_id: 7, state: "cancelled", count: 1000 },
      { user_id: 7, state: "paused", count: 1 },
      { user_id: 7, state: "running", count: 1 },
      { user_id: 8, state: "cancelled", count: 5 },
    ]);
  });

  it("are not read for the list of another user", async () => {
    const plans: Plan[] = [];
    const parameters = createParameters();
    const source = replaysOf({ id: 8, isAdmin: false }).source(parameters, new Map());
    const client = await scene.core.database.pool.connect();
    try {
      const sql = createExplainingSql({
        client,
        settings: "",
        mode: "custom",
        note: (one) => plans.push(one),
      });
      await sql(`SELECT * FROM (${source}) AS t ORDER BY t.id DESC LIMIT 16`, parameters.values);
      await sql(`SELECT count(*) FROM (${source}) AS t`, parameters.values);
    } finally {
      client.release();
    }

    expect(plans.map(({ rowsRead }) => rowsRead)).to.deep.equal([5, 5]);
  });
});
