import { expect } from "chai";
import type { Caller } from "../../src/kit/caller.ts";
import type { Sql } from "../../src/db/sql.ts";
import type { AccessRule } from "../../src/mapping/definition.ts";
import { definition, definitionsOf, field, ownersOnly } from "../support/definitions.ts";
import { coreOfSuite } from "../support/core-database.ts";
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
        field("lead_id", "Int"),
        field("reviewers", "Int", { isList: true }),
      ],
      isAdmin: { kind: "nobody" },
      access: { ...ownersOnly, read },
    }),
  );

const filter = (where: Readonly<Record<string, unknown>>): AccessRule => ({ kind: "filter", where });
const ada: Caller = { id: 7, name: "Ada", email: "ada@example.com", isAdmin: false, claims: {} };
const bob: Caller = { id: 8, name: "Bob", email: "bob@example.com", isAdmin: true, claims: {} };

type Places = readonly number[];
const cases: readonly (readonly [string, Readonly<Record<string, unknown>>, Places, Places])[] = [
  ["the user's id through a relation", { team: { members: { some: { who: "$user.id" } } } }, [0, 2], [1]],
  ["the user's id in a number", { lead_id: "$user.id" }, [0], [1]],
  ["the user's id in a list", { reviewers: { has: "$user.id" } }, [1], [1, 2]],
  ["the user's address", { email: "$user.email" }, [0], [1]],
  ["values of the record", { amount: { gt: 15 }, state: { not: "secret" } }, [1], [1]],
  ["the user's values in other types", { OR: [{ lead_id: "$user.email" }, { state: "$user.id" }] }, [], []],
  ["a negation", { NOT: { team: { members: { some: { who: "$user.id" } } } } }, [1], [0, 2]],
  ["a comparison that is no equality", { lead_id: { lt: "$user.id" } }, [2], [0, 2]],
  ["a claim, which nobody has here", { OR: [{ email: "$user.claims.mail" }, { state: "secret" }] }, [2], [2]],
  ["a claim that is negated", { NOT: { email: "$user.claims.mail" } }, [], []],
  ["a claim that is negated twice", { NOT: { email: { notIn: "$user.claims.mails" } } }, [], []],
  ["a claim of every related record", { team: { members: { every: { who: "$user.claims.who" } } } }, [], []],
  ["a claim of no related record", { NOT: { team: { label: "$user.claims.label" } } }, [], []],
  ["a claim of another related record", { team: { isNot: { label: "$user.claims.label" } } }, [], []],
  ["a list with the address in it", { email: { in: ["$user.email", "nobody@example.com"] } }, [0, 2], [1, 2]],
  [
    "ways that are open to different users",
    {
      team: { OR: [{ label: "blue" }, { members: { some: { who: "$user.id" } } }] },
      OR: [{ state: "open" }, { NOT: { lead_id: "$user.id" } }],
    },
    [0, 1, 2],
    [1],
  ],
  [
    "two conditions that both ask who",
    { lead_id: "$user.id", team: { members: { some: { who: "$user.id" } } } },
    [0],
    [1],
  ],
];

const asEvents = (some: readonly string[]): readonly { id: string; resource: string; owner_id: null }[] =>
  some.map((id) => ({ id, resource: "reports", owner_id: null }));

/**
 * Ada is a member of the first team, Bob of the second. Cleo is disabled, and no test asks for her.
 */
