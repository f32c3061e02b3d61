import { setTimeout as sleep } from "node:timers/promises";
import { expect } from "chai";
import { createEligibilityOf } from "../../src/app/eligibility.ts";
import { openDatabase } from "../../src/db/client.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { until } from "../support/wait.ts";

const teams = definition({ name: "teams", fields: [] });
const references = { resource: "teams", field: "id", as: "team", onDelete: "cascade" } as const;
const members = definition({
  name: "members",
  fields: [field("team_id", "Int", { references }), field("who", "Int")],
});
const reports = definition({
  name: "reports",
  fields: [field("team_id", "Int", { references })],
  access: {
    ...ownersOnly,
    read: { kind: "filter", where: { team: { members: { some: { who: "$user.id" } } } } },
  },
});

describe("createEligibilityOf", () => {
  const core = coreOfSuite();

  before(async () => {
    await core.sql("CREATE TABLE teams (id int PRIMARY KEY)");
    await core.sql("CREATE TABLE members (id serial PRIMARY KEY, team_id int, who int)");
    await core.sql("CREATE INDEX ON members (team_id)");
    await core.sql("CREATE INDEX ON members (who)");
    await core.sql("CREATE TABLE reports (id int PRIMARY KEY, team_id int)");
    await core.sql("INSERT INTO teams VALUES (1), (2)");
    await core.sql(
      "INSERT INTO members (team_id, who) SELECT 2, 1000 + n FROM generate_series(1, 50000) AS n",
    );
    await core.sql("INSERT INTO svc.users (id, name, email) SELECT n, n, n FROM generate_series(1, 30) AS n");
    await core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, is_active)
       SELECT id, 'http://localhost', 'reports', '{on_create}', '', 'abcd', true FROM svc.users`,
    );
    await core.sql("ANALYZE");
    await core.sql("INSERT INTO members (team_id, who) VALUES (1, 7)");
  });

  it("reads the members of a small team only, when nearly all members are of a large one", async () => {
    const [event] = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       VALUES ('reports', 'on_create', '1', '{"id": 1, "team_id": 1}') RETURNING id::text`,
    );
    const database = await openDatabase({ url: core.url, poolSize: 1, isEmbedded: false });
    try {
      const log = createLog({ level: "silent" });
      const definitions = definitionsOf(teams, members, reports);
      const eligibility = createEligibilityOf({ database, isEmbedded: false, log }, definitions);
      const readRows = async (): Promise<number> => {
        await database.pool.query("SELECT pg_stat_force_next_flush()");
        const text = `SELECT seq_tup_read + idx_tup_fetch AS count FROM pg_stat_user_tables WHERE relname = 'members'`;
        return Number((await database.pool.query<{ count: string }>(text)).rows[0]?.count);
      };
      const before = await readRows();

      const selector = await eligibility.readerSelectorOf("reports", [
        { id: event?.id ?? "", resource: "reports", owner_id: null },
      ]);

      expect(selector.groupsOf([0])).to.deep.equal([{ kind: "flag" }, { kind: "owner", userId: 7 }]);
      expect((await readRows()) - before).to.be.within(1, 10);
    } finally {
      await database.close();
    }
  });

  it("leaves connections to other statements while several users wait for a lock of a rule", async () => {
    const database = await openDatabase({ url: core.url, poolSize: 2, isEmbedded: false });
    const locking = await core.database.pool.connect();
    const connect = (): Promise<unknown> => database.pool.query("SELECT pg_sleep(0.05)");
    try {
      await Promise.all([connect(), connect()]);
      await locking.query("BEGIN; LOCK TABLE members IN ACCESS EXCLUSIVE MODE");
      const log = createLog({ level: "silent" });
      const definitions = definitionsOf(teams, members, reports);
      const eligibility = createEligibilityOf({ database, isEmbedded: false, log }, definitions, {
        atOnce: 1,
      });
      let judged = 0;
      const verdicts = [1, 2, 3].map(async (id) => {
        const user = { id, name: "", email: "", isAdmin: false, claims: {} };
        const event = { id: "1", resource: "reports", owner_id: null };
        const [verdict] = await eligibility.judge([{ event, user }]);
        judged += 1;
        return verdict;
      });

      const isWaiting = async (): Promise<boolean> =>
        (await core.sql("SELECT FROM pg_locks WHERE NOT granted AND relation = 'members'::regclass")).length >
        0;
      await until(isWaiting, { what: "a statement that waits" });
      await sleep(50);
      await database.pool.query("SELECT 1");

      expect(judged).to.equal(0);
      await locking.query("ROLLBACK");
      expect(await Promise.all(verdicts)).to.deep.equal([false, false, false]);
    } finally {
      locking.release();
      await database.close();
    }
  });
});
