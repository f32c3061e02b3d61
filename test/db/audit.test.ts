import { expect } from "chai";
import { Client } from "pg";
import { actorKinds, auditActions, recordMigration, subjectKinds } from "../../src/db/audit.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf, type AuditEntry } from "../support/audit.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createWork, type Work } from "../support/work.ts";

const byOperator = { actor_kind: "operator", actor_name: "ada", actor_id: null, source: "ops-1" };
describe("svc.audit", () => {
  const core = coreOfSuite();
  let work: Work;

  before(async () => {
    work = createWork(core.prisma);
  });

  const entriesOf = (act: () => Promise<unknown>): Promise<readonly AuditEntry[]> => auditOf(core.sql, act);
  const actionsOf = async (act: () => Promise<unknown>): Promise<readonly string[]> =>
    (await entriesOf(act)).map(({ action }) => action);

  for (const [column, words] of [
    ["action", auditActions],
    ["actor_kind", actorKinds],
    ["subject_kind", subjectKinds],
  ] as const) {
    it(`has the words for ${column} that the code knows`, async () => {
      const [row] = await core.sql<{ text: string }>(
        "SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = $1",
        [`audit_${column}_check`],
      );

      expect([...(row?.text ?? "").matchAll(/'([^']+)'/g)].map(([, word]) => word)).to.deep.equal([...words]);
    });
  }

  it("has a decision about every column: recorded, or without information", async () => {
    // Changes of the encrypted ones show in their hint, their names and times.
    const encrypted = ["encrypted_secret", "encrypted_previous", "encrypted_headers"];
    const unrecorded = ["id", "created_at", "updated_at", "last_used_at", ...encrypted];
    const rows = await core.sql<{ table: string; columns: readonly string[]; triggers: string }>(`
      SELECT cls.relname AS table, array_agg(DISTINCT att.attname::text) AS columns,
        string_agg(DISTINCT pg_get_triggerdef(trg.oid), ';') AS triggers
      FROM pg_class AS cls
      JOIN pg_attribute AS att ON att.attrelid = cls.oid AND att.attnum > 0 AND NOT att.attisdropped
      JOIN pg_trigger AS trg ON trg.tgrelid = cls.oid AND trg.tgname = 'audit_change'
      WHERE cls.relnamespace = 'svc'::regnamespace
      GROUP BY 1 ORDER BY 1`);

    expect(rows.map(({ table }) => table)).to.deep.equal(["subscriptions", "tokens", "users"]);
    for (const { table, columns, triggers } of rows) {
      const [, watched = ""] = /UPDATE OF (.*?) ON/.exec(triggers) ?? [];
      const [, , recorded = ""] = /audit_change\('(\w+)', (.*?)\)/.exec(triggers) ?? [];
      const watchedColumns = watched.split(", ").toSorted();
      expect(recorded.replaceAll("'", "").split(", ").toSorted(), table).to.deep.equal(watchedColumns);
      // That of a subscription is the time of its reason.
      const silent = table === "subscriptions" ? [...unrecorded, "disabled_at"] : unrecorded;
      expect(columns.filter((column) => !silent.includes(column)).toSorted(), table).to.deep.equal(
        watchedColumns,
      );
    }
  });

  describe("of a webhook", () => {
    for (const [url, shown] of [
      ["https://a.example", "https://a.example"],
      ["http://a.example:80/p?q=1", "http://a.example:80"],
      ["https://user:pa@ss@a.example/x@y", "https://a.example"],
      ["https://user:pass@a.example\\@b.example", "https://a.example"],
      ["https://[2001:db8::1]:8080/x", "https://[2001:db8::1]:8080"],
      ["https://a.example?x@y", "https://a.example"],
      ["not a url: secret", ""],
      ["https:secret", ""],
    ] as const) {
      it(`shows ${shown === "" ? "nothing" : shown} of ${url}`, async () => {
        const [entry] = (await entriesOf(() => work.addSubscription({ url }))).slice(-1);

        expect(entry?.details.after.url).to.equal(shown);
      });
    }
  });

  describe("after a migration", () => {
    it("has its steps in one row, within limits, and nothing of one that had none", async () => {
      const client = new Client({ connectionString: core.url });
      await client.connect();
      try {
        const steps = Array.from({ length: 300 }, (_, n) => ({ title: `${n} ${"é\u{1F600}".repeat(400)}` }));

        const [entry, ...others] = await entriesOf(async () => {
          await recordMigration(client, [], actor);
          await client.query("BEGIN");
          await recordMigration(client, steps, actor);
          await client.query("COMMIT");
        });

        expect(others).to.deep.equal([]);
        expect(entry).to.include({ ...byOperator, action: "migration.applied" });
        expect(entry?.details.steps).to.equal(300);
        expect(entry?.details.titles).to.have.length(200);
        for (const title of entry?.details.titles ?? []) expect(title).to.have.lengthOf.at.most(500);
      } finally {
        await client.end();
      }
    });
  });

  describe("after SQL by hand", () => {
    let client: Client;

    beforeEach(async () => {
      await work.clear();
      client = new Client({ connectionString: core.url });
      await client.connect();
    });

    afterEach(() => client.end());

    it("names the role and the address", async () => {
      const { id } = await work.addSubscription();

      const [entry] = await entriesOf(() => client.query("UPDATE svc.subscriptions SET is_active = false"));

      expect(entry).to.include({
        action: "webhook.updated",
        actor_kind: "database",
        actor_name: new URL(core.url).username,
        subject_id: String(id),
      });
      expect(entry?.source).to.match(/^(127\.0\.0\.1|::1)$/);
    });

    it("records every row that is deleted with a user, and an emptied table", async () => {
      const { userId } = await work.addSubscription();
      await client.query("INSERT INTO svc.tokens (user_id, name, hash) VALUES ($1, 'one', 'x')", [userId]);

      const cascaded = await actionsOf(() => client.query("DELETE FROM svc.users WHERE id = $1", [userId]));
      const emptied = await entriesOf(() => client.query("TRUNCATE svc.users CASCADE"));

      expect(cascaded.toSorted()).to.deep.equal(["token.deleted", "user.deleted", "webhook.deleted"]);
      expect(emptied.map(({ action }) => action).toSorted()).to.deep.equal(cascaded.toSorted());
      for (const { details } of emptied) expect(details).to.deep.equal({ all: true });
    });

    it("records a replaced hash, without its value", async () => {
      const { id: userId } = await work.addUser();
      await client.query("INSERT INTO svc.tokens (user_id, name, hash) VALUES ($1, 'one', 'x')", [userId]);

      const [entry] = await entriesOf(() => client.query("UPDATE svc.tokens SET hash = 'y'"));

      expect(entry).to.deep.include({
        action: "token.updated",
        details: { before: { hash: "***" }, after: { hash: "***" } },
      });
    });

    it("has no row of a change that was rolled back, and no change without a row", async () => {
      const rolledBack = await entriesOf(async () => {
        await client.query(
          "BEGIN; INSERT INTO svc.users (name, email) VALUES ('Ada', 'ada@example.com'); ROLLBACK",
        );
      });
      // The row of the trail cannot be written, so the user is not created either.
      const refused = await client
        .query(
          `BEGIN; SET LOCAL svc.actor = '{"kind": "stranger"}'; INSERT INTO svc.users (name, email) VALUES ('Ada', 'ada@example.com'); COMMIT`,
        )
        .catch((error: { readonly constraint?: string }) => error.constraint);

      expect(rolledBack).to.deep.equal([]);
      expect(refused).to.equal("audit_actor_kind_check");
      await client.query("ROLLBACK");
      expect(await core.sql("SELECT FROM svc.users")).to.deep.equal([]);
    });

    it("forgets the actor at the end of the transaction", async () => {
      const users = createUserStore({ ...core, actor });
      for (let n = 0; n < 8; n++)
        await users.create({ name: "Ada", email: `${n}@example.com`, isAdmin: false });

      const entries = await entriesOf(() =>
        Promise.all(Array.from({ length: 8 }, () => core.sql("UPDATE svc.users SET name = name || 'x'"))),
      );

      expect(new Set(entries.map((entry) => entry.actor_kind))).to.deep.equal(new Set(["database"]));
    });

    it("only grows", async () => {
      await work.addUser();
      for (const statement of [
        "UPDATE svc.audit SET source = ''",
        "DELETE FROM svc.audit",
        "TRUNCATE svc.audit",
      ]) {
        const message = await client.query(statement).then(() => "done", String);
        expect(message, statement).to.match(/svc\.audit only grows/);
      }
    });

    it("is written for a role without rights on it", async () => {
      await client.query(`
        CREATE ROLE svc_test_support LOGIN PASSWORD 'x';
        GRANT USAGE ON SCHEMA svc TO svc_test_support;
        GRANT SELECT, UPDATE ON svc.users TO svc_test_support`);
      const url = new URL(core.url);
      url.username = "svc_test_support";
      url.password = "x";
      const support = new Client({ connectionString: url.href });
      await support.connect();
      try {
        const { id } = await work.addUser();

        const [entry] = await entriesOf(() => support.query("UPDATE svc.users SET is_admin = true"));

        expect(entry).to.include({ actor_name: "svc_test_support", subject_id: String(id) });
        expect(await support.query("SELECT FROM svc.audit").catch(String)).to.match(/permission denied/);
      } finally {
        await support.end();
        await client.query("DROP OWNED BY svc_test_support; DROP ROLE svc_test_support");
      }
    });
  });
});
