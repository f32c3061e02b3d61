import { expect } from "chai";
import type { Caller } from "../../src/kit/caller.ts";
import type { AccessRule } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { eligibilityOf } from "../support/eligibility.ts";
import { createMemoryLog } from "../support/http.ts";

const reference = { resource: "teams", field: "id", as: "team", onDelete: "cascade" } as const;

const teams = definition({ name: "teams", fields: [field("label", "String")] });
const members = definition({
  name: "members",
  fields: [field("team_id", "Int", { references: reference }), field("who", "String")],
});

const resourceWith = (read: AccessRule): ReturnType<typeof definitionsOf> =>
  definitionsOf(
    teams,
    members,
    definition({
      name: "reports",
      table: "team_reports",
      fields: [
        field("team_id", "Int", { column: "team", references: reference }),
        field("amount", "Decimal", { precision: 12, scale: 2 }),
        field("state", "Enum", { values: ["open", "secret"] }),
        field("email", "String"),
      ],
      isAdmin: { kind: "nobody" },
      access: { ...ownersOnly, read },
    }),
  );

const filter = (where: Readonly<Record<string, unknown>>): AccessRule => ({ kind: "filter", where });
const ada: Caller = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };
const bob: Caller = { id: 8, name: "Bob", email: "bob@example.com", isAdmin: true, claims: {} };

/** Ada is a member of the first team, Bob of the second. */
describe("createEligibility, by a filter", () => {
  let core: CoreDatabase;
  const ids: string[] = [];

  before(async () => {
    core = await openCoreDatabase();
    await core.sql("CREATE TABLE teams (id int PRIMARY KEY, label text)");
    await core.sql("CREATE TABLE members (id serial PRIMARY KEY, team_id int, who text)");
    await core.sql(
      "CREATE TABLE team_reports (id int PRIMARY KEY, team int, amount numeric(12, 2), state text, email text)",
    );
    await core.sql("INSERT INTO teams VALUES (1, 'red'), (2, 'blue')");
    await core.sql("INSERT INTO members (team_id, who) VALUES (1, '7'), (2, '8')");
    // The table is empty: what an event is about may be gone.
    for (const [team, amount, state, email] of [
      [1, "10.50", "open", "ada@example.com"],
      [2, "20", "open", "bob@example.com"],
      [1, "99.99", "secret", "nobody@example.com"],
    ]) {
      const snapshot = JSON.stringify({ id: 1, team_id: team, amount, state, email });
      const [row] = await core.sql<{ readonly id: string }>(
        "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('reports', 'on_delete', '1', $1) RETURNING id::text",
        [snapshot],
      );
      ids.push(row?.id ?? "");
    }
  });
  after(() => core.close());

  for (const [what, where, ofAda, ofBob] of [
    ["the user's id through a relation", { team: { members: { some: { who: "$user.id" } } } }, [0, 2], [1]],
    ["the user's address", { email: "$user.email" }, [0], [1]],
    ["values of the record", { amount: { gt: 15 }, state: { not: "secret" } }, [1], [1]],
    ["a negation", { NOT: { team: { members: { some: { who: "$user.id" } } } } }, [1], [0, 2]],
    [
      "a claim, which nobody has here",
      { OR: [{ email: "$user.claims.mail" }, { state: "secret" }] },
      [2],
      [2],
    ],
    ["a claim that is negated", { NOT: { email: "$user.claims.mail" } }, [], []],
    [
      "a list with the address in it",
      { email: { in: ["$user.email", "nobody@example.com"] } },
      [0, 2],
      [1, 2],
    ],
  ] as const) {
    it(`decides by ${what}`, async () => {
      const definitions = resourceWith(filter(where));
      const eligibility = eligibilityOf(definitions, { sql: core.sql });
      const events = ids.map((id) => ({ id, resource: "reports", owner_id: null }));

      const { ofAll, ofEach } = await eligibility.readersOf({
        resource: "reports",
        events,
        users: [ada, bob],
      });
      const judged = await eligibility.judge(
        [ada, bob].flatMap((user) => events.map((event) => ({ event, user }))),
      );

      const placesOf = (user: Caller): readonly number[] =>
        ofEach.flatMap((readers, place) => (readers.includes(user.id) ? [place] : []));
      expect([...ofAll]).to.deep.equal([]);
      expect([placesOf(ada), placesOf(bob)]).to.deep.equal([ofAda, ofBob]);
      expect(judged).to.deep.equal(
        [ofAda, ofBob].flatMap((own) => ids.map((_, place) => (own as readonly number[]).includes(place))),
      );
    });
  }

  it("takes one statement for all events and users of a resource", async () => {
    let statements = 0;
    const definitions = resourceWith(filter({ email: "$user.email" }));
    const eligibility = eligibilityOf(definitions, {
      sql: (text, values) => {
        statements += 1;
        return core.sql(text, values);
      },
    });
    const events = ids.map((id) => ({ id, resource: "reports", owner_id: null }));

    await eligibility.readersOf({ resource: "reports", events, users: [ada, bob] });

    expect(statements).to.equal(1);
  });

  it("asks for at most 20,000 pairs of an event and a user at a time", async () => {
    const sizes: number[] = [];
    const eligibility = eligibilityOf(resourceWith(filter({ email: "$user.email" })), {
      sql: (text, values = []) => {
        sizes.push((values[0] as readonly unknown[]).length);
        return core.sql(text, values);
      },
    });
    const crowd = Array.from({ length: 15_000 }, (_, index) => ({
      ...bob,
      id: 1000 + index,
      email: `${index}@x`,
    }));
    const events = ids.map((id) => ({ id, resource: "reports", owner_id: null }));

    const { ofEach } = await eligibility.readersOf({ resource: "reports", events, users: [...crowd, ada] });

    expect(sizes).to.deep.equal([15_001, 15_001, 15_001]);
    expect(ofEach).to.deep.equal([[7], [], []]);
  });

  it("holds a snapshot that does not fit the table back alone, and logs it", async () => {
    const { log, lines } = createMemoryLog();
    const [row] = await core.sql<{ readonly id: string }>(
      "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('reports', 'on_create', '1', $1) RETURNING id::text",
      [JSON.stringify({ team_id: "red", amount: "1", state: "open", email: "ada@example.com" })],
    );
    const definitions = resourceWith(filter({ team_id: { gt: 0 } }));
    const eligibility = eligibilityOf(definitions, { sql: core.sql, log });
    const events = [...ids, row?.id ?? ""].map((id) => ({ id, resource: "reports", owner_id: null }));

    const { ofEach } = await eligibility.readersOf({ resource: "reports", events, users: [ada] });

    expect(ofEach).to.deep.equal([[7], [7], [7], []]);
    expect(lines.map(({ msg }) => msg)).to.deep.equal(["access.read failed"]);
  });

  it("lets everybody, or admins only, in by the other rules", async () => {
    const event = { id: ids[0] ?? "", resource: "reports", owner_id: "7" };
    const judgedBy = (read: AccessRule): Promise<readonly boolean[]> =>
      eligibilityOf(resourceWith(read)).judge([ada, bob].map((user) => ({ event, user })));

    expect(await judgedBy({ kind: "everyone" })).to.deep.equal([true, true]);
    expect(await judgedBy({ kind: "admin" })).to.deep.equal([false, false]);
    expect(await judgedBy({ kind: "owner" })).to.deep.equal([true, false]);
  });
});
