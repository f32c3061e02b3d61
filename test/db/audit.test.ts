import { randomBytes } from "node:crypto";
import { expect } from "chai";
import { Client } from "pg";
import type { Actor } from "../../src/actor.ts";
import { auditActions } from "../../src/db/audit.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { reencryptSecrets, replaceUnreadable } from "../../src/subscriptions/stored-secrets.ts";
import type { NewSubscription } from "../../src/subscriptions/subscription.ts";
import { createTokenProvider } from "../../src/users/provider.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf, type AuditEntry } from "../support/audit.ts";
import { openCoreDatabase, type CoreDatabase } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWork, secretBox, type Work } from "../support/work.ts";

const byOperator = { actor_kind: "operator", actor_name: "ada", actor_id: null, source: "ops-1" };
const byUser: Actor = { kind: "user", id: 7, tokenId: 3, source: "203.0.113.7", requestId: "r1" };

const subscription: NewSubscription = {
  url: "https://ada:pass@hooks.example.com:8443/services/T0/secret?key=secret#secret",
  resource: "notes",
  events: ["on_create"],
  isActive: true,
  description: "a secret, perhaps",
};

describe("svc.audit", () => {
  let core: CoreDatabase;
  let work: Work;

  before(async () => {
    core = await openCoreDatabase();
    work = createWork(core.database.prisma);
  });

  after(() => core.close());

  const entriesOf = (act: () => Promise<unknown>): Promise<readonly AuditEntry[]> => auditOf(core.sql, act);
  const actionsOf = async (act: () => Promise<unknown>): Promise<readonly string[]> =>
    (await entriesOf(act)).map(({ action }) => action);

  it("has the actions that the code knows", async () => {
    const [row] = await core.sql<{ text: string }>(
      "SELECT pg_get_constraintdef(oid) AS text FROM pg_constraint WHERE conname = 'audit_action_check'",
    );

    expect([...(row?.text ?? "").matchAll(/'([^']+)'/g)].map(([, action]) => action)).to.deep.equal([
      ...auditActions,
    ]);
  });

  it("has a decision about every column: recorded, or known to say nothing", async () => {
    const unrecorded = ["id", "created_at", "updated_at", "last_used_at", "encrypted_secret"];
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
      expect(columns.filter((column) => !unrecorded.includes(column)).toSorted(), table).to.deep.equal(
        watchedColumns,
      );
    }
  });

  describe("after the user store", () => {
    it("tells who made, disabled and enabled a user, and nothing of what changed nothing", async () => {
      const users = createUserStore({ prisma: core.database.prisma, actor });
      const person = { name: "Eve", email: "eve@example.com", isAdmin: true };

      const entries = await entriesOf(async () => {
        const answer = await users.create(person);
        const id = answer.kind === "created" ? answer.user.id : 0;
        expect(await users.create(person)).to.deep.equal({ kind: "email_taken" });
        for (const isDisabled of [true, true, false, false]) await users.setDisabled(id, isDisabled);
        await users.setDisabled(2_000_000_000, true);
      });

      expect(entries.map(({ action }) => action)).to.deep.equal([
        "user.created",
        "user.disabled",
        "user.enabled",
      ]);
      const [created, disabled, enabled] = entries;
      for (const entry of entries)
        expect(entry).to.include({ ...byOperator, subject_kind: "user", subject_id: created?.subject_id });
      expect(created?.details).to.deep.equal({
        after: { name: "Eve", email: "eve@example.com", is_admin: true, disabled_at: null },
      });
      expect(disabled?.details.before).to.deep.equal({ disabled_at: null });
      expect(disabled?.details.after.disabled_at).to.match(/^\d{4}-.*\+00:00$/);
      expect(enabled?.details.before).to.deep.equal(disabled?.details.after);
    });
  });

  describe("after the token provider", () => {
    it("tells who issued and revoked a token, and shows nothing of it", async () => {
      const { log } = createMemoryLog();
      const tokens = createTokenProvider({ prisma: core.database.prisma, sql: core.sql, log, actor });
      const { id: userId } = await work.addUser();
      let issued = { id: 0, token: "" };

      const entries = await entriesOf(async () => {
        issued = await tokens.issue({ userId, name: "laptop" });
        expect(await tokens.issue({ userId: 2_000_000_000, name: "nobody's" }).catch(String)).to.match(
          /no user/,
        );
        for (const _ of [1, 2]) await tokens.revoke(issued.id);
      });

      expect(entries.map(({ action }) => action)).to.deep.equal(["token.created", "token.revoked"]);
      for (const entry of entries)
        expect(entry).to.include({ ...byOperator, subject_kind: "token", subject_id: String(issued.id) });
      expect(entries[0]?.details.after).to.deep.equal({
        user_id: userId,
        name: "laptop",
        hash: "***",
        expires_at: null,
        revoked_at: null,
      });
      const [row] = await core.sql<{ hash: string }>(
        "SELECT encode(hash, 'hex') AS hash FROM svc.tokens WHERE id = $1",
        [issued.id],
      );
      for (const secret of [issued.token, row?.hash ?? ""])
        expect(JSON.stringify(entries)).not.to.include(secret);
    });

    it("is silent about the use of a token, which is noted all the same", async () => {
      const { log } = createMemoryLog();
      const tokens = createTokenProvider({ prisma: core.database.prisma, sql: core.sql, log, actor });
      const { id: userId } = await work.addUser();
      const { id, token } = await tokens.issue({ userId, name: "laptop" });

      const entries = await entriesOf(async () => {
        await tokens.find(token);
        await tokens.close();
        await until(
          async () => (await tokens.list(userId)).some((one) => one.id === id && one.lastUsedAt !== null),
          { what: "the use" },
        );
      });

      expect(entries).to.deep.equal([]);
    });
  });

  describe("after the subscription store", () => {
    it("tells which user changed a webhook, with the names of what is not shown", async () => {
      const store = createSubscriptionStore({ prisma: core.database.prisma, secretBox });
      const { id: userId } = await work.addUser();
      let secret = "";

      const entries = await entriesOf(async () => {
        const made = await store.create(userId, subscription, byUser);
        ({ secret } = made);
        const { id } = made.subscription;
        await store.update(
          id,
          userId,
          { isActive: false, url: "https://hooks.example.com:8443/other" },
          byUser,
        );
        await store.update(id, userId, { isActive: false, description: "a secret, still" }, byUser);
        await store.update(id, userId, { isActive: false }, byUser);
        // Somebody else's.
        await store.update(id, userId + 1, { isActive: true }, byUser);
        await store.delete(id, userId + 1, byUser);
        await store.delete(id, userId, byUser);
        await store.delete(id, userId, byUser);
      });

      expect(entries.map(({ action }) => action)).to.deep.equal([
        "webhook.created",
        "webhook.updated",
        "webhook.updated",
        "webhook.deleted",
      ]);
      const shown = {
        user_id: userId,
        url: "https://hooks.example.com:8443",
        resource: "notes",
        events: ["on_create"],
        is_active: true,
        description: "***",
        secret_hint: "***",
      };
      expect(entries.map(({ details }) => details)).to.deep.equal([
        { after: shown },
        {
          before: { url: "https://hooks.example.com:8443", is_active: true },
          after: { url: "https://hooks.example.com:8443", is_active: false },
        },
        { before: { description: "***" }, after: { description: "***" } },
        { before: { ...shown, is_active: false } },
      ]);
      for (const entry of entries)
        expect(entry).to.include({
          actor_kind: "user",
          actor_id: 7,
          token_id: 3,
          source: "203.0.113.7",
          request_id: "r1",
          subject_kind: "webhook",
          subject_id: entries[0]?.subject_id,
        });
      for (const text of ["secret,", "T0", "pass", "key=", secret, secret.slice(-4)])
        expect(JSON.stringify(entries)).not.to.include(text);
    });

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

  describe("after a change of the secret key", () => {
    it("has one row for each batch with the ids of the keys, and one for each secret that was replaced", async () => {
      const [lostBox, newBox] = [
        createSecretBox(randomBytes(32)),
        createSecretBox(randomBytes(32), [Buffer.alloc(32, 7)]),
      ];
      await work.clear();
      const seal = (box: typeof lostBox): Promise<{ readonly id: number }> =>
        work.addSubscription({ encryptedSecret: box.encrypt("sec_abc") });
      for (const box of [secretBox, secretBox, secretBox, lostBox, newBox]) await seal(box);

      const entries = await entriesOf(async () => {
        const options = { sql: core.sql, secretBox: newBox, actor };
        const { unreadable } = await reencryptSecrets({
          ...options,
          batchSize: 2,
          onProgress: () => undefined,
        });
        await replaceUnreadable({ ...options, unreadable });
      });

      const [oldKey, newKey] = [secretBox, newBox].map((box) => box.currentHead.slice(2));
      expect(entries.map(({ action, details }) => [action, details])).to.deep.equal([
        ["secret_key.rotated", { secrets: 2, before: [oldKey], after: [newKey] }],
        ["secret_key.rotated", { secrets: 1, before: [oldKey], after: [newKey] }],
        ["webhook.secret_replaced", { before: { secret_hint: "***" }, after: { secret_hint: "***" } }],
      ]);
      for (const entry of entries) expect(entry).to.include(byOperator);
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

    it("tells of every row that goes with a user, and of an emptied table", async () => {
      const { userId } = await work.addSubscription();
      await client.query("INSERT INTO svc.tokens (user_id, name, hash) VALUES ($1, 'one', 'x')", [userId]);

      const cascaded = await actionsOf(() => client.query("DELETE FROM svc.users WHERE id = $1", [userId]));
      const emptied = await entriesOf(() => client.query("TRUNCATE svc.users CASCADE"));

      expect(cascaded.toSorted()).to.deep.equal(["token.deleted", "user.deleted", "webhook.deleted"]);
      expect(emptied.map(({ action }) => action).toSorted()).to.deep.equal(cascaded.toSorted());
      for (const { details } of emptied) expect(details).to.deep.equal({ all: true });
    });

    it("sees a hash that was put in the place of another, and does not show it", async () => {
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
      // The row of the trail cannot be written, so the user is not there either.
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
      const users = createUserStore({ prisma: core.database.prisma, actor });
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

    it("is written for a role that has no right to it", async () => {
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