describe("createEligibility, by a filter", () => {
  const core = coreOfSuite();
  const ids: string[] = [];
  const addEvent = async (snapshot: object): Promise<string> => {
    const [row] = await core.sql<{ readonly id: string }>(
      "INSERT INTO svc.events (resource, trigger, record_id, snapshot) VALUES ('reports', 'on_delete', '1', $1) RETURNING id::text",
      [JSON.stringify(snapshot)],
    );
    return row?.id ?? "";
  };
  const subscribe = (text: string): Promise<unknown> =>
    core.sql(
      `INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint, is_active) ${text}`,
    );

  before(async () => {
    await core.sql("CREATE TABLE teams (id int PRIMARY KEY, label text)");
    await core.sql("CREATE TABLE members (id serial PRIMARY KEY, team_id int, who text)");
    await core.sql("CREATE INDEX ON members (team_id)");
    await core.sql(`CREATE TABLE team_reports (id int PRIMARY KEY, team int, amount numeric(12, 2), state text,
      email text, lead_id int, reviewers int[])`);
    await core.sql("INSERT INTO teams VALUES (1, 'red'), (2, 'blue')");
    await core.sql(
      "INSERT INTO members (team_id, who) VALUES (1, '7'), (1, '9'), (1, 'x'), (2, '8'), (2, '99999999999')",
    );
    await core.sql(`INSERT INTO svc.users (id, name, email, is_admin, disabled_at) VALUES
      (7, 'Ada', 'ada@example.com', false, NULL), (8, 'Bob', 'bob@example.com', true, NULL), (9, 'Cleo', 'cleo@example.com', true, now() - interval '2 hours')`);
    await subscribe(
      `SELECT id, 'http://localhost', 'reports', '{on_delete}', '', 'abcd', true FROM svc.users`,
    );
    // None of these gets an event: inactive, to another trigger, of another resource.
    await subscribe(`SELECT 7, 'http://localhost', 'others', '{on_delete}', '', 'abcd', true`);
    // The table is empty: the record of an event may have been deleted.
    for (const [team, amount, state, email, lead, reviewers] of [
      [1, "10.50", "open", "ada@example.com", 7, [9]],
      [2, "20", "open", "bob@example.com", 8, [7, 8]],
      [1, "99.99", "secret", "nobody@example.com", 5, [8]],
    ])
      ids.push(await addEvent({ id: 1, team_id: team, amount, state, email, lead_id: lead, reviewers }));
  });

  const casesAmong = (crowd: string, some: typeof cases): void => {
    for (const [what, where, ofAda, ofBob] of some) {
      it(`decides by ${what}, ${crowd}`, async () => {
        const eligibility = eligibilityOf(resourceWith(filter(where)), { sql: core.sql });
        const events = asEvents(ids);

        const { ofAll, ofEach } = (await eligibility.readerSelectorOf("reports", events)).choose([ada, bob]);
        const judged = await eligibility.judge(
          [ada, bob].flatMap((user) => events.map((event) => ({ event, user }))),
        );

        const placesOf = (user: Caller): readonly number[] =>
          ofEach.flatMap((readers, place) =>
            readers === "everybody" || readers.includes(user.id) ? [place] : [],
          );
        expect([...ofAll]).to.deep.equal([]);
        expect([placesOf(ada), placesOf(bob)]).to.deep.equal([ofAda, ofBob]);
        expect(judged).to.deep.equal(
          [ofAda, ofBob].flatMap((own) => ids.map((_, place) => own.includes(place))),
        );
      });
    }
  };
  casesAmong("among few subscriptions", cases);

  it("asks for no user who is disabled, or without an active subscription to the trigger", async () => {
    // A reviewer is disabled for two hours.
    const where = { OR: [{ lead_id: "$user.id" }, { reviewers: { has: "$user.id" } }] };
    const eligibility = eligibilityOf(resourceWith(filter(where)), { sql: core.sql });
    const readersNow = async (): Promise<unknown> =>
      (await eligibility.readerSelectorOf("reports", asEvents(ids))).groupsOf([0, 1]);

    const before = await readersNow();
    // A webhook that was switched off within the last hour counts as active.
    await core.sql(
      "UPDATE svc.subscriptions SET is_active = false, disabled_at = now() - interval '61 minutes' WHERE user_id = 7",
    );
    await core.sql("UPDATE svc.subscriptions SET events = '{on_create}' WHERE user_id = 8");
    const after = await readersNow();
    await core.sql("UPDATE svc.subscriptions SET is_active = true, events = '{on_delete}'");

    expect(before).to.deep.equal([7, 8].map((userId) => ({ kind: "owner", userId })));
    expect(after).to.deep.equal([]);
  });

  it("gives nobody an erased event, by a condition on null", async () => {
    const [none, erased] = [await addEvent({ id: 1 }), await addEvent({ id: 1 })];
    await core.sql("UPDATE svc.events SET snapshot = 'null' WHERE id = $1", [erased]);
    const eligibility = eligibilityOf(resourceWith(filter({ lead_id: null })), { sql: core.sql });
    const pairs = asEvents([none, erased]).map((event) => ({ event, user: ada }));

    expect(await eligibility.judge(pairs)).to.deep.equal([true, false]);
  });

  it("takes one statement for all events of a resource, and none for events that no subscriber can read", async () => {
    let statements = 0;
    const counting: Sql = (text, values) => {
      statements += 1;
      return core.sql(text, values);
    };
    const countFor = async (where: Readonly<Record<string, unknown>>): Promise<number> => {
      statements = 0;
      await eligibilityOf(resourceWith(filter(where)), { sql: counting }).readerSelectorOf(
        "reports",
        asEvents(ids),
      );
      return statements;
    };

    expect(await countFor({ email: "$user.email" })).to.equal(1);
    expect(await countFor({ OR: [{ lead_id: "$user.id" }, { state: "open" }] })).to.equal(1);
    expect(await countFor({ email: "$user.claims.mail" })).to.equal(0);
  });

  it("holds back only snapshots that do not fit the table, in few statements, and logs them in one line", async () => {
    const { log, lines } = createMemoryLog();
    let statements = 0;
    const counting: Sql = (text, values) => {
      statements += 1;
      return core.sql(text, values);
    };
    const wrong = { team_id: "red", amount: "1", state: "open", email: "ada@example.com" };
    const unfit = [await addEvent(wrong), await addEvent(wrong)];
    const right = await Promise.all(Array.from({ length: 60 }, () => addEvent({ ...wrong, team_id: 1 })));
    const given = asEvents([...unfit, ...right]);
    const eligibility = eligibilityOf(resourceWith(filter({ team_id: { gt: 0 } })), { sql: counting, log });

    const selector = await eligibility.readerSelectorOf("reports", given);

    const readers = [...unfit.map(() => []), ...right.map(() => "everybody")];
    expect(selector.choose([ada]).ofEach).to.deep.equal(readers);
    expect(statements).to.be.lessThan(20);
    expect(lines).to.have.lengthOf(1);
    expect(lines[0]).to.include({ msg: "access.read failed", resource: "reports", events: 2 });
    expect(lines[0]?.["eventIds"]).to.deep.equal(unfit);
    const judged = await eligibility.judge(given.map((event) => ({ event, user: ada })));
    expect(judged.map((isReader) => (isReader === true ? "everybody" : []))).to.deep.equal(readers);
  });

  it("defers a rule whose table is missing, and gives no event up", async () => {
    const { log } = createMemoryLog();
    const definitions = resourceWith(filter({ team: { label: "red" } }));
    const eligibility = eligibilityOf(definitions, { sql: core.sql, log });
    const [event] = asEvents(ids);
    await core.sql("ALTER TABLE teams RENAME TO moved_teams");

    try {
      expect(await eligibility.judge([{ event: event as never, user: ada }])).to.deep.equal([undefined]);
      let failure: unknown;
      await eligibility
        .readerSelectorOf("reports", asEvents(ids))
        .catch((error: unknown) => (failure = error));
      expect(failure).to.be.instanceOf(Error);
    } finally {
      await core.sql("ALTER TABLE moved_teams RENAME TO teams");
    }
  });

  it("defers a rule by a materialized view before its first REFRESH", async () => {
    const { log, lines } = createMemoryLog();
    const definitions = resourceWith(filter({ team: { label: "red" } }));
    const eligibility = eligibilityOf(definitions, { sql: core.sql, log });
    const [event] = asEvents(ids);
    await core.sql("ALTER TABLE teams RENAME TO moved_teams");
    await core.sql("CREATE MATERIALIZED VIEW teams AS SELECT * FROM moved_teams WITH NO DATA");

    try {
      expect(await eligibility.judge([{ event: event as never, user: ada }])).to.deep.equal([undefined]);
      expect(lines).to.have.lengthOf(1);
    } finally {
      await core.sql("DROP MATERIALIZED VIEW teams");
      await core.sql("ALTER TABLE moved_teams RENAME TO teams");
    }
  });

  it("shows the old row of an update to its owner, and to nobody where there was none", async () => {
    const orders = definition({
      name: "orders",
      fields: [],
      ownerColumn: "owner",
      isAdmin: { kind: "nobody" },
    });
    const eligibility = eligibilityOf(definitionsOf(orders), { sql: core.sql });
    const rows = await core.sql<{ readonly id: string }>(
      `INSERT INTO svc.events (resource, trigger, record_id, snapshot, previous, owner_id)
       SELECT 'orders', 'on_update', '1', '{"owner": 7}', previous, '7'
       FROM unnest(ARRAY['{"owner": 7}', '{"owner": 8}', '{"owner": null}', NULL]::jsonb[]) WITH ORDINALITY AS given (previous, place)
       ORDER BY place RETURNING id::text`,
    );
    const pairs = rows.map(({ id }) => ({ event: { id, resource: "orders", owner_id: "7" }, user: ada }));

    expect(await eligibility.judge(pairs)).to.deep.equal([true, true, true, true]);
    expect(await eligibility.judge(pairs, "previous")).to.deep.equal([true, false, false, false]);
  });

  for (const [what, code, times] of [
    ["asks a rule that met a lock no more for a while", "55P03", 1],
    ["asks a rule that took too long no more for a while", "57014", 1],
    ["asks a rule whose foreign server is away no more for a while", "08001", 1],
    ["asks a rule with another fault each time", "42P01", 2],
  ] as const) {
    it(what, async () => {
      let asked = 0;
      const sql: Sql = () => {
        asked += 1;
        return Promise.reject(Object.assign(new Error("fault"), { code }));
      };
      const { log } = createMemoryLog();
      const eligibility = eligibilityOf(resourceWith(filter({ lead_id: "$user.id" })), { sql, log });
      const pair = { event: { id: "1", resource: "reports", owner_id: null }, user: ada };

      for (let time = 0; time < 2; time++) expect(await eligibility.judge([pair])).to.deep.equal([undefined]);
      expect(asked).to.equal(times);
    });
  }

  for (const code of [undefined, "57P01", "53300", "08P01"])
    it(`reports that the database is away (${code ?? "no code"}), and blames no rule for it`, async () => {
      const { log, lines } = createMemoryLog();
      const definitions = resourceWith(filter({ lead_id: "$user.id" }));
      const fault = Object.assign(new Error("Connection terminated unexpectedly"), { code });
      const eligibility = eligibilityOf(definitions, { sql: () => Promise.reject(fault), log });
      const pair = { event: { id: "1", resource: "reports", owner_id: null }, user: ada };

      const failure = await eligibility.judge([pair]).catch((error: unknown) => error);

      expect(failure).to.equal(fault);
      expect(lines).to.deep.equal([]);
    });

  it("gives access to everybody, or admins only, by the other rules", async () => {
    const event = { id: ids[0] ?? "", resource: "reports", owner_id: "7" };
    const judgedBy = (read: AccessRule): Promise<readonly (boolean | undefined)[]> =>
      eligibilityOf(resourceWith(read)).judge([ada, bob].map((user) => ({ event, user })));

    expect(await judgedBy({ kind: "everyone" })).to.deep.equal([true, true]);
    expect(await judgedBy({ kind: "admin" })).to.deep.equal([false, false]);
    expect(await judgedBy({ kind: "owner" })).to.deep.equal([true, false]);
  });

  /** Runs the rule, and returns the blocks and the pairs of its statements. */
  async function costOf(
    where: Readonly<Record<string, unknown>>,
  ): Promise<{ readonly blocks: number; readonly rows: readonly number[]; readonly found: number }> {
    const client = await core.database.pool.connect();
    let blocks = 0;
    const rows: number[] = [];
    try {
      const measuring: Sql = async (text, values = []) => {
        type Explained = { "QUERY PLAN": readonly { Plan: Readonly<Record<string, number>> }[] };
        const explained = await client.query<Explained>(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [
          ...values,
        ]);
        const plan = explained.rows[0]?.["QUERY PLAN"][0]?.Plan;
        blocks += (plan?.["Shared Hit Blocks"] ?? NaN) + (plan?.["Shared Read Blocks"] ?? NaN);
        const answer = await client.query({ text, values: [...values] });
        rows.push(answer.rows.length);
        return answer.rows;
      };
      const eligibility = eligibilityOf(resourceWith(filter(where)), { sql: measuring });
      const selector = await eligibility.readerSelectorOf("reports", asEvents(ids));
      return { blocks, rows, found: selector.groupsOf([0, 1, 2]).length };
    } finally {
      client.release();
    }
  }

  describe("among 100,000 subscriptions of the resource", () => {
    before(async () => {
      // A replica's triggers are off: the audit trail would take longer than the rest.
      await core.database.pool.query(`
        BEGIN;
        SET LOCAL session_replication_role = replica;
        INSERT INTO svc.users (id, name, email) SELECT n, 'u', n || '@example.com' FROM generate_series(1001, 101000) AS n;
        INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
        SELECT n, 'http://localhost', 'reports', '{on_delete}', '', 'abcd' FROM generate_series(1001, 101000) AS n;
        INSERT INTO members (team_id, who) SELECT 3 + n % 10000, n FROM generate_series(1001, 101000) AS n;
        INSERT INTO teams SELECT n, 'other' FROM generate_series(3, 10002) AS n;
        COMMIT`);
    });

    // Rules that ask for each user take seconds; the last test is about them.
    casesAmong(
      "among 100,000",
      cases.filter(([what]) => !/negation|no equality|different users/.test(what)),
    );

    const asked = 20_000;
    for (const analyse of ["with statistics of few subscriptions", "with those of today"]) {
      it(`reads only the users to whom a record leads, ${analyse}`, async () => {
        await core.sql(analyse.endsWith("today") ? "ANALYZE" : "ANALYZE teams, members");
        for (const [where, pairs, users] of [
          [{ team: { members: { some: { who: "$user.id" } } } }, 3, 2],
          [{ lead_id: "$user.id" }, 2, 2],
          [{ email: "$user.email", NOT: { state: "closed" } }, 2, 2],
        ] as const) {
          const { blocks, rows, found } = await costOf(where);

          expect([rows, found], JSON.stringify(where)).to.deep.equal([[pairs], users]);
          // About ten look-ups for each event: all subscriptions are more than 1,500 blocks.
          expect(blocks, JSON.stringify(where)).to.be.lessThan(200);
        }
      });
    }

    it(`asks each user in statements of at most ${asked} pairs where the rule is a negation`, async () => {
      const { rows, found } = await costOf({
        NOT: { lead_id: { gte: "$user.id" } },
        state: "open",
        team_id: 1,
      });

      // Only the first event passes the rest of the rule: 6,666 users of three events a time.
      expect(rows).to.have.length(Math.ceil(100_002 / Math.floor(asked / 3)));
      expect(found).to.equal(100_001);
    });
  });
});
