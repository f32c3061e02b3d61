import { expect } from "chai";
import { unfiltered } from "../support/work.ts";
import type { Sql } from "../../src/db/sql.ts";
import type { AdminRule, CodeModule } from "../../src/mapping/definition.ts";
import type { Eligibility } from "../../src/subscriptions/eligibility.ts";
import { createSubscriberFinder } from "../../src/subscriptions/find-subscribers.ts";
import type { MatchedEvent } from "../../src/subscriptions/match.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { definition, definitionsOf } from "../support/definitions.ts";
import { eligibilityOf } from "../support/eligibility.ts";

interface NewSubscription {
  readonly userId: number;
  readonly resource?: string;
  readonly events?: string[];
  readonly isActive?: boolean;
}

const nobody: AdminRule = { kind: "nobody" };

/**
 * Orders, notes and a resource with the name of operational events, whose admins the rule or the
 * code names.
 */
function eligibilityBy(rule: AdminRule, code: CodeModule = {}): Eligibility {
  const resources = ["orders", "notes", "service"].map((name) =>
    definition({
      name,
      fields: [],
      isAdmin: name === "orders" || rule.kind === "flag" ? rule : nobody,
      code: name === "orders" ? code : {},
    }),
  );
  return eligibilityOf(definitionsOf(...resources));
}

