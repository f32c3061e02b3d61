import { expect } from "chai";
import { planReplay } from "../../src/deliveries/replay/plan-replay.ts";
import { coreOfSuite } from "../support/core-database.ts";

describe("planReplay", () => {
  const core = coreOfSuite();

  it("reveals no events that cannot be judged now, which may be another user's", async () => {
    const made = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'notes', 'on_create', n, '{}' FROM generate_series(1, 3) AS n RETURNING id::text`,
    );
    await core.sql("DELETE FROM svc.outbox");
    const [own, , another] = made.map(({ id }) => id);
    const verdicts = new Map([
      [own, true],
      [another, false],
    ]);
    const user = { id: 1, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };
    const eligibility = {
      judge: async (pairs: readonly { readonly event: { readonly id?: string } }[]) =>
        pairs.map(({ event }) => verdicts.get(event.id)),
    };
    const now = Date.now();
    const [since, until] = [now - 60_000, now + 60_000].map((time) => new Date(time).toISOString());

    const plan = await planReplay(
      { sql: core.sql, eligibility },
      { id: 1, resource: "notes", events: ["on_create"], filter: null, isActive: true, user },
      { since: since ?? "", until: until ?? "", status: ["never"], events: null, resource: null },
    );

    expect(plan).to.deep.include({ total: 1, isEstimate: true, eventIds: [own] });
  });
});
