import { callerOfToken } from "../support/callers.ts";
import { randomBytes } from "node:crypto";
import { expect } from "chai";
import type { Actor } from "../../src/kit/actor.ts";
import { createSecretBox } from "../../src/subscriptions/secret.ts";
import { createSubscriptionStore } from "../../src/subscriptions/store.ts";
import { reencryptSecrets, replaceUnreadable } from "../../src/subscriptions/stored-secrets.ts";
import type { NewSubscription } from "../../src/subscriptions/subscription.ts";
import { createTokenProvider } from "../../src/users/provider.ts";
import { createUserStore } from "../../src/users/store.ts";
import { testOperator as actor } from "../support/actors.ts";
import { auditOf, type AuditEntry } from "../support/audit.ts";
import { coreOfSuite } from "../support/core-database.ts";
import { createMemoryLog } from "../support/http.ts";
import { until } from "../support/wait.ts";
import { createWork, secretBox, type Work } from "../support/work.ts";

const byOperator = { actor_kind: "operator", actor_name: "ada", actor_id: null, source: "ops-1" };
const byUser: Actor = { kind: "user", id: 7, tokenId: 3, source: "203.0.113.7", requestId: "r1" };

const subscription: NewSubscription = {
  url: "https://ada:pass@hooks.example.com:8443/services/T0/secret?key=secret#secret",
  resource: "notes",
  events: ["on_create"],
  filter: null,
  headers: new Map([["Authorization", { value: "Bearer secret" }]]),
  rateLimit: null,
  secret: undefined,
  isActive: true,
  description: "a secret, perhaps",
};

describe("svc.audit, after a store's change", () => {
  const core = coreOfSuite();
  let work: Work;

  before(async () => {
    work = createWork(core.prisma);
  });

  const entriesOf = (act: () => Promise<unknown>): Promise<readonly AuditEntry[]> => auditOf(core.sql, act);

  describe("after the user store", () => {
    it("records who created, disabled and enabled a user, and nothing for a no-op", async () => {
      const users = createUserStore({ ...core, actor });
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
        after: {
          name: "Eve",
          email: "eve@example.com",
          is_admin: true,
          disabled_at: null,
          issuer: null,
          subject: null,
        },
      });
      expect(disabled?.details.before).to.deep.equal({ disabled_at: null });
      expect(disabled?.details.after.disabled_at).to.match(/^\d{4}-.*\+00:00$/);
      expect(enabled?.details.before).to.deep.equal(disabled?.details.after);
    });
  });

  describe("after the token provider", () => {
    it("records who issued and revoked a token, and nothing of the token", async () => {
      const { log } = createMemoryLog();
      const tokens = createTokenProvider({ ...core, log, actor });
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
        scopes: ["*"],
        parent_id: null,
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

    it("has no row for the use of a token, which is still recorded", async () => {
      const { log } = createMemoryLog();
      const tokens = createTokenProvider({ ...core, log, actor });
      const { id: userId } = await work.addUser();
      const { id, token } = await tokens.issue({ userId, name: "laptop" });

      const entries = await entriesOf(async () => {
        await callerOfToken(tokens, token);
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
    it("records which user changed a webhook, with the names of hidden values", async () => {
      const store = createSubscriptionStore({ ...core, secretBox, maxPerUser: 50 });
      const { id: userId } = await work.addUser();
      let secret = "";

      const entries = await entriesOf(async () => {
        const made = await store.create({ id: userId, isAdmin: false }, subscription, byUser);
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
        // Another user's.
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
        filter: null,
        header_names: ["Authorization"],
        headers_changed_at: entries[0]?.details.after.headers_changed_at,
        rate_limit: null,
        previous_until: null,
        disabled_reason: null,
      };
      expect(entries.map(({ details }) => details)).to.deep.equal([
        { after: shown },
        {
          before: { url: "https://hooks.example.com:8443", is_active: true, disabled_reason: null },
          after: { url: "https://hooks.example.com:8443", is_active: false, disabled_reason: "owner" },
        },
        { before: { description: "***" }, after: { description: "***" } },
        { before: { ...shown, is_active: false, disabled_reason: "owner" } },
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
      for (const text of ["secret,", "services/T0", "pass", "key=", secret, secret.slice(-4)])
        expect(JSON.stringify(entries)).not.to.include(text);
    });
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
});
