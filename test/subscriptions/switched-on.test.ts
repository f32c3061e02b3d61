import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";
import { unfiltered } from "../support/work.ts";

const reports = definition({
  name: "reports",
  fields: [field("lead_id", "Int")],
  isAdmin: { kind: "nobody" },
  access: { ...ownersOnly, read: { kind: "filter", where: { lead_id: "$user.id" } } },
});

/** The readers of a filter are found by a statement before the one that finds their webhooks. */
describe("createSubscriberFinder, with a webhook that is off and a filter", () => {
  const core = coreOfSuite();
  let id = "";

  before(async () => {
    await core.sql("CREATE TABLE reports (id int PRIMARY KEY, lead_id int)");
    await core.sql("INSERT INTO svc.users (id, name, email) VALUES (7, 'Ada', 'ada@example.com')");
    await core.sql(`INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
      VALUES (7, 'http://localhost', 'reports', '{on_create}', '', 'abcd')`);
    const [event] = await core.sql<{ readonly id: string }>(`
      INSERT INTO svc.events (resource, trigger, record_id, snapshot)
      VALUES ('reports', 'on_create', '1', '{"id": 1, "lead_id": 7}') RETURNING id::text`);
    id = event?.id ?? "";
  });

  const switchOn = (): Promise<unknown> => core.sql("UPDATE svc.subscriptions SET is_active = true");

  /** Returns whether each webhook that gets the event is on. */
  async function findWith(sql: Sql): Promise<readonly boolean[]> {
    await core.sql("UPDATE svc.subscriptions SET is_active = false");
    const [found = []] = await createSubscriberFinder({
      sql: core.sql,
      eligibility: eligibilityOf(definitionsOf(reports), { sql }),
      filters: unfiltered,
      holdForMs: 604_800_000,
      now: () => 0,
    }).find([{ id, resource: "reports", event: "on_create", owner_id: null }]);
    return found.map(({ isActive }) => isActive);
  }

  it("holds no event while nothing tells who may read it, which may be another user's", async () => {
    await core.sql("UPDATE svc.subscriptions SET is_active = false");
    const finder = createSubscriberFinder({
      sql: core.sql,
      eligibility: {
        ...eligibilityOf(definitionsOf(reports), { sql: core.sql }),
        judge: async (pairs) => pairs.map(() => undefined),
      },
      filters: unfiltered,
      holdForMs: 604_800_000,
      now: () => 0,
    });

    const found = finder.find([{ id, resource: "reports", event: "on_create", owner_id: null }]);

    expect(await found.catch((error: unknown) => String(error))).to.match(/reports cannot be decided now/);
  });

  it("holds the event when it is switched on after the look for readers", async () => {
    const switchingOn: Sql = async (text, values) => {
      const rows = await core.sql(text, values);
      await switchOn();
      return rows as never;
    };

    expect(await findWith(core.sql)).to.deep.equal([false]);
    expect(await findWith(switchingOn)).to.deep.equal([false]);
  });

  it("gives it the event once when it is switched on before", async () => {
    const found = await findWith((text, values) => switchOn().then(async () => core.sql(text, values)));

    expect(found).to.deep.equal([true]);
  });
});
