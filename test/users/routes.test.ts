import { expect } from "chai";
import { auditOf } from "../support/audit.ts";
import { notesYaml } from "../support/notes.ts";
import { request, serviceOfSuite, type Answer, type TestUser } from "../support/service.ts";

describe("tokens and users over HTTP", () => {
  const service = serviceOfSuite({ mode: "servers", resources: { "notes.yaml": notesYaml } });
  let ada: TestUser;
  let admin: TestUser;

  beforeEach(async () => {
    ada = await service.createUser();
    admin = await service.createUser({ isAdmin: true });
  });

  const ask = (token: string, method: string, path: string, body?: unknown): Promise<Answer> =>
    request({ url: service.baseUrl + path, method, token, body });
  const whoami = async (token: string): Promise<number> => (await ask(token, "GET", "/whoami")).status;
  const issue = (scopes: readonly string[], expiresAt?: Date, userId = ada.id) =>
    service.api.tokens.issue({ userId, name: "made", scopes, expiresAt });

  describe("POST /tokens", () => {
    it("makes a token that works, and shows it once", async () => {
      const made = await ada.request("POST", "/tokens", { name: "ci", scopes: ["notes:read"] });

      expect(made.status).to.equal(201);
      expect(made.headers.get("location")).to.equal(`${service.baseUrl}/tokens/${made.body.id}`);
      expect(made.body).to.include({ user_id: ada.id, name: "ci", expires_at: null, revoked_at: null });
      expect(made.body.scopes).to.deep.equal(["notes:read"]);
      expect(await whoami(made.body.token)).to.equal(200);
      expect((await ask(made.body.token, "POST", "/resources/notes", { text: "x" })).status).to.equal(403);
      const listed = JSON.stringify((await ada.request("GET", "/tokens")).body);
      expect(listed).to.contain('"ci"').and.not.contain(made.body.token.slice(4));
      expect(listed).not.to.contain("hash");
    });

    it("gives it the scopes of the caller's token, without any in the body", async () => {
      const { token } = await issue(["notes:read", "webhooks"]);

      const made = await ask(token, "POST", "/tokens", { name: "x" });

      expect(made.body.scopes).to.deep.equal(["notes:read", "webhooks"]);
    });

    for (const [held, asked, needed] of [
      [["read"], ["write"], "write"],
      [["read"], ["*"], "*"],
      [["notes:read"], ["read"], "read"],
      [["notes:read", "webhooks"], ["notes:write"], "notes:write"],
      [["write"], ["admin"], "admin"],
      [["admin"], ["read"], "read"],
    ] as const) {
      it(`gives a token with ${held.join(" ")} none with ${asked.join(" ")}`, async () => {
        const { token } = await issue(held);

        const refused = await ask(token, "POST", "/tokens", { name: "x", scopes: asked });

        expect([refused.status, refused.body.message]).to.deep.equal([
          403,
          `This token lacks the scope ${needed}.`,
        ]);
      });
    }

    it("makes none that ends later than the caller's token", async () => {
      const expiresAt = new Date(Date.now() + 3_600_000);
      const { token } = await issue(["*"], expiresAt);
      const later = new Date(expiresAt.getTime() + 1000).toISOString();

      const byDefault = await ask(token, "POST", "/tokens", { name: "x" });
      const longer = await ask(token, "POST", "/tokens", { name: "x", expires_at: later });

      expect(Date.parse(byDefault.body.expires_at)).to.equal(expiresAt.getTime());
      expect(longer.status).to.equal(422);
      expect(longer.body.errors).to.have.all.keys("expires_at");
    });

    it("refuses one more valid token than a user may have with 422, under concurrency", async () => {
      const { sql } = service.infrastructure;
      // The token of the caller is one of 100.
      await sql(
        `INSERT INTO svc.tokens (user_id, name, hash) SELECT $1::int, 'old', sha256(($1 || ' ' || n)::bytea) FROM generate_series(1, 97) AS n`,
        [ada.id],
      );
      const make = (): Promise<Answer> => ada.request("POST", "/tokens", { name: "x" });

      const answers = await Promise.all([make(), make(), make(), make()]);

      expect(answers.map(({ status }) => status)).to.have.members([201, 201, 422, 422]);
      const message =
        "You have 100 tokens, and one user may have 100 (setting auth.maxTokensPerUser). Revoke one that is not needed.";
      expect(answers.find(({ status }) => status === 422)?.body).to.deep.equal({
        message,
        code: "token.refused",
        errors: { token: [message] },
      });
      const [revoked, expired] = await sql("SELECT id FROM svc.tokens WHERE user_id = $1 AND name = 'old'", [
        ada.id,
      ]);
      await ada.request("DELETE", `/tokens/${String(revoked?.["id"])}`);
      await sql("UPDATE svc.tokens SET expires_at = now() WHERE id = $1", [expired?.["id"]]);
      expect((await make()).status).to.equal(201);
      expect((await make()).status).to.equal(201);
      expect((await make()).status).to.equal(422);
      // An admin who makes tokens for others has no limit.
      expect((await admin.request("POST", `/users/${ada.id}/tokens`, { name: "x" })).status).to.equal(201);
    });

    for (const [what, body, field] of [
      ["no name", {}, "name"],
      ["a name with a line break", { name: "a\nb" }, "name"],
      ["an unknown key", { name: "x", scope: ["read"] }, "scope"],
      ["a user of somebody else", { name: "x", user_id: 1 }, "user_id"],
      ["a hash", { name: "x", hash: "00" }, "hash"],
      ["no scope at all", { name: "x", scopes: [] }, "scopes"],
      ["a scope of no resource", { name: "x", scopes: ["read", "note:read"] }, "scopes.1"],
      ["a scope that is no text", { name: "x", scopes: [{ a: 1 }] }, "scopes.0"],
      ["scopes that are no list", { name: "x", scopes: "*" }, "scopes"],
      ["scopes with names", { name: "x", scopes: { first: "read" } }, "scopes"],
      ["an end that is over", { name: "x", expires_at: "2020-01-01T00:00:00Z" }, "expires_at"],
      ["an end that is no date", { name: "x", expires_at: "soon" }, "expires_at"],
    ] as const) {
      it(`answers 422 for ${what}`, async () => {
        const answer = await ada.request("POST", "/tokens", body);

        expect(answer.status).to.equal(422);
        expect(Object.keys(answer.body.errors)).to.deep.equal([field]);
      });
    }
  });

  it("names twenty unknown fields of a body at most", async () => {
    const names = Array.from({ length: 1000 }, (_, index) => `field_${index}`);
    const body = Object.fromEntries(names.map((name) => [name, 1]));

    for (const path of ["/tokens", "/users"]) {
      const answer = await admin.request("POST", path, body);

      expect(answer.status).to.equal(422);
      const unknown = Object.keys(answer.body.errors).filter((name) => name.startsWith("field_"));
      expect(unknown).to.deep.equal(names.slice(0, 20));
    }
  });

  it("names unknown fields of a body beside its other faults", async () => {
    for (const [method, path, body, fields] of [
      ["POST", "/tokens", { nam: "x", scopes: "*" }, ["name", "scopes", "nam"]],
      ["POST", "/tokens", { name: "a\nb", scopes: ["note:read"], x: 1 }, ["name", "scopes.0", "x"]],
      ["POST", "/users", { name: "x", is_admin: "x", x: 1 }, ["email", "is_admin", "x"]],
      ["PUT", `/users/${ada.id}`, { email: "x", x: 1 }, ["email", "x"]],
    ] as const) {
      const { status, body: answer } = await admin.request(method, path, body);

      expect([status, Object.keys(answer.errors)], path).to.deep.equal([422, fields]);
    }
  });

  describe("/users/{id}/tokens", () => {
    it("shows admins a user's tokens, and ends one and those made with it, only with the scope admin", async () => {
      const first = await issue(["*"]);
      const child = await ask(first.token, "POST", "/tokens", { name: "child" });
      const narrow = await issue(["admin"], undefined, admin.id);

      const listed = await ask(narrow.token, "GET", `/users/${ada.id}/tokens?per_page=2`);
      const revoked = await ask(narrow.token, "DELETE", `/users/${ada.id}/tokens/${first.id}`);
      const others = await ask(narrow.token, "DELETE", `/users/${admin.id}/tokens/${child.body.id}`);

      expect(listed.body.data.map(({ id }: Answer["body"]) => id)).to.deep.equal([child.body.id, first.id]);
      expect(JSON.stringify(listed.body)).not.to.contain("svc_");
      expect([revoked.status, others.status]).to.deep.equal([204, 404]);
      expect([await whoami(first.token), await whoami(child.body.token)]).to.deep.equal([401, 401]);
      expect(await whoami(ada.token)).to.equal(200);
    });
  });

  describe("GET /tokens", () => {
    it("pages the caller's own", async () => {
      await issue(["read"]);

      const { body } = await ada.request("GET", "/tokens?per_page=1");

      expect(body).to.include({ total: 2, per_page: 1, last_page: 2, current_page: 1 });
      expect(body.next_page_url).to.contain("page=2");
      expect(body.data.map((token: { user_id: number }) => token.user_id)).to.deep.equal([ada.id]);
    });

    it("refuses an unknown parameter", async () => {
      const answer = await ada.request("GET", "/tokens?user_id=1");

      expect([answer.status, Object.keys(answer.body.errors)]).to.deep.equal([422, ["user_id"]]);
    });
  });

  describe("DELETE /tokens/{id}", () => {
    it("revokes the token, those made with it, and no other", async () => {
      const child = await ada.request("POST", "/tokens", { name: "child" });
      const grandchild = await ask(child.body.token, "POST", "/tokens", { name: "grandchild" });
      const sibling = await ada.request("POST", "/tokens", { name: "sibling" });

      const answer = await ada.request("DELETE", `/tokens/${child.body.id}`);

      expect(answer.status).to.equal(204);
      const tokens = [child, grandchild, sibling].map(({ body }) => body.token as string);
      expect(await Promise.all([...tokens, ada.token].map(whoami))).to.deep.equal([401, 401, 200, 200]);
      const refused = await ask(grandchild.body.token, "GET", "/whoami");
      expect(refused.headers.get("www-authenticate")).to.contain("The token is revoked");
    });

    it("finds no token of another user", async () => {
      const [token] = await service.api.tokens.list(admin.id);

      expect((await ada.request("DELETE", `/tokens/${token?.id}`)).status).to.equal(404);
      expect((await ada.request("DELETE", "/tokens/x")).status).to.equal(404);
      expect(await whoami(admin.token)).to.equal(200);
    });

    it("lets a token end itself, but none with more scopes", async () => {
      const narrow = await issue(["notes:read"]);
      const [, own] = await service.api.tokens.list(ada.id);

      expect((await ask(narrow.token, "DELETE", `/tokens/${own?.id}`)).status).to.equal(403);
      expect((await ask(narrow.token, "DELETE", `/tokens/${narrow.id}`)).status).to.equal(204);
      expect(await whoami(narrow.token)).to.equal(401);
    });

    it("leaves no token that was made while its maker was revoked", async () => {
      for (let round = 0; round < 5; round++) {
        const parent = await issue(["*"]);
        const [made] = await Promise.all([
          ask(parent.token, "POST", "/tokens", { name: "late" }),
          ask(ada.token, "DELETE", `/tokens/${parent.id}`),
        ]);

        if (made.status === 201) expect(await whoami(made.body.token)).to.equal(401);
        else expect(made.status).to.equal(401);
      }
    });
  });

  describe("/users", () => {
    it("is for admins", async () => {
      for (const [method, path] of [
        ["GET", "/users"],
        ["POST", "/users"],
        ["GET", `/users/${ada.id}`],
        ["PUT", `/users/${ada.id}`],
        ["PATCH", `/users/${ada.id}`],
        ["GET", `/users/${ada.id}/tokens`],
        ["POST", `/users/${ada.id}/tokens`],
        ["DELETE", `/users/${ada.id}/tokens/1`],
        ["GET", "/users/999999"],
      ] as const) {
        const hasBody = method !== "GET" && method !== "DELETE";
        const answer = await ada.request(method, path, hasBody ? { is_admin: true } : undefined);
        expect([answer.status, answer.body.message], path).to.deep.equal([
          403,
          "This action is unauthorized.",
        ]);
      }
    });

    it("keeps the time of the last change when a change is empty", async () => {
      const before = await admin.request("GET", `/users/${ada.id}`);
      const after = await admin.request("PUT", `/users/${ada.id}`, {});

      expect(after.status).to.equal(200);
      expect(after.body).to.deep.equal(before.body);
    });

    it("makes a user, gives it a token, changes it, and leaves their rows in the audit trail", async () => {
      const email = `eve-${Date.now()}@example.com`;
      let made: Answer | undefined;
      let token: Answer | undefined;
      const entries = await auditOf(service.infrastructure.sql, async () => {
        made = await admin.request("POST", "/users", { name: "Eve", email });
        token = await admin.request("POST", `/users/${made.body.id}/tokens`, {
          name: "ci",
          scopes: ["read"],
        });
        await admin.request("PUT", `/users/${made.body.id}`, { name: "Eva", is_disabled: true });
      });

      expect(made?.status).to.equal(201);
      expect(made?.body).to.include({
        name: "Eve",
        email,
        is_admin: false,
        is_disabled: false,
        subject: null,
      });
      expect(token?.body).to.include({ user_id: made?.body.id, parent_id: null });
      expect(entries.map(({ action }) => action)).to.deep.equal([
        "user.created",
        "token.created",
        "user.disabled",
      ]);
      for (const entry of entries) expect(entry).to.include({ actor_kind: "user", actor_id: admin.id });
      expect(entries.every(({ token_id: id }) => Number(id) > 0)).to.equal(true);
      expect(JSON.stringify(entries)).not.to.contain(token?.body.token.slice(4));
      const shown = await admin.request("GET", `/users/${made?.body.id}`);
      expect(shown.body).to.include({ name: "Eva", is_disabled: true });
      expect(shown.body.disabled_at).to.match(/\+00:00$/);
    });

    it("ends the tokens of a disabled user at once, with that reason for its holder", async () => {
      expect(await whoami(ada.token)).to.equal(200);
      await admin.request("PUT", `/users/${ada.id}`, { is_disabled: true });

      const answer = await ask(ada.token, "GET", "/whoami");
      expect(answer.status).to.equal(401);
      expect(answer.body.message).to.equal("Unauthenticated.");
      expect(answer.headers.get("www-authenticate")).to.equal(
        'Bearer error="invalid_token", error_description="The user is disabled"',
      );
      await admin.request("PUT", `/users/${ada.id}`, { is_disabled: false });
      expect(await whoami(ada.token)).to.equal(200);
    });

    it("keeps the last admin", async () => {
      await service.infrastructure.sql(
        "UPDATE svc.users SET disabled_at = now() WHERE is_admin AND id <> $1",
        [admin.id],
      );

      for (const change of [{ is_admin: false }, { is_disabled: true }]) {
        const answer = await admin.request("PUT", `/users/${admin.id}`, change);
        expect(answer.status).to.equal(409);
      }
      const other = await service.createUser({ isAdmin: true });
      const both = await Promise.all([
        admin.request("PUT", `/users/${admin.id}`, { is_admin: false }),
        other.request("PUT", `/users/${other.id}`, { is_admin: false }),
      ]);
      expect(both.filter(({ status }) => status === 200)).to.have.length(1);
    });

    it("gives no user a token with more scopes than the admin's own", async () => {
      const { token } = await issue(["admin"], undefined, admin.id);

      const refused = await ask(token, "POST", `/users/${admin.id}/tokens`, { name: "x", scopes: ["*"] });
      const byDefault = await ask(token, "POST", `/users/${admin.id}/tokens`, { name: "x" });

      expect(refused.status).to.equal(403);
      expect(byDefault.body.scopes).to.deep.equal(["admin"]);
      expect(byDefault.body.parent_id).to.be.a("number");
    });

    for (const [what, body, field] of [
      ["no name", { email: "a@example.com" }, "name"],
      ["no e-mail address", { name: "x" }, "email"],
      ["an address that is none", { name: "x", email: "nobody" }, "email"],
      ["an unknown key", { name: "x", email: "a@example.com", admin: true }, "admin"],
      ["a subject while no JWTs are taken", { name: "x", email: "a@example.com", subject: "s" }, "subject"],
      ["a flag that is none", { name: "x", email: "a@example.com", is_admin: "yes" }, "is_admin"],
    ] as const) {
      it(`answers 422 for ${what}`, async () => {
        const answer = await admin.request("POST", "/users", body);

        expect(answer.status).to.equal(422);
        expect(Object.keys(answer.body.errors)).to.deep.equal([field]);
      });
    }

    it("answers 422 for an address of another user, in any case, and concurrently", async () => {
      const email = `Twin-${Date.now()}@example.com`;
      const answers = await Promise.all(
        [email, email.toLowerCase(), email.toUpperCase()].map((one) =>
          admin.request("POST", "/users", { name: "x", email: one }),
        ),
      );

      expect(answers.map(({ status }) => status)).to.have.members([201, 422, 422]);
      const changed = await admin.request("PUT", `/users/${ada.id}`, { email });
      expect(changed.body.errors).to.deep.equal({ email: ["The email has already been taken."] });
    });

    it("answers 404 for a missing user", async () => {
      for (const [method, path] of [
        ["GET", "/users/999999"],
        ["PUT", "/users/999999"],
        ["POST", "/users/999999/tokens"],
        ["GET", "/users/x"],
      ] as const) {
        const answer = await admin.request(method, path, method === "GET" ? undefined : { name: "x" });
        expect(answer.status, path).to.equal(404);
      }
    });

    it("changes by PATCH the same as by PUT", async () => {
      const put = await admin.request("PUT", `/users/${ada.id}`, { name: "Ada L." });
      const patched = await admin.request("PATCH", `/users/${ada.id}`, { is_admin: true });

      expect([put.status, patched.status]).to.deep.equal([200, 200]);
      expect(patched.body).to.include({ id: ada.id, name: "Ada L.", is_admin: true });
      expect((await ada.request("PATCH", `/users/${admin.id}`, { name: "x" })).status).to.equal(200);
    });
  });
});
