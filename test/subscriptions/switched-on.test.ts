import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import type { Definition } from "../../src/mapping/definition.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";
import { unfiltered } from "../support/work.ts";

const reportsOf = (where: Readonly<Record<string, unknown>>): Definition =>
  definition({
    name: "reports",
    fields: [field("lead_id", "Int"), field("deputy_id", "Int")],
    isAdmin: { kind: "nobody" },
    access: { ...ownersOnly, read: { kind: "filter", where } },
  });
const reports = reportsOf({ lead_id: "$user.id" });

/** One statement finds the readers of a filter, and a later one their webhooks. */
describe("createSubscriberFinder, with a webhook that is off and a filter", () => {
  const core = coreOfSuite();
  let id = "";

  before(async () => {
    await core.sql("CREATE TABLE reports (id int PRIMARY KEY, lead_id int, deputy_id int)");
    await core.sql(
      "INSERT INTO svc.users (id, name, email) VALUES (7, 'Ada', 'ada@example.com'), (8, 'Bob', 'bob@example.com')",
    );
    await core.sql(`INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
      VALUES (7, 'http://localhost', 'reports', '{on_create}', '', 'abcd')`);
    const [event] = await core.sql<{ readonly id: string }>(`
      INSERT INTO svc.events (resource, trigger, record_id, snapshot)
      VALUES ('reports', 'on_create', '1', '{"id": 1, "lead_id": 7, "deputy_id": 5}') RETURNING id::text`);
    id = event?.id ?? "";
  });

  const switchOn = (): Promise<unknown> => core.sql("UPDATE svc.subscriptions SET is_active = true");

  /** Returns whether each webhook that gets the event is on. */
  async function findWith(
    sql: Sql,
    { isOn = false, resource = reports }: { readonly isOn?: boolean; readonly resource?: Definition } = {},
  ): Promise<readonly boolean[]> {
    // A webhook that was switched off within the last hour counts as on in the query for readers.
    await core.sql("UPDATE svc.subscriptions SET is_active = $1, disabled_at = now() - interval '2 hours'", [
      isOn,
    ]);
    const [found = []] = await createSubscriberFinder({
      sql: core.sql,
      eligibility: eligibilityOf(definitionsOf(resource), { sql }),
      filters: unfiltered,
      holdForMs: 604_800_000,
      now: () => 0,
    }).find([{ id, resource: "reports", event: "on_create", owner_id: null }]);
    return found.map(({ isActive }) => isActive);
  }

  it("holds no event while its readers are unknown, since it may be another user's", async () => {
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

  it("holds the event when it is switched on after the readers were found", async () => {
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

  for (const [what, off, on] of [
    [
      "the webhook",
      "UPDATE svc.subscriptions SET is_active = false",
      "UPDATE svc.subscriptions SET is_active = true",
    ],
    ["its user", "UPDATE svc.users SET disabled_at = now()", "UPDATE svc.users SET disabled_at = NULL"],
  ] as const)
    for (const where of [{ lead_id: "$user.id" }, { NOT: { deputy_id: "$user.id" } }])
      for (const others of [0, 30])
        it(`gives it the event when ${what} is off only while readers are found, by ${JSON.stringify(where)}, beside ${others} others`, async () => {
          await core.sql(
            `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
             SELECT 8, 'http://localhost', 'reports', '{on_delete}', '', 'abcd' FROM generate_series(1, $1)`,
            [others],
          );
          const blinking: Sql = async (text, values) => {
            await core.sql(off);
            const rows = await core.sql(text, values);
            await core.sql(on);
            return rows as never;
          };

          const found = await findWith(blinking, { isOn: true, resource: reportsOf(where) });

          expect(found).to.deep.equal([true]);
          await core.sql("DELETE FROM svc.subscriptions WHERE user_id = 8");
        });
});
