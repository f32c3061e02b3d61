import { expect } from "chai";
import { createSql } from "../../src/db/sql.ts";
import type { Caller } from "../../src/kit/caller.ts";
import type { Eligibility } from "../../src/subscriptions/eligibility.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";
import { createMemoryLog } from "../support/http.ts";

const teams = definition({ name: "teams", fields: [] });
const references = { resource: "teams", field: "id", as: "team", onDelete: "cascade" } as const;
const members = definition({
  name: "members",
  fields: [field("team_id", "Int", { references }), field("who", "Int")],
});
const reports = definition({
  name: "reports",
  fields: [field("team_id", "Int", { references }), field("lead_id", "Int")],
  access: {
    ...ownersOnly,
    read: {
      kind: "filter",
      where: { OR: [{ lead_id: "$user.id" }, { team: { members: { some: { who: "$user.id" } } } }] },
    },
  },
});
type Pair = Parameters<Eligibility["judge"]>[0][number];

/** Each look-up for the team 2 reads its 200,000 members. */
describe("judgeInTime", () => {
  const core = coreOfSuite();
  /** Adds events of a team, to be judged for a user. */
  async function pairsOf(user: number, count: number, teamId: number): Promise<readonly Pair[]> {
    const rows = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'reports', 'on_create', n::text, $1 FROM generate_series(1, $2) AS n RETURNING id::text`,
      [JSON.stringify({ id: 1, team_id: teamId, lead_id: 9 }), count],
    );
    const caller: Caller = { id: user, name: "", email: "", isAdmin: false, claims: {} };
    return rows.map(({ id }) => ({ event: { id, resource: "reports", owner_id: null }, user: caller }));
  }

  before(async () => {
    await core.sql("CREATE TABLE teams (id int PRIMARY KEY)");
    await core.sql("CREATE TABLE members (id serial PRIMARY KEY, team_id int, who int)");
    await core.sql("CREATE INDEX ON members (team_id)");
    await core.sql("CREATE TABLE reports (id int PRIMARY KEY, team_id int, lead_id int)");
    await core.sql("INSERT INTO teams VALUES (1), (2)");
    await core.sql("INSERT INTO members (team_id, who) SELECT 2, 5 FROM generate_series(1, 200000)");
    await core.sql("INSERT INTO members (team_id, who) VALUES (1, 7)");
  });

  it("judges others while events of one user take too long, and some of that user's", async () => {
    const { log, lines } = createMemoryLog();
    const quickSql = createSql({ pool: core.database.pool, isEmbedded: false, timeLimitMs: 500 });
    const eligibility = eligibilityOf(definitionsOf(teams, members, reports), {
      sql: core.sql,
      quickSql,
      log,
    });
    const slow = await pairsOf(8, 320, 2);
    const own = await pairsOf(7, 2, 1);
    const more = await pairsOf(7, 40, 1);

    const together = await eligibility.judge([...slow, ...own]);
    const again = await eligibility.judge([...more, ...slow]);

    expect(together.slice(-2)).to.deep.equal([true, true]);
    expect(again.slice(0, 40)).to.deep.equal(more.map(() => true));
    expect([again[40], again.at(-1)]).to.deep.equal([false, undefined]);
    expect(lines).to.deep.equal([]);
  });
});
