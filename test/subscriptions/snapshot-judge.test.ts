import { expect } from "chai";
import type { Sql } from "../../src/db/sql.ts";
import { makeCaller } from "../support/callers.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { definition, definitionsOf, field, keyField, ownersOnly } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

const reports = definition({
  name: "reports",
  fields: [keyField(), field("team", "Int"), field("lead", "Int")],
  isAdmin: { kind: "nobody" },
  access: { ...ownersOnly, read: { kind: "filter", where: { team: { gt: 5 }, lead: "$user.id" } } },
});
const user = makeCaller({ id: 7, name: "Ada", email: "ada@example.com", isAdmin: false });

describe("judgeSnapshots", () => {
  const core = coreOfSuite();

  before(async () => {
    await core.sql("CREATE TABLE reports (id int PRIMARY KEY, team int, lead int)");
  });

  it("reads no event of another resource, whose field of the same name may have another type", async () => {
    await core.sql(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'others', 'on_create', n, '{"id": 1, "team": "red"}' FROM generate_series(1, 100) AS n`,
    );
    const made = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot)
       SELECT 'reports', 'on_create', n, '{"id": 1, "team": 7, "lead": 7}' FROM generate_series(1, 400) AS n RETURNING id::text`,
    );
    const pairs = made.map(({ id }) => ({ event: { id, resource: "reports", owner_id: null }, user }));

    let statements = 0;
    const counting: Sql = (text, values) => {
      statements += 1;
      return core.sql(text, values);
    };

    const verdicts = await eligibilityOf(definitionsOf(reports), { sql: counting }).judge(pairs);

    expect(verdicts).to.deep.equal(pairs.map(() => true));
    // A statement that fails is sent again for fewer pairs.
    expect(statements).to.equal(1);
  });

  it("gives nobody an erased event, by no part of an OR either", async () => {
    const [event] = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('reports', 'on_create', '1', 'null') RETURNING id::text`,
    );
    const read = { kind: "filter", where: { OR: [{ lead: "$user.id" }, { team: null }] } } as const;
    const definitions = definitionsOf({ ...reports, access: { ...reports.access, read } });
    const pair = { event: { id: event?.id ?? "", resource: "reports", owner_id: null }, user };

    expect(await eligibilityOf(definitions, { sql: core.sql }).judge([pair])).to.deep.equal([false]);
  });

  describe("on a table of another program, with a domain that refuses NULL", () => {
    // More than the arguments that a function may have.
    const names = ["address", ...Array.from({ length: 60 }, (_, index) => `text_${index}`)];
    const notes = definition({
      name: "notes",
      isManaged: false,
      fields: [keyField(), field("lead", "Int"), ...names.map((name) => field(name, "String"))],
      isAdmin: { kind: "flag" },
      access: { ...ownersOnly, read: { kind: "filter", where: { lead: "$user.id" } } },
    });
    const admin = makeCaller({ id: 8, name: "Bob", email: "bob@example.com", isAdmin: true });
    const judge = async (snapshot: object): Promise<readonly (boolean | undefined)[]> => {
      const [made] = await core.sql<{ readonly id: string }>(
        "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('notes', 'on_create', '1', $1) RETURNING id::text",
        [JSON.stringify(snapshot)],
      );
      const event = { id: made?.id ?? "", resource: "notes", owner_id: null };
      const eligibility = eligibilityOf(definitionsOf(notes), { sql: core.sql });
      return eligibility.judge([user, admin].map((one) => ({ event, user: one })));
    };
    before(async () => {
      await core.sql("CREATE DOMAIN address AS text NOT NULL CHECK (VALUE ~ '@')");
      const columns = names.map((name) => `${name} ${name === "address" ? "address" : "text"}`);
      await core.sql(`CREATE TABLE notes (id int PRIMARY KEY, lead int, ${columns.join(", ")})`);
    });

    it("judges by a rule on other columns", async () => {
      expect(await judge({ id: 1, lead: 7, address: "a@b" })).to.deep.equal([true, true]);
      expect(await judge({ id: 1, lead: 9, address: "a@b" })).to.deep.equal([false, true]);
    });

    it("judges an event from before the column had a field by the same rule", async () => {
      expect(await judge({ id: 1, lead: 7 })).to.deep.equal([true, true]);
      expect(await judge({ id: 1, lead: 9 })).to.deep.equal([false, true]);
    });
  });
});