describe("createSubscriberFinder", () => {
  let core: CoreDatabase;
  let statements = 0;
  const ids = { ada: 0, ben: 0, admin: 0, gone: 0 };

  before(async () => {
    core = await openCoreDatabase();
    for (const name of Object.keys(ids) as (keyof typeof ids)[]) {
      const user = await core.prisma.user.create({
        data: {
          name,
          email: `${name}@Example.com`,
          isAdmin: name === "admin" || name === "gone",
          disabledAt: name === "gone" ? new Date() : null,
        },
      });
      ids[name] = user.id;
    }
  });

  beforeEach(async () => {
    await core.sql("DELETE FROM svc.subscriptions");
    statements = 0;
  });

  after(() => core.close());

  async function subscribe({
    userId,
    resource = "orders",
    events = ["on_create"],
    isActive = true,
  }: NewSubscription): Promise<number> {
    const { id } = await core.prisma.subscription.create({
      data: {
        userId,
        resource,
        events,
        isActive,
        url: `https://example.com/${userId}`,
        encryptedSecret: Buffer.from("sealed"),
        secretHint: "abcd",
      },
    });
    return id;
  }

  const counting: Sql = (text, values) => {
    statements += 1;
    return core.sql(text, values);
  };

  async function find(
    events: readonly MatchedEvent[],
    eligibility = eligibilityBy(nobody),
  ): Promise<readonly (readonly number[])[]> {
    const holdForMs = 604_800_000;
    const found = await createSubscriberFinder({
      sql: counting,
      eligibility,
      filters: unfiltered,
      holdForMs,
      now: () => 0,
    }).find(events);
    return found.map((group) => group.map(({ subscriptionId }) => subscriptionId));
  }

  const event = (overrides: Partial<MatchedEvent> = {}): MatchedEvent => ({
    id: "1",
    event: "on_create",
    resource: "orders",
    owner_id: String(ids.ada),
    ...overrides,
  });

  it("finds only the subscriptions of the owner", async () => {
    const first = await subscribe({ userId: ids.ada });
    const second = await subscribe({ userId: ids.ada });
    await subscribe({ userId: ids.ben });
    await subscribe({ userId: ids.admin });

    expect(await find([event()])).to.deep.equal([[first, second]]);
  });

  it("returns the fields that an attempt needs", async () => {
    const subscriptionId = await subscribe({ userId: ids.ada });
    const finder = createSubscriberFinder({
      sql: core.sql,
      eligibility: eligibilityBy(nobody),
      filters: unfiltered,
      holdForMs: 604_800_000,
      now: () => 0,
    });

    expect(await finder.find([event()])).to.deep.equal([
      [
        {
          subscriptionId,
          url: `https://example.com/${ids.ada}`,
          signing: {
            encryptedSecret: Buffer.from("sealed"),
            encryptedPrevious: null,
            encryptedHeaders: null,
          },
          rateLimit: null,
          filter: null,
          isActive: true,
          user: { id: ids.ada, name: "ada", email: "ada@Example.com", isAdmin: false, claims: {} },
          resource: "orders",
          events: ["on_create"],
        },
      ],
    ]);
  });

  it("leaves out other resources and other triggers", async () => {
    await subscribe({ userId: ids.ada, resource: "notes" });
    await subscribe({ userId: ids.ada, events: ["on_update", "on_delete"] });

    expect(await find([event()])).to.deep.equal([[]]);
  });

  it("also finds recently switched-off subscriptions, by the same rule, with the same statement", async () => {
    const off = await subscribe({ userId: ids.ada, isActive: false });
    const every = await subscribe({ userId: ids.ada, isActive: false, resource: "*" });
    await subscribe({ userId: ids.ada, isActive: false, events: ["on_update"] });
    await subscribe({ userId: ids.ben, isActive: false });
    const long = await subscribe({ userId: ids.ada, isActive: false });
    await core.sql("UPDATE svc.subscriptions SET disabled_at = now() - interval '8 days' WHERE id = $1", [
      long,
    ]);
    const on = await subscribe({ userId: ids.ada });

    expect(await find([event(), event({ owner_id: null })])).to.deep.equal([[on, off, every], []]);
    expect(statements).to.equal(1);
  });

  it("finds those to every resource for a resource that is named service, and not for operational events", async () => {
    const every = await subscribe({ userId: ids.ada, resource: "*" });
    const off = await subscribe({ userId: ids.ada, resource: "*", isActive: false });
    const own = await subscribe({ userId: ids.ada, resource: "service" });
    const created = event({ resource: "service" });

    expect(await find([created, event({ ...created, event: "webhook.failing" })])).to.deep.equal([
      [every, own, off],
      [],
    ]);
  });

  it("finds a subscription once that is switched on or off during the read", async () => {
    for (const isActive of [true, false]) {
      const id = await subscribe({ userId: ids.ada, isActive });
      const other = await subscribe({ userId: ids.ada, isActive: false });
      const switching: Sql = async (text, values) => {
        const rows = await core.sql(text, values);
        await core.sql("UPDATE svc.subscriptions SET is_active = NOT is_active WHERE id = $1", [id]);
        return rows as never;
      };
      const finder = createSubscriberFinder({
        sql: switching,
        eligibility: eligibilityBy(nobody),
        filters: unfiltered,
        holdForMs: 604_800_000,
        now: () => 0,
      });

      const [found = []] = await finder.find([event()]);

      expect(found.map(({ subscriptionId }) => subscriptionId)).to.have.members([id, other]);
      await core.sql("DELETE FROM svc.subscriptions");
    }
  });

  it("finds those of recently disabled users, as off since the first cause", async () => {
    const active = await subscribe({ userId: ids.gone });
    const paused = await subscribe({ userId: ids.gone, isActive: false });
    const long = await subscribe({ userId: ids.gone, isActive: false });
    await core.sql("UPDATE svc.subscriptions SET disabled_at = now() - interval '8 days' WHERE id = $1", [
      long,
    ]);
    const found = (): ReturnType<typeof find> =>
      find([event({ owner_id: String(ids.gone) }), event()], eligibilityBy({ kind: "flag" }));

    expect(await found()).to.deep.equal([
      [active, paused],
      [active, paused],
    ]);
    expect(statements).to.equal(1);

    await core.sql("UPDATE svc.users SET disabled_at = now() - interval '8 days' WHERE id = $1", [ids.gone]);
    expect(await found()).to.deep.equal([[], []]);
    await core.sql("UPDATE svc.users SET disabled_at = now() WHERE id = $1", [ids.gone]);
  });

  it("answers a batch in its order with one statement", async () => {
    const created = await subscribe({ userId: ids.ada });
    const deleted = await subscribe({ userId: ids.ben, resource: "notes", events: ["on_delete"] });

    const found = await find([
      event({ resource: "notes", event: "on_delete", owner_id: String(ids.ben) }),
      event({ owner_id: "999999" }),
      event(),
      event(),
    ]);

    expect(found).to.deep.equal([[deleted], [], [created], [created]]);
    expect(statements).to.equal(1);
  });

  it("asks nothing for no events", async () => {
    expect(await find([])).to.deep.equal([]);
    expect(statements).to.equal(0);
    expect(await find([event({ owner_id: null })])).to.deep.equal([[]]);
    expect(statements).to.equal(1);
  });

  it("finds users with the admin flag, and an admin who is the owner once", async () => {
    const admins = await subscribe({ userId: ids.admin });
    await subscribe({ userId: ids.ben });

    expect(
      await find([event(), event({ owner_id: String(ids.admin) })], eligibilityBy({ kind: "flag" })),
    ).to.deep.equal([[admins], [admins]]);
  });

  it("finds admins by their address in any case, for their own resource only", async () => {
    const bens = await subscribe({ userId: ids.ben });
    await subscribe({ userId: ids.ben, resource: "notes" });
    await subscribe({ userId: ids.admin });

    const found = await find(
      [event(), event({ resource: "notes" })],
      eligibilityBy({ kind: "emails", emails: ["BEN@example.com"] }),
    );

    expect(found).to.deep.equal([[bens], []]);
  });

  it("leaves the decision to code where code decides", async () => {
    const bens = await subscribe({ userId: ids.ben });
    await subscribe({ userId: ids.admin });

    const found = await find([event()], eligibilityBy(nobody, { isAdmin: ({ name }) => name === "ben" }));

    expect(found).to.deep.equal([[bens]]);
  });

  for (const [what, ownerId] of [
    ["nobody", null],
    ["a UUID", "0190f1f0-0000-7000-8000-000000000000"],
    ["a number beyond every user", "99999999999999999999"],
    ["a number beyond 32 bits", "2147483648"],
  ] as const) {
    it(`finds only admins when the owner is ${what}`, async () => {
      await subscribe({ userId: ids.ada });
      const admins = await subscribe({ userId: ids.admin });

      expect(await find([event({ owner_id: ownerId })], eligibilityBy({ kind: "flag" }))).to.deep.equal([
        [admins],
      ]);
    });
  }

  describe("among 20,000 subscriptions of the resource", () => {
    const owners = 200;
    const blocksOfATable = 500;

    /**
     * Returns the number of blocks that the finder's statement reads for events of as many owners.
     */
    async function blocksTouched({
      admins,
      isPlannedEmpty,
      isAnalysed,
    }: {
      readonly admins: AdminRule;
      readonly isPlannedEmpty: boolean;
      readonly isAnalysed: boolean;
    }): Promise<{ readonly blocks: number; readonly found: number }> {
      const fresh = await openCoreDatabase();
      const client = await fresh.database.pool.connect();
      try {
        await client.query(
          "ALTER TABLE svc.users SET (autovacuum_enabled = off); ALTER TABLE svc.subscriptions SET (autovacuum_enabled = off); ANALYZE",
        );
        let blocks = 0;
        const measuring: Sql = async (text, values = []) => {
          type Explained = { "QUERY PLAN": readonly { Plan: Readonly<Record<string, number>> }[] };
          const { rows } = await client.query<Explained>(`EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) ${text}`, [
            ...values,
          ]);
          const plan = rows[0]?.["QUERY PLAN"][0]?.Plan;
          blocks = (plan?.["Shared Hit Blocks"] ?? NaN) + (plan?.["Shared Read Blocks"] ?? NaN);
          return (await client.query({ name: "find", text, values: [...values] })).rows;
        };
        const finder = createSubscriberFinder({
          sql: measuring,
          eligibility: eligibilityBy(admins),
          filters: unfiltered,
          holdForMs: 604_800_000,
          now: () => 0,
        });
        const events = Array.from({ length: owners }, (_, index) =>
          event({ owner_id: String(index * 7 + 1) }),
        );
        if (isPlannedEmpty) for (let turn = 0; turn < 10; turn++) await finder.find(events);
        // A replica's triggers are off: 40,000 rows of the audit trail would take longer than the
        // rest. On a connection of its own: the setting discards a session's plans.
        await fresh.database.pool.query(`
          BEGIN;
          SET LOCAL session_replication_role = replica;
          INSERT INTO svc.users (name, email, is_admin, disabled_at)
          SELECT 'u', n || '@Example.com', n % 10000 = 0, CASE WHEN n % 1000 = 1 THEN now() END FROM generate_series(1, 20000) AS n;
          INSERT INTO svc.subscriptions (user_id, url, resource, events, encrypted_secret, secret_hint)
          SELECT n, 'http://localhost', 'orders', '{on_create}', '', 'abcd' FROM generate_series(1, 20000) AS n;
          COMMIT`);
        if (isAnalysed) await client.query("ANALYZE");
        await finder.find(events);
        const found = await finder.find(events);
        return { blocks, found: found.flat().length };
      } finally {
        client.release();
        await fresh.close();
      }
    }

    const kinds: readonly (readonly [AdminRule, number])[] = [
      [{ kind: "nobody" }, owners],
      [{ kind: "flag" }, 3 * owners],
      [{ kind: "emails", emails: ["10000@example.com", "20000@example.com"] }, 3 * owners],
    ];
    for (const [admins, answers] of kinds) {
      for (const [when, isPlannedEmpty, isAnalysed] of [
        ["with statistics of today", false, true],
        ["with statistics of empty tables", false, false],
        ["planned on empty tables", true, false],
      ] as const) {
        it(`reads only the owners and the admins, ${when} (isAdmin: ${admins.kind})`, async () => {
          const { blocks, found } = await blocksTouched({ admins, isPlannedEmpty, isAnalysed });

          expect(found).to.equal(answers);
          // An index path and a row, three times for each: a read of all subscriptions for each
          // owner takes 100,000.
          expect(blocks).to.be.lessThan(owners * 12 + blocksOfATable);
        });
      }
    }
  });
});
